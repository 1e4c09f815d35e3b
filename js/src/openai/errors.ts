// Errors in OpenAI's form: a status, and an object with message, type, param and code.
import type { QwasmError, QwasmErrorCode } from '../errors.js'

/** Where the failure lies, in OpenAI's words. */
export type OpenAIErrorType = 'invalid_request_error' | 'authentication_error' | 'rate_limit_error' | 'server_error'

export interface OpenAIErrorBody {
  error: { message: string; type: OpenAIErrorType; param: string | null; code: string | null }
}

/** A failure of the OpenAI-shaped interface; where the model failed, its QwasmError is the `cause`. */
export class OpenAIError extends Error {
  /** The HTTP status that stands for it. */
  readonly status: number
  readonly type: OpenAIErrorType
  /** The parameter that is wrong. */
  readonly param: string | null
  readonly code: string | null

  constructor(
    status: number,
    type: OpenAIErrorType,
    message: string,
    { param = null, code = null, ...options }: ErrorOptions & { param?: string | null; code?: string | null } = {}
  ) {
    super(message, options)
    this.name = 'OpenAIError'
    this.status = status
    this.type = type
    this.param = param
    this.code = code
  }

  /** The body of an HTTP answer. */
  body(): OpenAIErrorBody {
    const { message, type, param, code } = this
    return { error: { message, type, param, code } }
  }
}

/** A request that asks for something wrong. */
export function invalid(param: string | null, message: string, code: string | null = null): OpenAIError {
  return new OpenAIError(400, 'invalid_request_error', message, { param, code })
}

/** What the caller did wrong; everything else is the server's failure. */
const CALLERS: readonly QwasmErrorCode[] = ['invalid_argument', 'template', 'unsupported', 'no_tokenizer', 'missing', 'context_overflow']

/** Any failure but an abort. A QwasmError is known by its name: the package's entries each have a class of their own. */
export function toOpenAIError(error: unknown): OpenAIError {
  if (error instanceof OpenAIError) return error
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof Error) || error.name !== 'QwasmError') return new OpenAIError(500, 'server_error', message, { cause: error })
  const { code } = error as QwasmError
  const named = code === 'context_overflow' ? 'context_length_exceeded' : code
  if (CALLERS.includes(code)) return new OpenAIError(400, 'invalid_request_error', message, { code: named, cause: error })
  const gone = code === 'dead' || code === 'disposed' || code === 'out_of_memory'
  return new OpenAIError(gone ? 503 : 500, 'server_error', message, { code, cause: error })
}

export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError'
}
