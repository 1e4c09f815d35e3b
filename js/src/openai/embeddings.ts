// OpenAI's embeddings: a request in our options, and our vectors in its shape.
import type { Embeddings, EmbedOptions } from '../types.js'
import { EMBEDDING, readParameters } from './parameters.js'
import { textsOf } from './request.js'
import type { EmbeddingList, EmbeddingParams, Usage } from './shapes.js'

export interface EmbeddingJob {
  /** The model that the request names. */
  model: string | undefined
  texts: (string | number[])[]
  options: EmbedOptions
  base64: boolean
}

type Read = { [K in keyof EmbeddingParams]: Exclude<EmbeddingParams[K], null> }

export function embeddingJob(given: unknown): EmbeddingJob {
  const { model, input, dimensions, encoding_format } = readParameters<Read>(given, EMBEDDING)
  return {
    model,
    texts: textsOf('input', input),
    options: dimensions === undefined ? {} : { dimensions },
    base64: encoding_format === 'base64',
  }
}

export function embeddingList(model: string, { embeddings, tokens }: Embeddings, base64: boolean): EmbeddingList {
  const shape = (embedding: Float32Array) => (base64 ? toBase64(embedding) : Array.from(embedding))
  return {
    object: 'list',
    data: embeddings.map((embedding, index) => ({ object: 'embedding', index, embedding: shape(embedding) })),
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  }
}

export function embeddingUsage({ tokens }: Embeddings): Usage {
  return { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens, prompt_tokens_details: { cached_tokens: 0 } }
}

/** The bytes of a vector, which are little-endian wherever wasm runs. */
function toBase64({ buffer, byteOffset, byteLength }: Float32Array): string {
  return btoa(Array.from(new Uint8Array(buffer, byteOffset, byteLength), (byte) => String.fromCharCode(byte)).join(''))
}
