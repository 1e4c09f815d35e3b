// The package's entry in browsers. Importing it starts nothing and touches no global.
import { makeCaches } from './cache/listing.js'
import { openOpfs } from './cache/opfs.js'
import type { WorkerPort } from './connection.js'
import { QwasmError } from './errors.js'
import { givenSpec } from './loader/given-files.js'
import { hubGguf, hubGgufSpec, hubOf, hubSpec, isHubId } from './loader/hub.js'
import { addressSpec, refuseRevision } from './loader/specs.js'
import { makeApi } from './model.js'
import { show } from './show.js'
import type { HubOptions, InspectOptions, LoadOptions, Model, ModelSource, Tokenizer, TokenizerOptions } from './types.js'
import { watchLife } from './worker/life.js'
import type { FromWorker, SourceSpec } from './worker/protocol.js'

export { QwasmError, type QwasmErrorCode } from './errors.js'
export { filesFromDrop } from './loader/given-files.js'
export { LoadController } from './load-controller.js'
export type * from './types.js'

const api = /* @__PURE__ */ makeApi({
  hardwareThreads: () => navigator.hardwareConcurrency || 1,
  startWorker,
  wasmUrl: (asked) => new URL(asked, location.href).href,
  sourceSpec,
})

/** The models that were downloaded and kept in this origin's private file system. */
export const caches = /* @__PURE__ */ makeCaches(openOpfs)

/** Loads a model: of a hub by its id, from a URL (relative to the page, or absolute), or from the files or handle of a folder. */
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

async function sourceSpec(source: unknown, options: HubOptions): Promise<SourceSpec> {
  const given = await givenSpec(source)
  if (given) {
    refuseRevision(options.revision, given)
    return given
  }
  if ((typeof source !== 'string' || source === '') && !(source instanceof URL)) {
    const expected = "a hub's id, a URL, or the files or handle of a folder"
    throw new QwasmError('invalid_argument', `The model's source must be ${expected}, not ${show(source)}.`)
  }
  const hub = hubOf(options, location.href)
  const gguf = hubGguf(source)
  if (gguf) return { ...hubGgufSpec(gguf, hub), otherwise: `To mean a file beside the page, write './${source}'.` }
  if (!isHubId(source)) return addressSpec(source, hub, location.href)
  return { ...hubSpec(source, hub), otherwise: `To mean a folder beside the page, write './${source}'.` }
}

function startWorker(workerUrl: string | URL | undefined): WorkerPort {
  const name = `qwasm worker ${performance.timeOrigin + performance.now()} ${Math.random()}` // the lock's too: one of its kind in the browser
  const worker =
    workerUrl === undefined
      ? new Worker(new URL('./worker.browser.js', import.meta.url), { type: 'module', name })
      : new Worker(new URL(workerUrl, location.href), { type: 'module', name })
  let stopWatching = () => {}
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (receive) => worker.addEventListener('message', (event) => receive(event.data)),
    onEnd: (ended) => {
      worker.addEventListener('error', (event) => ended(event.message || 'its script could not be loaded.'))
      worker.addEventListener('messageerror', () => ended('a message could not be read.'))
      worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => {
        if (data.kind === 'holding') stopWatching = watchLife(name, () => ended('it stopped without a word.'))
      })
    },
    terminate: async () => {
      stopWatching()
      worker.terminate()
    },
    keepAlive: () => {},
  }
}
