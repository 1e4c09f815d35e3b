// Generation as callers see it, from a model's shared sequences or from a session of their own.
import type { Connection } from './connection.js'
import { QwasmError } from './errors.js'
import { checkIds, checkOptions } from './options.js'
import { show } from './show.js'
import { makeStream, type Started } from './stream.js'
import type {
  ChatDelta,
  ChatOptions,
  ChatResult,
  ChatStream,
  GenerateOptions,
  GenerateResult,
  Message,
  Session,
  TextStream,
} from './types.js'

export class Generation {
  readonly #connection: Connection
  /** The session by its number; absent: the model's shared sequences. */
  readonly #in: { session?: number }

  constructor(connection: Connection, session?: number) {
    this.#connection = connection
    this.#in = session === undefined ? {} : { session }
  }

  generate(prompt: string | ArrayLike<number>, options?: GenerateOptions): TextStream {
    return makeStream<string, GenerateResult>((onEvent) => {
      const { signal, n, ...plain } = checkOptions('generate', options)
      const checked = typeof prompt === 'string' ? prompt : checkIds('generate', prompt)
      return sample(n, plain.seed, (seed, piece) => {
        const args = { prompt: checked, options: { ...plain, ...seed }, ...this.#in }
        return this.#connection.call('generate', args, { signal, onEvent: piece })
      }, onEvent)
    })
  }

  chat(messages: readonly Message[], options?: ChatOptions): ChatStream {
    return makeStream<ChatDelta, ChatResult>((onEvent) => {
      const { signal, n, ...plain } = checkOptions('chat', options)
      return sample(n, plain.seed, (seed, piece) => {
        const args = { messages, options: { ...plain, ...seed }, ...this.#in }
        return this.#connection.call('chat', args, { signal, onEvent: piece })
      }, onEvent)
    })
  }
}

/** Starts `n` calls with a seed each; only the first one's pieces are told. One that fails stops the others. */
function sample<Piece, Result extends GenerateResult>(
  n = 1,
  seed: number | undefined,
  start: (seed: { seed?: number }, onPiece?: (piece: Piece) => void) => Started<Result>,
  onPiece: (piece: Piece) => void
): Started<Result> {
  if (n === 1) return start({}, onPiece)
  const first = seed ?? crypto.getRandomValues(new Uint32Array(1))[0]!
  const calls = Array.from({ length: n }, (_, i) => start({ seed: first + i }, i === 0 ? onPiece : undefined))
  const stop = () => calls.forEach((call) => call.stop())
  const all = Promise.all(calls.map(({ result }) => result))
  all.catch(stop)
  return { result: all.then((samples) => ({ ...samples[0]!, samples })), stop }
}

export class SessionProxy extends Generation implements Session {
  readonly #connection: Connection
  readonly #session: number
  #disposed: Promise<void> | undefined

  constructor(connection: Connection, session: number) {
    super(connection, session)
    this.#connection = connection
    this.#session = session
  }

  async save(): Promise<Uint8Array<ArrayBuffer>> {
    return this.#connection.call('saveSession', { session: this.#session }).result
  }

  async restore(bytes: Uint8Array): Promise<void> {
    if (!(bytes instanceof Uint8Array)) {
      throw new QwasmError('invalid_argument', `restore: the bytes must be a Uint8Array, not ${show(bytes)}.`)
    }
    return this.#connection.call('restoreSession', { session: this.#session, bytes }).result
  }

  /** Calls that run or wait end first; later ones are refused. */
  dispose(): Promise<void> {
    return (this.#disposed ??= this.#connection.call('closeSession', { session: this.#session }).result)
  }
}
