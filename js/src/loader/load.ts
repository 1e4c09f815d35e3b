// Feeds the engine: brings the headers and small files it wants, then its weights, as they were prepared once or row by row.
import type { ModelCache } from '../cache/model-cache.js'
import { restorePrepared, type PreparedName } from '../cache/prepared.js'
import { QwasmError } from '../errors.js'
import type { Engine, Want } from '../runtime/core.js'
import type { ModelFiles, Origin } from './chunks.js'
import type { ProgressMeter } from './progress.js'
import { RowStream } from './row-stream.js'
import { checkFileName } from './source.js'

export interface Loading {
  engine: Engine
  files: ModelFiles
  cache: ModelCache | undefined
  meter: ProgressMeter
  maxRequests: number
  /** Uses nothing that was kept. */
  anew: boolean
  /** What arriving bytes mean where they come from the source: over a network, or from a place so near that making them ready is the work. */
  phase: 'download' | 'prepare'
}

/** Loads everything that the engine wants. Where weights were prepared that the cache lacks, tells as what they can be kept. */
export async function loadEngine(loading: Loading): Promise<PreparedName | undefined> {
  const { engine, cache, meter } = loading
  meter.enter('headers')
  const names = await loadHeaders(loading)
  let fresh: PreparedName | undefined
  if (engine.weightsLayout !== '') {
    fresh = await loadWeights(loading, names)
    cache?.downloads.commit()
  }
  engine.loaded()
  return fresh
}

/** Answers wants until the layout of the weights is known or nothing more is wanted; returns the files that were there. */
async function loadHeaders(loading: Loading): Promise<string[]> {
  const { engine, files, maxRequests } = loading
  const names = new Set<string>()
  const inFlight = new Map<number, Promise<{ want: Want; parts: Uint8Array[] | 'missing' }>>()
  while (engine.weightsLayout === '') {
    let next: Want | 'wait' | 'loaded' = 'wait'
    while (inFlight.size < maxRequests && typeof (next = engine.nextWant()) === 'object') {
      const want = next
      checkFileName(want.file)
      const reading = readWant(files, want).then((parts) => ({ want, parts }))
      reading.catch(() => {}) // the race below reports the first failure; others must not be unhandled
      inFlight.set(want.id, reading)
    }
    if (inFlight.size === 0) {
      if (next === 'loaded') break
      throw new QwasmError('internal', 'The engine wants nothing although it is not loaded.')
    }
    const { want, parts } = await Promise.race(inFlight.values())
    inFlight.delete(want.id)
    if (parts === 'missing') pushMissing(engine, files, want)
    else {
      names.add(want.file)
      await push(loading, want, parts)
    }
  }
  return [...names].sort()
}

async function readWant(files: ModelFiles, { file, offset, length }: Want): Promise<Uint8Array[] | 'missing'> {
  if (length === 0) return files.whole(file)
  return files.range(file, offset, length)
}

async function fileSize(files: ModelFiles, file: string): Promise<number> {
  const state = await files.state(file)
  return state && state !== 'missing' ? state.size : -1
}

async function push({ engine, files, cache }: Loading, { id, file }: Want, parts: Uint8Array[]): Promise<void> {
  const size = await fileSize(files, file)
  try {
    engine.push(id, parts, size)
  } catch (error) {
    // Bytes that make no model are not worth keeping, though they are what the source gave: next time it may give others.
    if (error instanceof QwasmError && ['invalid_file', 'missing', 'not_finite'].includes(error.code)) cache?.downloads.clear()
    throw error
  }
}

function pushMissing(engine: Engine, files: ModelFiles, want: Want): void {
  try {
    engine.pushMissing(want.id)
  } catch (error) {
    if (!(error instanceof QwasmError) || error.code !== 'missing') throw error
    throw new QwasmError('missing', `${error.message.replace(/\.$/, '')} (${files.whereMissing(want.file)}).`)
  }
}

async function loadWeights(loading: Loading, names: string[]): Promise<PreparedName | undefined> {
  const { engine, files, cache, meter, anew } = loading
  // Weights with their stored values need no preparing: what was downloaded is as good.
  const prepares = cache && !/^(exact|stored)-/.test(engine.weightsLayout)
  const version = prepares ? await files.version(names.filter((name) => name === 'config.json' || /\.(safetensors|gguf)$/i.test(name))) : undefined
  const prepared = version === undefined ? undefined : await cache!.openPrepared(engine.weightsLayout, version)
  if (anew) prepared?.clear()
  if (prepared) {
    meter.expect([['prepared weights', engine.weights().length]])
    const restored = await restorePrepared(prepared, () => engine.weights(), (count) => meter.add('verify', 'prepared weights', count))
    if (restored) {
      engine.restoreWeights()
      return undefined
    }
  }
  await loadRows(loading)
  return prepared && { layout: engine.weightsLayout, version: version! }
}

async function loadRows(loading: Loading): Promise<void> {
  const { engine, files, meter, maxRequests, phase } = loading
  const wants: Want[] = []
  for (let next; typeof (next = engine.nextWant()) === 'object';) wants.push(next)
  for (const { file } of wants) checkFileName(file)
  meter.expect(wants.map(({ file, length }) => [file, length] as const))
  const onBytes = (file: string, count: number, origin: Origin) => meter.add(origin === 'kept' ? 'verify' : phase, file, count)
  const rows = new RowStream(files, wants, maxRequests, onBytes)
  for (const want of wants) await rows.take((parts) => push(loading, want, parts))
}
