// A model of random weights that has a tokenizer: a small golden model with the first tokens of the demo model's.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readJson, small, temporaryFolder } from './models.mjs'

const SPECIAL = ['<|endoftext|>', '<|im_end|>', '<think>', '</think>'] // ids 0 to 3; the model's end token is 1

/** The folder of such a model. */
export function randomModel() {
  const folder = temporaryFolder(small)
  const tokenizer = readJson('models/demo/tokenizer.json')
  const { vocab_size: size } = readJson('tests/golden/models/qwen3/config.json')
  const known = Object.entries(tokenizer.model.vocab).filter(([, id]) => id < size - SPECIAL.length)
  const vocab = Object.fromEntries(known.map(([token, id]) => [token, id + SPECIAL.length]))
  const text = merge => (Array.isArray(merge) ? merge.join('') : merge.replace(' ', ''))
  const merges = tokenizer.model.merges.filter(merge => text(merge) in vocab)
  const [first] = tokenizer.added_tokens
  const added = SPECIAL.map((content, id) => ({ ...first, id, content, special: id < 2 }))
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify({ ...tokenizer, model: { ...tokenizer.model, vocab, merges }, added_tokens: added }))
  return folder
}
