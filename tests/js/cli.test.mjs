// The command line as people run it: as a process with arguments, standard output and standard error.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { root } from '../support/golden.mjs'
import { nodeBest } from '../support/variants.mjs'
import { demo, readJson, small } from './support/models.mjs'

const cli = join(root, 'dist/cli.js')

/** Runs qwasm; `stdin` is its standard input, `closeAfter` ends the reading of standard output after so many bytes. */
function qwasm(args, { stdin, closeAfter = Infinity } = {}) {
  const child = spawn(process.execPath, [cli, ...args], { stdio: ['pipe', 'pipe', 'pipe'], timeout: 30_000 })
  const out = { stdout: '', stderr: '' }
  child.stdout.on('data', (data) => {
    out.stdout += data
    if (out.stdout.length > closeAfter) child.stdout.destroy()
  })
  child.stderr.on('data', (data) => (out.stderr += data))
  child.stdin.on('error', () => {}) // closed by a command that reads nothing
  child.stdin.end(stdin)
  return new Promise((resolve) => child.on('close', (code) => resolve({ ...out, code })))
}

const greedy = ['--temperature', '0']

describe('qwasm generate', () => {
  it('prints one JSON object with all that the package gives', async () => {
    const model = await loadModel(demo, { dtype: 'exact' })
    const { text, ids, promptIds } = await model.generate('Once upon a time', { temperature: 0, maxTokens: 12 }).result()
    await model.dispose()
    const args = [
      'generate',
      '--model',
      demo,
      '--dtype',
      'exact',
      '--prompt',
      'Once upon a time',
      '--max-tokens',
      '12',
      '--seed',
      '3',
      '--threads',
      '1',
      '--json',
      ...greedy,
    ]
    const { stdout, stderr, code } = await qwasm(args)
    assert.equal(code, 0)
    assert.equal(stderr, '')
    const { timings, ...result } = JSON.parse(stdout)
    assert.deepEqual(result, { text, ids, promptIds, finishReason: 'length', seed: 3, variant: nodeBest, threads: 1 })
    assert.equal(timings.decodeTokens, 12)
    assert.equal(stdout.trim().split('\n').length, 1)
  })

  it('streams text to standard output, and timings to standard error', async () => {
    const args = ['generate', '--prompt', 'Once upon a time', '--max-tokens', '8', ...greedy]
    const { stdout, stderr, code } = await qwasm(args)
    const { stdout: json } = await qwasm([...args, '--json'])
    assert.equal(code, 0)
    assert.equal(stdout, `${JSON.parse(json).text}\n`)
    assert.match(stderr, /^loaded in .* 8 tokens in .*(simd|relaxed), \d threads?\n$/)
  })

  it('feeds the text as it is, from standard input too, and ends at stop texts', async () => {
    const prompt = 'What is 2 + 2?'
    const piped = JSON.parse((await qwasm(['generate', '--json', '--max-tokens', '4', ...greedy], { stdin: prompt })).stdout)
    const given = JSON.parse((await qwasm(['generate', '--json', '--max-tokens', '4', '--prompt', prompt, ...greedy])).stdout)
    assert.deepEqual(piped.ids, given.ids)
    const stop = given.text.slice(2, 4)
    const stopped = JSON.parse(
      (await qwasm(['generate', '--json', '--prompt', prompt, '--stop', 'zzz', '--stop', stop, ...greedy])).stdout
    )
    assert.equal(stopped.text, given.text.slice(0, given.text.indexOf(stop)))
    assert.equal(stopped.finishReason, 'stop')
  })

  it('ends quietly when the reader has enough', async () => {
    const { stderr } = await qwasm(
      ['generate', '--prompt', 'Once', '--temperature', '2', '--seed', '1', '--max-tokens', '2000'],
      { closeAfter: 1 }
    )
    assert.doesNotMatch(stderr, /EPIPE|Error/)
  })
})

