// `qwasm embed` and `qwasm rerank`: what the model makes of texts that it reads.
import type { Model } from '../types.js'
import { UsageError, type Values } from './options.js'

/** The texts behind the command, or the lines of standard input. */
export async function textsOf(command: 'embed' | 'rerank', { texts = [], query }: Values, readInput: () => Promise<string>): Promise<string[]> {
  if (command === 'rerank' && query === undefined) throw new UsageError('--query TEXT is missing.')
  if (texts.length > 0) return texts
  if (process.stdin.isTTY) throw new UsageError('Texts are missing: they stand behind the command, or come as lines of standard input.')
  return (await readInput()).split(/\r?\n/).filter((line) => line !== '')
}

/** Embeddings as JSON, or a line of numbers for each. */
export async function embed(model: Model, texts: readonly string[], { instruction, dimensions, json }: Values): Promise<string> {
  const { embeddings, tokens } = await model.embed(texts, { ...(instruction && { instruction }), ...(dimensions !== undefined && { dimensions }) })
  const plain = embeddings.map((embedding) => Array.from(embedding))
  return json ? `${JSON.stringify({ embeddings: plain, tokens })}\n` : plain.map((values) => `${values.join(' ')}\n`).join('')
}

/** A ranking as JSON, or a line with score and text for each. */
export async function rerank(model: Model, texts: readonly string[], { query = '', instruction, json }: Values): Promise<string> {
  const ranking = await model.rerank(query, texts, instruction ? { instruction } : {})
  const results = ranking.map((ranked) => ({ ...ranked, document: texts[ranked.index]! }))
  return json ? `${JSON.stringify({ results })}\n` : results.map(({ score, document }) => `${score.toFixed(4)} ${document}\n`).join('')
}
