// The caller's end of the worker: matches answers to calls, and rejects everything that waits when the worker ends.
import { abortError, fromWire, QwasmError } from './errors.js'
import type { LoadController } from './load-controller.js'
import type { Calls, FromWorker, Method, ToWorker } from './worker/protocol.js'

/** A worker as an entry makes it; browser and Node.js differ only behind this. */
export interface WorkerPort {
  post(message: ToWorker): void
  onMessage(receive: (message: FromWorker) => void): void
  /** Called once when the worker failed or ended. */
  onEnd(ended: (reason: string) => void): void
  terminate(): Promise<void>
  /** Whether the worker keeps the process alive (Node.js). */
  keepAlive(alive: boolean): void
}

interface Pending {
  resolve(result: unknown): void
  reject(error: Error): void
  event: ((event: never) => void) | undefined
}

export interface CallOptions<M extends Method> {
  signal?: AbortSignal | undefined
  controller?: LoadController | undefined
  onEvent?: ((event: Calls[M]['events']) => void) | undefined
}

export class Connection {
  readonly #port: WorkerPort
  readonly #pending = new Map<number, Pending>()
  #nextId = 1
  #closed: QwasmError | undefined

  constructor(port: WorkerPort) {
    this.#port = port
    port.onMessage((message) => this.#receive(message))
    port.onEnd((reason) => void this.#die(`The worker ended: ${reason.replace(/\.$/, '')}.`))
    port.keepAlive(false)
  }

  /** Starts a call; the result's promise and a function that ends the call early with what there is. */
  call<M extends Method>(
    method: M,
    args: Calls[M]['args'],
    options: CallOptions<M> = {}
  ): { result: Promise<Calls[M]['result']>; stop: () => void } {
    const { signal, controller, onEvent } = options
    if (this.#closed) return failed(this.#closed)
    const signals = [signal, controller?.signal].filter((given) => given !== undefined)
    for (const given of signals) if (given.aborted) return failed(abortError(given))
    const id = this.#nextId++
    const result = new Promise<unknown>((resolve, reject) =>
      this.#pending.set(id, { resolve, reject, event: onEvent as Pending['event'] })
    )
    try {
      this.#port.post({ kind: 'call', id, method, args })
    } catch (cause) {
      this.#pending.delete(id)
      return failed(new QwasmError('invalid_argument', `${method}: the arguments must be plain data.`, { cause }))
    }
    this.#port.keepAlive(true)
    const forget = signals.map((given) => this.#onAbort(id, given))
    if (controller) forget.push(controller.watch((paused) => this.#control(paused ? 'pause' : 'resume', id)))
    const forgetAll = () => forget.forEach((forgetOne) => forgetOne())
    result.then(forgetAll, forgetAll)
    return { result: result as Promise<Calls[M]['result']>, stop: () => this.#control('stop', id) }
  }

  /** Ends the worker; calls that wait, and all later ones, are rejected with `reason`. */
  async close(reason: QwasmError): Promise<void> {
    this.#closed ??= reason
    this.#rejectAll(this.#closed)
    await this.#port.terminate()
  }

  /** Ends the call when the signal says so; returns how not to. */
  #onAbort(id: number, signal: AbortSignal): () => void {
    const abort = () => {
      this.#control('abort', id)
      this.#settle(id)?.reject(abortError(signal))
    }
    signal.addEventListener('abort', abort, { once: true })
    return () => signal.removeEventListener('abort', abort)
  }

  #control(kind: 'stop' | 'abort' | 'pause' | 'resume', id: number): void {
    if (this.#pending.has(id)) this.#port.post({ kind, id })
  }

  #receive(message: FromWorker): void {
    if (message.kind === 'event') {
      this.#pending.get(message.id)?.event?.(message.event as never)
    } else if (message.kind === 'result') {
      this.#settle(message.id)?.resolve(message.result)
    } else if (message.kind === 'error') {
      if (message.error.code === 'dead') void this.#die(message.error.message)
      else this.#settle(message.id)?.reject(fromWire(message.error))
    }
  }

  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id)
    // Not for answers that come late: while the worker is being ended, waiting for that is what keeps the process alive.
    if (this.#pending.delete(id) && this.#pending.size === 0) this.#port.keepAlive(false)
    return pending
  }

  #die(what: string): Promise<void> {
    return this.close(new QwasmError('dead', `${what} The model must be loaded again.`))
  }

  #rejectAll(error: Error): void {
    for (const id of [...this.#pending.keys()]) this.#settle(id)?.reject(error)
  }
}

function failed(error: Error): { result: Promise<never>; stop: () => void } {
  return { result: Promise.reject(error), stop: () => {} }
}
