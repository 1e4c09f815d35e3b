// How a page learns that its worker has ended, for which browsers have no event: the worker holds a lock of its name as long as it lives.

/** Whether locks are there: not on insecure origins. */
const locks = () => (globalThis.navigator as Partial<Navigator> | undefined)?.locks

/** In the worker: takes the lock for good, and says so when it has it. */
export function holdLife(name: string, holding: () => void): void {
  const forGood = () => {
    holding()
    return new Promise<never>(() => {})
  }
  if (name !== '') locks()?.request(name, forGood).catch(() => {}) // a sandboxed frame has no locks: then nobody watches
}

/** In the page, once the worker holds its lock: `ended` is called when it is gone. Gives what ends the watch. */
export function watchLife(name: string, ended: () => void): () => void {
  const controller = new AbortController()
  locks()
    ?.request(name, { signal: controller.signal }, ended)
    .catch(() => {}) // the watch was ended
  return () => controller.abort()
}
