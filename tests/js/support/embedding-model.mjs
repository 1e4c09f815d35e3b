// The demo model with what a model for embeddings and ranking has: a tokenizer that ends each text with <|endoftext|>, and a token 'yes'.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { demo, readJson, temporaryFolder } from './models.mjs'

export const golden = readJson('tests/golden/embeddings.json')

/** Its tokenizer.json; `more` takes the place of fields. */
export function embeddingTokenizer(more = {}) {
  const { vocab, merges, post_processor } = golden.changes
  const tokenizer = readJson('models/demo/tokenizer.json')
  const model = { ...tokenizer.model, vocab: { ...tokenizer.model.vocab, ...vocab }, merges: [...tokenizer.model.merges, ...merges] }
  return JSON.stringify({ ...tokenizer, model, post_processor, ...more })
}

/** The folder of such a model. */
export function embeddingModel(more) {
  const folder = temporaryFolder(demo)
  writeFileSync(join(folder, 'tokenizer.json'), embeddingTokenizer(more))
  return folder
}

/** An embedding of the golden file. */
export function goldenEmbedding({ embedding }) {
  return new Float32Array(Uint8Array.from(Buffer.from(embedding, 'base64')).buffer)
}

export function cosine(a, b) {
  const product = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0)
  return product(a, b) / Math.sqrt(product(a, a) * product(b, b))
}
