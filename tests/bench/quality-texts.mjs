// What the quality report measures on: held-out conversations and fresh questions, written by the demo model's own corpus scripts.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from '../../scripts/tools.mjs'

export const folder = join(root, 'build/bench/quality')

// The corpus that the model learnt has seed 1.
const CONVERSATION_SEED = 20_001
const QUESTION_SEED = 20_002

/** The text that a script of scripts/demo-model writes; they need Python 3 and nothing else. */
async function written(script, count, seed, name) {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, name)
  await run(script, 'python3', ['-B', join(root, `scripts/demo-model/${script}.py`), String(count), String(seed), path])
  return readFileSync(path, 'utf8')
}

/** Conversations, each a list of [text, 1 where the model learns it, else 0]. */
export async function heldOutConversations(count) {
  const lines = await written('make_corpus', count, CONVERSATION_SEED, 'conversations.jsonl')
  return lines.trimEnd().split('\n').map(line => JSON.parse(line))
}

/** Skill → list of [question, right answer]. */
export async function freshQuestions(count) {
  return JSON.parse(await written('make_questions', count, QUESTION_SEED, 'questions.json'))
}

/** A conversation's ids, and for each whether the model learns it. */
export async function encode(tokenizer, conversation) {
  const ids = [], learnt = []
  for (const [text, weight] of conversation) {
    const piece = await tokenizer.tokenize(text)
    ids.push(...piece)
    learnt.push(...piece.map(() => weight === 1))
  }
  return { ids, learnt }
}
