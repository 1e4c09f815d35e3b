// The package's entry under Node.js. Importing it starts nothing.
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { makeCaches } from './cache/listing.js'
import { openNodeStore } from './cache/node-store.js'
import type { WorkerPort } from './connection.js'
import { QwasmError } from './errors.js'
import { fileListSpec, isFileList, urlSpec } from './loader/specs.js'
import { makeApi } from './model.js'
import { show } from './options.js'
import type { InspectOptions, LoadOptions, Model, ModelSource, Tokenizer, TokenizerOptions } from './types.js'
import type { SourceSpec } from './worker/protocol.js'

export { QwasmError, type QwasmErrorCode } from './errors.js'
export { LoadController } from './load-controller.js'
export type * from './types.js'

const api = makeApi({
  hardwareThreads: availableParallelism,
  startWorker,
  wasmUrl: (asked) => (asked === undefined ? new URL('./wasm/', import.meta.url) : pathOrUrl(asked)).href,
  sourceSpec,
})

/** The models that were downloaded and kept in the user's cache folder. */
export const caches = makeCaches(() => openNodeStore())

/** Loads a model from a local folder, a folder's URL or its files. */
export function loadModel(source: ModelSource, options?: LoadOptions): Promise<Model> {
  return api.loadModel(source, options)
}

/** Loads the tokenizer and chat template of a model, without its weights. */
export function loadTokenizer(source: ModelSource, options?: TokenizerOptions): Promise<Tokenizer> {
  return api.loadTokenizer(source, options)
}

/** What config.json and the tensor headers say of a model; no weights are read. */
export function inspect(source: ModelSource, options?: InspectOptions): Promise<Record<string, unknown>> {
  return api.inspect(source, options)
}

function pathOrUrl(place: string | URL): URL {
  if (place instanceof URL || /^(https?|file|data):/i.test(place)) return new URL(place)
  return pathToFileURL(resolve(place))
}

function sourceSpec(source: unknown): SourceSpec {
  if (isFileList(source)) return fileListSpec(source)
  if ((typeof source !== 'string' && !(source instanceof URL)) || source === '') {
    throw new QwasmError(
      'invalid_argument',
      `The model's source must be a folder's path, its URL or its files, not ${show(source)}.`
    )
  }
  if (/^https?:/i.test(String(source))) return urlSpec(source)
  return { kind: 'folder', path: fileURLToPath(pathOrUrl(source)) }
}

function startWorker(workerUrl: string | URL | undefined): WorkerPort {
  const script = workerUrl === undefined ? new URL('./worker.node.js', import.meta.url) : pathOrUrl(workerUrl)
  // `node --input-type=module -e …` would have its worker refuse to run a file; everything else is inherited as usual.
  const inline = process.execArgv.some((argument) => argument.startsWith('--input-type'))
  const worker = new Worker(script, inline ? { execArgv: [] } : {})
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (receive) => worker.on('message', receive),
    onEnd: (ended) => {
      worker.on('error', (error) => ended(error.message))
      worker.on('messageerror', (error) => ended(error.message))
      worker.on('exit', (code) => ended(`exit code ${code}.`))
    },
    terminate: async () => void (await worker.terminate()),
    keepAlive: (alive) => (alive ? worker.ref() : worker.unref()),
  }
}
