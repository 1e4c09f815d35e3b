// Embeddings and rankings: prompts one after the other in one sequence, so that what they have in common at their beginnings is computed once.
import { toEmbedding, withInstruction } from '../embed.js'
import { QwasmError } from '../errors.js'
import { AFTER, BEFORE, judged, NEEDED, rank } from '../rerank.js'
import { NO_LOGITS, type Session } from '../runtime/session.js'
import type { Embeddings, EmbedOptions, ModelInfo, RankedDocument, RerankOptions } from '../types.js'
import type { Batch } from './batch.js'
import type { Plain } from './protocol.js'
import type { Control } from './queue.js'
import type { Sequences } from './sequences.js'

/** What such a call has of the model. */
export interface Reading {
  info: ModelInfo
  batch: Batch
  sequences: Sequences
  control: Control
  /** Ids of a text; `special`: control tokens in it count as such. */
  encode: (text: string, special: boolean) => number[]
}

type Plan<T> = { prompt: (item: T) => ArrayLike<number>; name: (index: number) => string }

export async function embed(run: Reading, texts: readonly (string | Int32Array)[], options: Plain<EmbedOptions>): Promise<Embeddings> {
  const { dimensions, normalize, instruction } = options
  const { hiddenSize } = run.info
  if (dimensions !== undefined && dimensions > hiddenSize) {
    throw new QwasmError('invalid_argument', `embed: dimensions must be from 1 to ${hiddenSize}, the model's hidden size, not ${dimensions}.`)
  }
  const prompt = (text: string | Int32Array) => (typeof text === 'string' ? framed(run, withInstruction(text, instruction)) : text)
  if (instruction !== undefined && texts.some((text) => typeof text !== 'string')) {
    throw new QwasmError('invalid_argument', 'embed: an instruction can be put before texts only, not before token ids.')
  }
  const prompts = await makePrompts(run, texts, { prompt, name: (i) => `texts[${i}]` })
  const embeddings: Float32Array[] = []
  const cachedTokens = await runEach(run, prompts, NO_LOGITS, (session) => embeddings.push(toEmbedding(session.hidden(hiddenSize), dimensions, normalize)))
  return { embeddings, tokens: prompts.reduce((sum, ids) => sum + ids.length, 0), cachedTokens }
}

/** A text with what its tokenizer's post-processor puts around it. */
function framed({ info, encode }: Reading, text: string): number[] {
  return [...info.beginIds, ...encode(text, false), ...info.endIds]
}

export async function rerank(
  run: Reading,
  query: string,
  documents: readonly string[],
  { instruction }: Plain<RerankOptions>
): Promise<RankedDocument[]> {
  const [yes, no] = answers(run)
  const [before, after] = [run.encode(BEFORE, true), run.encode(AFTER, true)]
  const prompt = (document: string) => [...before, ...run.encode(judged(query, document, instruction), false), ...after]
  const prompts = await makePrompts(run, documents, { prompt, name: (i) => `the prompt of documents[${i}]` })
  const leads: number[] = []
  await runEach(run, prompts, 0, (session) => {
    const logits = session.logits(1, run.info.vocabSize)
    leads.push(logits[yes]! - logits[no]!)
  })
  return rank(leads)
}

/** The tokens of the two answers; an error where the model cannot be asked. */
function answers({ info, encode }: Reading): [number, number] {
  const token = (answer: string): number => {
    const ids = encode(answer, false)
    if (ids.length === 1) return ids[0]!
    throw new QwasmError('unsupported', `rerank: the tokenizer has no token '${answer}', so a model of Qwen3-Reranker's kind it is not.`)
  }
  const ids: [number, number] = [token('yes'), token('no')]
  for (const content of NEEDED) {
    if (info.addedTokens.some((token) => token.content === content)) continue
    throw new QwasmError('unsupported', `rerank: the tokenizer has no ${content}, so a model of Qwen3-Reranker's kind it is not.`)
  }
  return ids
}

/** All prompts, before any of them is run: one that cannot be run is told at once. */
async function makePrompts<T>({ info, batch, control }: Reading, items: readonly T[], { prompt, name }: Plan<T>): Promise<Int32Array[]> {
  const prompts: Int32Array[] = []
  for (const [i, item] of items.entries()) {
    const ids = (await batch.turn(control, () => Int32Array.from(prompt(item))))!
    if (ids.length > info.contextLength) {
      throw new QwasmError('context_overflow', `${name(i)} has ${ids.length} tokens, the context length is ${info.contextLength}.`)
    }
    const foreign = ids.find((id) => id >= info.vocabSize)
    if (foreign !== undefined) {
      throw new QwasmError('invalid_argument', `${name(i)}: the model has ids from 0 to ${info.vocabSize - 1}, not ${foreign}.`)
    }
    prompts.push(ids)
  }
  return prompts
}

/** Runs all prompts, and takes what each gives; how many tokens were known already. */
async function runEach(
  { batch, sequences, control }: Reading,
  prompts: readonly Int32Array[],
  logitsRows: number,
  take: (session: Session) => void
): Promise<number> {
  const sequence = sequences.begin(prompts[0]!)
  const { session } = sequence
  let known = 0
  try {
    for (const ids of prompts) {
      known += session.setPrompt(ids)
      await batch.prefill(control, (tokens) => sequences.withRoom(() => session.prefill(tokens, logitsRows)))
      take(session)
    }
  } finally {
    sequences.end(sequence)
  }
  return known
}
