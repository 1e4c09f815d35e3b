// Pauses, resumes or aborts a load, as an AbortController aborts a fetch.

type Listener = (paused: boolean) => void

/**
 * Goes into `loadModel(source, { controller })`. While paused nothing is fetched; what has come is kept. `abort()` ends the load with an
 * AbortError; a later load of the same source goes on from what the cache has.
 */
export class LoadController extends AbortController {
  #paused = false
  readonly #listeners = new Set<Listener>()

  get paused(): boolean {
    return this.#paused
  }

  pause(): void {
    this.#set(true)
  }

  resume(): void {
    this.#set(false)
  }

  /** Hears of changes, and at once where it is paused; returns how to end that. */
  watch(listener: Listener): () => void {
    this.#listeners.add(listener)
    if (this.#paused) listener(true)
    return () => void this.#listeners.delete(listener)
  }

  #set(paused: boolean): void {
    if (paused === this.#paused) return
    this.#paused = paused
    for (const listener of this.#listeners) listener(paused)
  }
}
