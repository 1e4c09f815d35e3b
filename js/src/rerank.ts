// Ranking as Qwen3-Reranker does it: a prompt that asks for 'yes' or 'no', and a score from the logits of the two.
import type { RankedDocument } from './types.js'

const DEFAULT_INSTRUCTION = 'Given a web search query, retrieve relevant passages that answer the query'

/** What stands around the texts; here control tokens count as such. */
export const BEFORE =
  '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. ' +
  'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
export const AFTER = '<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n'

/** The control tokens that it takes. */
export const NEEDED = ['<|im_start|>', '<|im_end|>']

/** What is judged, which is plain text. */
export function judged(query: string, document: string, instruction = DEFAULT_INSTRUCTION): string {
  return `<Instruct>: ${instruction}\n<Query>: ${query}\n<Document>: ${document}`
}

/** The ranking by `leads`: how far the logit of 'yes' is above that of 'no'. Of equals, the first given comes first. */
export function rank(leads: readonly number[]): RankedDocument[] {
  const order = [...leads.keys()].sort((a, b) => leads[b]! - leads[a]!)
  return order.map((index) => ({ index, score: probability(leads[index]!) }))
}

/** The softmax of two logits: that of the one which is `lead` above the other. */
function probability(lead: number): number {
  const other = exp(-Math.abs(lead))
  return (lead < 0 ? other : 1) / (1 + other)
}

/** e^x for x <= 0, by sums and products alone: Math.exp differs from engine to engine in its last bit. */
function exp(x: number): number {
  if (x < -700) return 0
  let sum = 1
  for (let n = 20; n > 0; n--) sum = 1 + (sum * x) / 1024 / n
  for (let i = 0; i < 10; i++) sum *= sum
  return sum
}
