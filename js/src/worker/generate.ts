// Runs a prompt and draws tokens, in slices short enough that the caller's messages get in between.
import { StopWatch } from '../chat/stop.js'
import { QwasmError } from '../errors.js'
import type { Sampling, Session } from '../runtime/core.js'
import type { FinishReason, GenerateOptions, GenerateResult, Timings } from '../types.js'
import type { Plain } from './protocol.js'
import type { Control } from './queue.js'

// A slice reads all weights once. Qwen3-0.6B in q4 on 2 threads: 157 tokens/s by 16, 173 by 32, 183 by 64. A caller's abort takes effect at
// once; what waits for the slice's end are other calls and `stop()`.
const SLICE_MS = 400
const MOST_TOKENS = 64
const LEAST_TOKENS = 8
const TILE = 4 // the kernels take tokens by fours

/** Chooses how many prompt tokens to run at once, from how long the last ones took. */
export class SlicePacer {
  #tokens = 2 * LEAST_TOKENS

  async run(slice: (tokens: number) => Promise<number> | number, pause: () => Promise<void>): Promise<void> {
    for (let remaining = 1; remaining > 0;) {
      const tokens = this.#tokens
      const start = performance.now()
      remaining = await slice(tokens)
      const spent = performance.now() - start
      if (remaining > 0) this.#tokens = this.#next(tokens, spent)
      await pause()
    }
  }

  #next(tokens: number, spent: number): number {
    const fitting = Math.floor((tokens * SLICE_MS) / Math.max(spent, 0.1) / TILE) * TILE
    return Math.max(LEAST_TOKENS, Math.min(fitting, 2 * tokens, MOST_TOKENS))
  }
}

/** What the model itself says about answering. */
export interface Defaults {
  eosTokenIds: readonly number[]
  contextLength: number
  generationConfig: Record<string, unknown> | null
}

export interface Run {
  session: Session
  defaults: Defaults
  loadMs: number
  pacer: SlicePacer
  control: Control
  pause: () => Promise<void>
}

/** Explicit options, then generation_config.json where it samples at all, then greedy. */
export function chooseSampling(options: Plain<GenerateOptions>, config: Record<string, unknown> | null): Sampling {
  const sampled = config?.['do_sample'] === true ? config : {}
  const pick = (option: number | undefined, name: string, otherwise: number): number => {
    const value = option ?? sampled[name] ?? otherwise
    return typeof value === 'number' ? value : otherwise
  }
  const temperature = pick(options.temperature, 'temperature', sampled === config ? 1 : 0)
  return {
    temperature,
    top_k: pick(options.topK, 'top_k', 0),
    top_p: pick(options.topP, 'top_p', 1),
    min_p: pick(options.minP, 'min_p', 0),
    repetition_penalty: pick(options.repetitionPenalty, 'repetition_penalty', 1),
    seed: options.seed ?? (temperature > 0 ? crypto.getRandomValues(new Uint32Array(1))[0]! : 0),
  }
}

export async function generate(
  run: Run,
  prompt: Int32Array,
  options: Plain<GenerateOptions>,
  onText: (text: string) => void
): Promise<GenerateResult> {
  const { session, defaults, control, pause } = run
  if (prompt.length === 0) throw new QwasmError('invalid_argument', 'The prompt has no tokens; at least one is needed.')
  const sampling = chooseSampling(options, defaults.generationConfig)
  session.setSampling(sampling)
  const started = performance.now()
  const cachedTokens = session.setPrompt(prompt)
  await run.pacer.run(
    (tokens) => (control.stopped ? 0 : session.prefill(tokens)),
    async () => {
      await pause()
      control.throwIfAborted()
    }
  )
  const prefilled = performance.now()
  const answer = await decode(run, prompt.length, options, onText)
  const timings: Timings = {
    loadMs: run.loadMs,
    prefillTokens: prompt.length - cachedTokens,
    cachedTokens,
    prefillMs: prefilled - started,
    decodeTokens: answer.ids.length,
    decodeMs: performance.now() - prefilled,
  }
  return { ...answer, promptIds: Array.from(prompt), seed: sampling.seed, timings }
}

async function decode(run: Run, promptLength: number, options: Plain<GenerateOptions>, onText: (text: string) => void) {
  const { session, defaults, control, pause } = run
  const stops = new StopWatch(typeof options.stop === 'string' ? [options.stop] : (options.stop ?? []))
  // The last token of a full context need not be run itself, so one more than the free places is drawn.
  const room = defaults.contextLength - promptLength + 1
  const limit = Math.min(options.maxTokens ?? room, room)
  const ids: number[] = []
  let text = ''
  let finishReason: FinishReason | undefined
  const show = (sure: string) => {
    if (sure === '') return
    text += sure
    onText(sure)
  }
  while (!finishReason) {
    if (control.stopped) {
      finishReason = 'abort'
      break
    }
    const id = session.step()
    ids.push(id)
    if (!options.ignoreEos && defaults.eosTokenIds.includes(id)) {
      finishReason = 'stop'
      break
    }
    show(stops.push(session.piece()))
    if (stops.hit) finishReason = 'stop'
    else if (ids.length >= limit) finishReason = 'length'
    await pause()
    control.throwIfAborted()
  }
  show(stops.push(session.flush()))
  show(stops.end())
  return { text, ids, finishReason }
}
