// `qwasm embed` and `qwasm rerank` as people run them.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { root } from '../support/golden.mjs'
import { embeddingModel, golden } from './support/embedding-model.mjs'

const folder = embeddingModel()
let model
before(async () => (model = await loadModel(folder, { dtype: 'exact' })))
after(() => model.dispose())

function qwasm(args, stdin = '') {
  const child = spawn(process.execPath, [join(root, 'dist/cli.js'), ...args], { timeout: 60_000 })
  const out = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr']) child[name].on('data', (data) => (out[name] += data))
  child.stdin.on('error', () => {}) // closed by a command that reads nothing
  child.stdin.end(stdin)
  return new Promise((resolve) => child.on('close', (code) => resolve({ ...out, code })))
}

const load = ['--model', folder, '--dtype', 'exact']
const texts = ['Once upon a time', '<|im_end|> x']

describe('qwasm embed', () => {
  it('prints the embeddings of its arguments as one JSON object', async () => {
    const { stdout, stderr, code } = await qwasm(['embed', ...load, '--json', '--dimensions', '16', '--instruction', 'Find.', ...texts])
    assert.deepEqual([code, stderr], [0, ''])
    const { embeddings, tokens } = await model.embed(texts, { dimensions: 16, instruction: 'Find.' })
    assert.deepEqual(JSON.parse(stdout), { embeddings: embeddings.map((values) => Array.from(values)), tokens })
  })

  it('prints a line of numbers for each line of standard input', async () => {
    const { stdout, code } = await qwasm(['embed', ...load], `${texts[0]}\r\n\n${texts[1]}\n`)
    assert.equal(code, 0)
    const lines = stdout.trimEnd().split('\n').map((line) => Float32Array.from(line.split(' '), Number))
    assert.deepEqual(lines, (await model.embed(texts)).embeddings)
  })

  it('refuses no texts, and options that are not its own, with status 2', async () => {
    for (const [args, message] of [
      [[], /at least one text/],
      [['--dimensions', '1000', 'a'], /from 1 to 256/],
      [['--query', 'q', 'a'], /--query is no option of embed/],
      [['--max-tokens', '3', 'a'], /--max-tokens is no option of embed/],
    ]) {
      const { stderr, code } = await qwasm(['embed', ...load, ...args])
      assert.equal(code, 2, stderr)
      assert.match(stderr, message)
    }
  })
})

describe('qwasm rerank', () => {
  const { query, documents } = golden.rankings[0]

  it('prints documents by their scores', async () => {
    const ranking = await model.rerank(query, documents)
    const { stdout, stderr, code } = await qwasm(['rerank', ...load, '--query', query, '--json', ...documents])
    assert.deepEqual([code, stderr], [0, ''])
    assert.deepEqual(JSON.parse(stdout), { results: ranking.map(({ index, score }) => ({ index, score, document: documents[index] })) })
    const plain = await qwasm(['rerank', ...load, '--query', query], documents.slice(0, 4).join('\n'))
    const [best] = await model.rerank(query, documents.slice(0, 4))
    assert.equal(plain.stdout.split('\n')[0], `${best.score.toFixed(4)} ${documents[best.index]}`)
    assert.equal(plain.stdout.split('\n').length, 5)
  })

  it('asks for a query before it loads a model', async () => {
    const { stderr, code } = await qwasm(['rerank', '--model', '/does/not/exist', 'a'])
    assert.equal(code, 2)
    assert.match(stderr, /--query TEXT is missing/)
  })
})
