// The errors of the package: QwasmError with a closed set of codes, and the platform's AbortError.

/** What went wrong, for programs; the message says it for people. */
export type QwasmErrorCode =
  | 'invalid_argument' // an option or argument outside its domain
  | 'invalid_file' // bytes that break their file's format
  | 'missing' // a file, tensor or field that must be there is not
  | 'integrity' // bytes are not those that the caller pinned
  | 'unsupported' // well-formed, but not implemented
  | 'out_of_memory'
  | 'context_overflow' // more tokens than the context length
  | 'not_finite' // NaN or infinity in weights or logits
  | 'wrong_state' // a call out of its order
  | 'no_tokenizer' // a text call on a model that came without a tokenizer
  | 'http' // a server answered with something else than the file
  | 'network' // no answer, or an answer cut off
  | 'io' // a local file that cannot be read
  | 'template' // the chat template cannot be parsed or rendered
  | 'environment' // this browser or Node.js cannot run what was asked
  | 'version_mismatch' // script and wasm come from different versions
  | 'disposed' // the model was disposed
  | 'dead' // the engine died; load the model again
  | 'internal' // a mistake in qwasm itself

/** Every failure of the package except an abort, which is the platform's AbortError. */
export class QwasmError extends Error {
  readonly code: QwasmErrorCode
  /** The status of the server's answer, where the code is 'http' and there was one. */
  readonly status: number | undefined

  constructor(code: QwasmErrorCode, message: string, options: ErrorOptions & { status?: number | undefined } = {}) {
    super(message, options)
    this.name = 'QwasmError'
    this.code = code
    this.status = options.status
  }
}

/** The rejection of an aborted call: the signal's own AbortError, or a new one that carries the signal's reason as its cause. */
export function abortError(signal?: AbortSignal): DOMException {
  const reason: unknown = signal?.reason
  if (reason instanceof DOMException && reason.name === 'AbortError') return reason
  const error = new DOMException('The call was aborted.', 'AbortError')
  if (reason !== undefined) Object.defineProperty(error, 'cause', { value: reason, configurable: true })
  return error
}

/** An error as it crosses the worker's border. */
export interface WireError {
  code: QwasmErrorCode | 'abort'
  message: string
  status?: number | undefined
}

export function toWire(error: unknown): WireError {
  if (error instanceof QwasmError) return { code: error.code, message: error.message, status: error.status }
  if (error instanceof DOMException && error.name === 'AbortError') return { code: 'abort', message: error.message }
  const detail = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return { code: 'internal', message: `A mistake inside qwasm: ${detail}` }
}

export function fromWire(wire: WireError): Error {
  return wire.code === 'abort' ? abortError() : new QwasmError(wire.code, wire.message, { status: wire.status })
}