describe('qwasm chat', () => {
  it('applies the template, and tells thinking and answer apart', async () => {
    const args = ['chat', '--dtype', 'exact', '--prompt', 'What is 47 + 85?', ...greedy]
    const { variant, threads, ...result } = JSON.parse((await qwasm([...args, '--json', '--variant', 'simd-single'])).stdout)
    assert.deepEqual([variant, threads], ['simd-single', 1])
    assert.match(result.content, /132/)
    assert.match(result.reasoning, /7 \+ 5/)
    const { stdout, stderr } = await qwasm(args)
    assert.equal(stdout, `${result.content}\n`)
    assert.ok(stderr.startsWith(`${result.reasoning}\n\n`))
  })

  it('can go without thinking, and with a system message', async () => {
    const args = ['chat', '--prompt', 'Hi', '--json', '--max-tokens', '2', ...greedy]
    const { promptIds } = JSON.parse((await qwasm([...args, '--no-thinking', '--system', 'Be brief.'])).stdout)
    const model = await loadModel(demo)
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ]
    assert.deepEqual(promptIds, await model.encodeChat(messages, { thinking: false }))
    await model.dispose()
  })
})

describe('qwasm tokenize', () => {
  it('prints ids', async () => {
    const { text, ids } = readJson('tests/golden/demo-tokenizer.json').cases[2]
    assert.equal((await qwasm(['tokenize', '--prompt', text])).stdout, `${ids.join(' ')}\n`)
    assert.deepEqual(JSON.parse((await qwasm(['tokenize', '--json'], { stdin: text })).stdout), { text, ids })
  })
})

describe('qwasm inspect', () => {
  it('prints a table of what the model is and costs', async () => {
    const { stdout, code } = await qwasm(['inspect', '--context', '1000', '--bandwidth', '50'])
    assert.equal(code, 0)
    for (const line of [
      /Qwen3ForCausalLM \(qwen3\)/,
      /GQA: 6 query heads over 2 key-value heads \(3:1\)/,
      /total +3,148,544/,
      /at 1,000 tokens/,
      /50 GB\/s/,
      /q4 +[\d.]+ ms/,
    ]) {
      assert.match(stdout, line)
    }
  })

  it('counts at the model’s own context where none is given', async () => {
    assert.equal(JSON.parse((await qwasm(['inspect', '--json'])).stdout).operations_per_token.context, 2048)
  })

  it('prints JSON', async () => {
    const report = JSON.parse((await qwasm(['inspect', '--model', small, '--json', '--context', '10'])).stdout)
    assert.equal(report.operations_per_token.context, 10)
    assert.equal(report.decode_lower_bound.bandwidth, 20e9)
  })
})

describe('qwasm', () => {
  it('prints help and version', async () => {
    const { stdout, code } = await qwasm(['--help'])
    assert.equal(code, 0)
    for (const word of ['generate', 'chat', 'tokenize', 'inspect', '--model MODEL', '--no-thinking', '--bandwidth'])
      assert.ok(stdout.includes(word), word)
    assert.equal((await qwasm(['--version'])).stdout, `${readJson('package.json').version}\n`)
  })

  const misuse = {
    'a missing command': [[], /command/],
    'an unknown command': [['sing'], /'sing'/],
    'an unknown option': [['generate', '--loud'], /--loud/],
    'an option of another command': [['inspect', '--seed', '1'], /--seed.*inspect/],
    'a text without --prompt': [['generate', 'Hello'], /'Hello'.*--prompt/],
    'a number that is none': [['generate', '--max-tokens', 'many'], /--max-tokens.*'many'/],
    'a number out of its domain': [['generate', '--prompt', 'x', '--top-p', '2'], /topP.*2/],
    'thinking and no thinking': [['chat', '--prompt', 'x', '--thinking', '--no-thinking'], /--thinking/],
    'an unknown kind of cache': [['generate', '--prompt', 'x', '--kv', 'f8'], /kv.*'f8'/],
    'an unknown variant': [['generate', '--prompt', 'x', '--variant', 'turbo'], /'turbo'/],
  }
  for (const [name, [args, message]] of Object.entries(misuse)) {
    it(`says in one sentence what is wrong with ${name}`, async () => {
      const { stdout, stderr, code } = await qwasm(args)
      assert.deepEqual([stdout, code], ['', 2])
      assert.match(stderr, message)
      assert.match(stderr, /^qwasm: [^\n]+\n$/)
    })
  }

  it('ends with 1 where the model cannot be loaded', async () => {
    const { stderr, code } = await qwasm(['generate', '--prompt', 'x', '--model', '/nowhere'])
    assert.equal(code, 1)
    assert.match(stderr, /^qwasm: [^\n]*\/nowhere[^\n]*\n$/)
  })
})
