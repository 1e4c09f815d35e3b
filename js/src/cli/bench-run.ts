// Measures one combination of dtype, KV cache and module in this process.
import { createHash } from 'node:crypto'
import { inspect, loadModel } from '../node.js'
import type { HubOptions, LoadOptions, Model } from '../types.js'
import { peakMemory } from './machine.js'
import { hubOptions, type Values } from './options.js'

export interface Combination {
  dtype: string
  kv: string
  variant: string
}

export interface BenchRun extends Combination {
  threads: number
  loadMs: number
  prefill: { tokens: number; firstTokenMs: number; tokensPerSecond: number }[]
  /** attentionShare: the part of a token's time that is there at this position and not yet at the first. */
  decode: { position: number; tokensPerSecond: number; attentionShare: number; bytesPerToken: number; bytesPerSecond: number }[]
  /** Bytes per second at which the same threads read the same weights. */
  readBandwidth: number
  memory: { peak: number; weights: number; kv: number }
  /** Of the logits after a fixed prompt: equal in all modules. */
  logitsHash: string
}

interface Plan {
  prompts: number[]
  positions: number[]
  tokens: number
  times: number
}

const FULL: Plan = { prompts: [32, 256, 1024], positions: [64, 1000, 4000], tokens: 24, times: 3 }
const QUICK: Plan = { prompts: [32, 128], positions: [64, 256], tokens: 8, times: 1 }
const ONCE_FROM = 1000 // longer prompts take long enough to be measured once
const LOGITS_AFTER = 32

export async function measure(
  source: string,
  combination: Combination,
  values: Values
): Promise<BenchRun> {
  const { threads, quick } = values
  const hub = hubOptions(values)
  const plan = quick ? QUICK : FULL
  const readShare = await shareThatDecodeReads(source, hub)
  const contextLength = Math.max(...plan.prompts, ...plan.positions) + 256
  const model = await loadModel(source, { ...combination, ...hub, threads, contextLength } as LoadOptions)
  try {
    await run(model, fixedIds(model, 16, 0), 16) // until V8 has optimized what runs
    const prefill = []
    for (const tokens of plan.prompts) prefill.push(await measurePrefill(model, tokens, plan))
    const decode = []
    for (const position of plan.positions) decode.push(await measureDecode(model, position, plan, readShare))
    const { dtype, kv, variant, threads: used, loadMs, weightBytes, kvBytesPerToken } = model.info
    const first = decode[0]!.tokensPerSecond
    return {
      ...{ dtype, kv, variant, threads: used, loadMs, prefill },
      decode: decode.map((at) => ({ ...at, attentionShare: Math.max(0, 1 - at.tokensPerSecond / first) })),
      readBandwidth: await model.readBandwidth(),
      memory: { peak: peakMemory(), weights: weightBytes, kv: (plan.positions.at(-1)! + plan.tokens) * kvBytesPerToken },
      logitsHash: await hashLogits(model),
    }
  } finally {
    await model.dispose()
  }
}

/** A token reads all weights but an untied embedding, of which it is one row. */
async function shareThatDecodeReads(source: string, hub: HubOptions): Promise<number> {
  const { total, read_per_token: read } = (await inspect(source, hub))['parameters'] as Record<string, number>
  return read! / total!
}

/** Ids that look random and are the same everywhere. Another seed (below the vocabulary's size) has another first id, so nothing is cached. */
function fixedIds(model: Model, count: number, seed: number): number[] {
  const ids = [seed % model.info.vocabSize]
  for (let state = seed + 1; ids.length < count;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    ids.push(Math.floor((state / 2 ** 32) * model.info.vocabSize))
  }
  return ids
}

async function run(model: Model, ids: number[], maxTokens: number) {
  return (await model.generate(ids, { maxTokens, temperature: 0, repetitionPenalty: 1, ignoreEos: true }).result()).timings
}

async function measurePrefill(model: Model, tokens: number, plan: Plan): Promise<BenchRun['prefill'][number]> {
  const best = { firstTokenMs: Infinity, tokensPerSecond: 0 }
  const times = tokens > ONCE_FROM ? 1 : plan.times
  for (let time = 0; time < times; time++) {
    const { prefillTokens, prefillMs, decodeMs } = await run(model, fixedIds(model, tokens, tokens + time), 1)
    best.firstTokenMs = Math.min(best.firstTokenMs, prefillMs + decodeMs)
    best.tokensPerSecond = Math.max(best.tokensPerSecond, (1000 * prefillTokens) / prefillMs)
  }
  return { tokens, ...best }
}

/** The sequence grows from position to position, and what was run for the last one is kept. */
async function measureDecode(model: Model, position: number, plan: Plan, readShare: number) {
  const ids = fixedIds(model, position, 1)
  let tokensPerSecond = 0
  for (let time = 0; time < plan.times; time++) {
    // The first token is drawn from the prompt's logits: it costs nothing.
    const { decodeMs } = await run(model, ids, plan.tokens + 1)
    tokensPerSecond = Math.max(tokensPerSecond, (1000 * plan.tokens) / decodeMs)
  }
  const { weightBytes, kvBytesPerToken } = model.info
  const bytesPerToken = weightBytes * readShare + (position + plan.tokens / 2) * kvBytesPerToken
  return { position, tokensPerSecond, bytesPerToken, bytesPerSecond: bytesPerToken * tokensPerSecond }
}

async function hashLogits(model: Model): Promise<string> {
  const logits = await model.logits(fixedIds(model, LOGITS_AFTER, 2), { positions: 'last' })
  return createHash('sha256').update(new Uint8Array(logits.buffer)).digest('hex').slice(0, 16)
}
