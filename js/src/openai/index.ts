// OpenAI's interface to a model: the methods of its client that mean something here, in pages and under Node.js.
import { show } from '../show.js'
import type { Model } from '../types.js'
import { embeddingJob, embeddingList, embeddingUsage } from './embeddings.js'
import { isAbort, OpenAIError, toOpenAIError } from './errors.js'
import { chatFormat, completionFormat } from './formats.js'
import { chatJob, completionJob, sampleOptions } from './request.js'
import { respond } from './run.js'
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionParams,
  ChunkStream,
  Completion,
  CompletionChunk,
  CompletionParams,
  EmbeddingList,
  EmbeddingParams,
  ModelShape,
  RequestOptions,
  Usage,
} from './shapes.js'

export { OpenAIError, type OpenAIErrorBody, type OpenAIErrorType } from './errors.js'
export type * from './shapes.js'

export interface OpenAIOptions {
  /** What requests call the model; default: the last part of its source. A request that names another is refused. */
  name?: string
  /** Called at the end of each request, an aborted answer's too, with the tokens that it took. */
  onUsage?: (usage: Usage) => void
}

interface Create<Params, Whole, Chunk> {
  create(params: Params & { stream: true }, options?: RequestOptions): Promise<ChunkStream<Chunk>>
  create(params: Params & { stream?: false | null | undefined }, options?: RequestOptions): Promise<Whole>
  create(params: Params, options?: RequestOptions): Promise<Whole | ChunkStream<Chunk>>
}

/** A part of the interface of OpenAI's client. Failures are OpenAIErrors, except an abort, which is the platform's AbortError. */
export interface OpenAI {
  chat: { completions: Create<ChatCompletionParams, ChatCompletion, ChatCompletionChunk> }
  completions: Create<CompletionParams, Completion, CompletionChunk>
  models: {
    list(): Promise<{ object: 'list'; data: ModelShape[] }>
    retrieve(id: string): Promise<ModelShape>
  }
  embeddings: { create(params: EmbeddingParams, options?: RequestOptions): Promise<EmbeddingList> }
}

/** OpenAI's interface to a model. It starts nothing and holds nothing; the model is disposed by whoever loaded it. */
export function createOpenAI(model: Model, { name = nameOf(model), onUsage = () => {} }: OpenAIOptions = {}): OpenAI {
  const about: ModelShape = { id: name, object: 'model', created: Math.floor(Date.now() / 1000), owned_by: 'qwasm' }
  const checkName = ({ model: asked = name }: { model: string | undefined }) => {
    if (asked !== name) throw noSuchModel(asked, name)
  }

  const chat = async (params: unknown, options: RequestOptions = {}) => {
    const job = chatJob(params)
    checkName(job)
    const streams = range(job.samples).map((i) => model.chat(job.messages, sampleOptions(job, i)))
    return respond(job, chatFormat(name, job), streams, { ...options, onUsage })
  }

  const complete = async (params: unknown, options: RequestOptions = {}) => {
    const job = completionJob(params)
    checkName(job)
    const { prompts, samples } = job
    const streams = range(prompts.length * samples).map((i) => model.generate(prompts[Math.floor(i / samples)]!, sampleOptions(job, i)))
    return respond(job, completionFormat(name, job), streams, { ...options, onUsage })
  }

  const embed = async (params: unknown, { signal }: RequestOptions = {}) => {
    const { texts, options, base64, ...named } = embeddingJob(params)
    checkName(named)
    try {
      const made = await model.embed(texts, { ...options, ...(signal && { signal }) })
      onUsage(embeddingUsage(made))
      return embeddingList(name, made, base64)
    } catch (error) {
      throw isAbort(error) ? error : toOpenAIError(error)
    }
  }

  return {
    chat: { completions: { create: chat as OpenAI['chat']['completions']['create'] } },
    completions: { create: complete as OpenAI['completions']['create'] },
    models: {
      list: async () => ({ object: 'list', data: [about] }),
      retrieve: async (id) => {
        if (id !== name) throw noSuchModel(id, name)
        return about
      },
    },
    embeddings: { create: embed },
  }
}

/** 'Qwen3-0.6B' of a folder or a URL, 'Qwen/Qwen3-0.6B' of a hub or of its cache. */
function nameOf({ info: { source, modelType } }: Model): string {
  const onHub = /^https?:.*?([^/]+)\/([^/]+)\/resolve\//.exec(source) ?? /\bmodels--([^/\\]+)--([^/\\]+)[/\\]snapshots\b/.exec(source)
  if (onHub) return `${onHub[1]}/${onHub[2]}`
  const parts = source.replace(/\.safetensors$/, '').split(/[/\\]/)
  return parts.findLast((part) => part !== '' && part !== 'model') ?? modelType
}

function noSuchModel(asked: unknown, name: string): OpenAIError {
  const message = `There is no model ${show(asked)} here, only '${name}'.`
  return new OpenAIError(404, 'invalid_request_error', message, { param: 'model', code: 'model_not_found' })
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i)
}
