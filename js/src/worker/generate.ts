// Runs a prompt and draws tokens: one call among those that share the engine.
import type { Guide, Lead } from '../chat/guide.js'
import { StopWatch } from '../chat/stop.js'
import { QwasmError } from '../errors.js'
import { formatGrammar } from '../grammar/response-format.js'
import type { Sampling, Session } from '../runtime/session.js'
import type { FinishReason, GenerateOptions, GenerateResult, Timings, TokenLogprob } from '../types.js'
import type { Batch } from './batch.js'
import type { Plain } from './protocol.js'
import type { Control } from './queue.js'

/** What the model itself says about answering. */
export interface Defaults {
  eosTokenIds: readonly number[]
  contextLength: number
  generationConfig: Record<string, unknown> | null
}

export interface Run {
  session: Session
  /** Runs up to so many tokens of the session's prompt; how many remain. */
  prefill: (tokens: number) => number
  defaults: Defaults
  loadMs: number
  batch: Batch
  control: Control
  /** Ids of a text in which tags are tags. */
  encode: (text: string) => number[]
  guide?: Guide | undefined
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
    presence_penalty: options.presencePenalty ?? 0,
    frequency_penalty: options.frequencyPenalty ?? 0,
    logit_bias: options.logitBias ?? {},
    seed: options.seed ?? (temperature > 0 ? crypto.getRandomValues(new Uint32Array(1))[0]! : 0),
  }
}

export async function generate(
  run: Run,
  prompt: Int32Array,
  options: Plain<GenerateOptions>,
  onText: (text: string) => void
): Promise<Omit<GenerateResult, 'samples'>> {
  const { session, defaults, batch, control } = run
  if (prompt.length === 0) throw new QwasmError('invalid_argument', 'The prompt has no tokens; at least one is needed.')
  const sampling = chooseSampling(options, defaults.generationConfig)
  session.setSampling(sampling)
  session.setGrammar(run.guide ? undefined : formatGrammar(options.responseFormat))
  const started = performance.now()
  const cachedTokens = session.setPrompt(prompt)
  await batch.prefill(control, run.prefill)
  const prefilled = performance.now()
  const answer = await decode(run, prompt, options, onText)
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

async function decode(run: Run, prompt: Int32Array, options: Plain<GenerateOptions>, onText: (text: string) => void) {
  const { session, defaults, batch, control, guide } = run
  const stops = new StopWatch(typeof options.stop === 'string' ? [options.stop] : (options.stop ?? []))
  // The last token of a full context need not be run itself, so one more than the free places is drawn.
  const room = defaults.contextLength - prompt.length + 1
  const limit = Math.min(options.maxTokens ?? room, room)
  const ids: number[] = []
  const logprobs: TokenLogprob[] = []
  let text = ''
  let finishReason: FinishReason | undefined
  let bound = { grammar: guide === undefined && (options.responseFormat?.type ?? 'text') !== 'text', ending: '' }
  const show = (sure: string) => {
    if (sure === '') return
    text += sure
    onText(sure)
  }
  const add = (next: readonly number[]) => {
    ids.push(...next)
    if (options.logprobs !== undefined) logprobs.push(session.logprobs(options.logprobs))
  }
  /** Adds what comes without being drawn; the next step runs it. Log-probabilities run it token by token. */
  const take = (lead: Lead | undefined) => {
    if (!lead || finishReason) return
    const next = run.encode(lead.text).slice(0, limit - ids.length)
    for (const part of options.logprobs === undefined ? [next] : next.map((id) => [id])) {
      if (part.length > 0) session.append(prompt.length + ids.length, part)
      add(part)
    }
    show(stops.push(lead.text))
    if (stops.hit) finishReason = 'stop'
    else if (ids.length >= limit) finishReason = 'length'
    if (lead.grammar === undefined) return
    session.setGrammar(lead.grammar)
    bound = { grammar: true, ending: lead.ending ?? '' }
  }
  const ending = () => (bound.ending === '' ? undefined : { text: bound.ending })
  take(guide?.start())
  while (!finishReason) {
    const id = await batch.step(session, control)
    if (id === undefined) {
      finishReason = 'abort'
      break
    }
    const ended = defaults.eosTokenIds.includes(id) && (!options.ignoreEos || bound.grammar)
    const instead = ended ? guide?.instead() : undefined
    if (instead) {
      take(instead) // in place of the end token, which has not been run
      continue
    }
    if (!ended || bound.ending === '') {
      add([id])
    }
    if (ended) {
      take(ending())
      finishReason ??= 'stop'
      break
    }
    const piece = session.piece()
    show(stops.push(piece))
    if (stops.hit) finishReason = 'stop'
    else if (bound.grammar && session.complete) {
      take(ending())
      finishReason ??= 'stop'
    } else if (ids.length >= limit) finishReason = 'length'
    take(guide?.after(piece))
  }
  show(stops.push(session.flush()))
  show(stops.end())
  return { text, ids, finishReason, ...(options.logprobs !== undefined && { logprobs }) }
}
