// The package's entry under Node.js. Importing it starts nothing.
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { makeCaches } from './cache/listing.js'
import { openNodeStore } from './cache/node-store.js'
import type { WorkerPort } from './connection.js'
import { nodeSpec, pathOrUrl } from './loader/node-spec.js'
import { makeApi } from './model.js'
import type { InspectOptions, LoadOptions, Model, ModelSource, Tokenizer, TokenizerOptions } from './types.js'

export { QwasmError, type QwasmErrorCode } from './errors.js'
export { filesFromDrop } from './loader/given-files.js'
export { LoadController } from './load-controller.js'
export type * from './types.js'

const api = makeApi({
  hardwareThreads: availableParallelism,
  startWorker,
  wasmUrl: (asked) => pathOrUrl(asked).href,
  sourceSpec: nodeSpec,
})

/** The models that were downloaded and kept in the user's cache folder. */
export const caches = makeCaches(() => openNodeStore())

/** Loads a model: from a local path, of a hub by its id (or out of the Hugging Face cache), from a URL, or from files. */
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
