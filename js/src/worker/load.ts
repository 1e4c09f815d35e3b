// One load in the worker: opens source and cache, starts the module, feeds the engine; once more where the source changed meanwhile.
import { ModelCache, type ModelOrigin } from '../cache/model-cache.js'
import { AT_ONCE, keepPrepared, type PreparedName, type Rest } from '../cache/prepared.js'
import type { Store } from '../cache/store.js'
import { QwasmError } from '../errors.js'
import { canHash } from '../loader/chunk.js'
import { ModelFiles } from '../loader/chunks.js'
import type { Gate } from '../loader/gate.js'
import { loadEngine } from '../loader/load.js'
import { withWeights } from '../loader/open.js'
import { isGguf } from '../loader/weights-file.js'
import { openIntegrity } from '../loader/open-integrity.js'
import { ProgressMeter } from '../loader/progress.js'
import { SourceChanged, type Source } from '../loader/source.js'
import type { Core, Engine } from '../runtime/core.js'
import type { Compile } from '../runtime/files.js'
import { weightBudget } from '../runtime/memory.js'
import { startCore, type Rung } from '../runtime/module.js'
import type { LoadProgress, Variant } from '../types.js'
import { moduleFiles } from './modules.js'
import type { LoadRequest, SourceSpec } from './protocol.js'

const ATTEMPTS = 3 // a source that changes more often than this while it is read is no model

export interface LoadPlatform {
  /** Whether it goes on after its answers, as a page does. A program may end: then weights are kept before a load ends. */
  stays: boolean
  openSource(spec: SourceSpec, gate: Gate): Promise<Source> | Source
  openStore(): Promise<Store | undefined>
  pause(): Promise<void>
  /** Fetches and compiles a wasm file. */
  compile: Compile
}

interface Loaded {
  core: Core
  engine: Engine
  rung: Rung
  notes: string[]
  fresh: PreparedName | undefined
}

export interface LoadedEngine extends Loaded {
  /** Keeps the weights for the next start, while the model rests. A model that works needs no cache: this never fails. */
  keep: (rest: Rest) => Promise<void>
}

export async function loadModel(
  platform: LoadPlatform,
  request: LoadRequest,
  gate: Gate,
  event: (progress: LoadProgress) => void
): Promise<LoadedEngine> {
  const meter = new ProgressMeter(event)
  const cache = await openCache(platform, request, meter)
  let loaded: Loaded
  try {
    loaded = await loadThrough(cache, platform, request, gate, meter)
  } finally {
    cache?.close()
  }
  const { engine, fresh } = loaded
  const keep = async (rest: Rest) => {
    if (fresh) await keepPrepared(() => cache!.reopen(), fresh, () => engine.weights(), rest).catch(() => {})
  }
  if (!platform.stays) await keep(AT_ONCE)
  meter.finish()
  return { ...loaded, keep }
}

async function loadThrough(
  cache: ModelCache | undefined,
  platform: LoadPlatform,
  request: LoadRequest,
  gate: Gate,
  meter: ProgressMeter
): Promise<Loaded> {
  const place = { files: (variant: Variant) => moduleFiles(variant, request.wasmUrl), compile: platform.compile }
  const { core, rung } = await startCore(place, request.variant, request.threads)
  for (let attempt = 1; ; attempt++) {
    const { weights = '' } = request.source
    const place = isGguf(weights) && { gguf: weights }
    const options = { ...request.core, ...place, parts: request.parts, threads: rung.threads, memory_budget: weightBudget(rung.maximumBytes) }
    const engine = core.newEngine(options)
    try {
      return { core, engine, rung, ...(await feed(platform, request, gate, { engine, cache, meter })) }
    } catch (error) {
      if (!(error instanceof SourceChanged) || attempt === ATTEMPTS) throw error
      cache?.downloads.drop(error.file)
      engine.free()
    }
  }
}

async function feed(
  platform: LoadPlatform,
  request: LoadRequest,
  gate: Gate,
  { engine, cache, meter }: { engine: Engine; cache: ModelCache | undefined; meter: ProgressMeter }
): Promise<{ notes: string[]; fresh: PreparedName | undefined }> {
  const source = withWeights(await platform.openSource(request.source, gate), request.source)
  try {
    const kept = cache?.downloads
    const integrity = await openIntegrity(request.integrity, source, kept, request.cache)
    const files = new ModelFiles({ source, kept, integrity, mode: request.cache })
    const phase = isRemote(request.source) ? 'download' : 'prepare'
    const { maxRequests } = request
    const fresh = await loadEngine({ engine, files, cache, meter, maxRequests, phase, anew: request.cache === 'reload' })
    files.release()
    return { notes: files.notes, fresh }
  } finally {
    await source.close()
  }
}

async function openCache(platform: LoadPlatform, request: LoadRequest, meter: ProgressMeter): Promise<ModelCache | undefined> {
  const { source, cache, parts } = request
  if (cache === 'no-store' || !isRemote(source)) return undefined
  const store = canHash() ? await platform.openStore() : undefined
  // A tokenizer is small: better fetched twice than waited for until another has loaded the whole model.
  const waiting = parts === 'model' ? () => meter.enter('wait') : undefined
  const opened = store && (await ModelCache.open(store, originOf(source), waiting))
  if (!opened && cache === 'only-if-cached') {
    throw new QwasmError('missing', 'Nothing but the cache may be used, and there is no cache: this place has no storage for it.')
  }
  return opened
}

const isRemote = (source: SourceSpec): source is SourceSpec & { kind: 'url' } => source.kind === 'url'

/** A source's URL without what may differ from time to time, such as the key of a signed URL. */
function originOf({ url, weights = '', hub }: SourceSpec & { kind: 'url' }): ModelOrigin {
  const { origin, pathname } = new URL(url)
  return { source: origin + pathname + weights, ...(hub && { hub: hub.id }) }
}
