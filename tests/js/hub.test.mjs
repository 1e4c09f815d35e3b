// Models by their ids: from a local folder of that name, out of the Hugging Face cache, or from a hub, with a token that goes nowhere else.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { inspect, loadModel, loadTokenizer } from '../../dist/node.js'
import { expectedBits, goldenCases, root, wordHash } from '../support/golden.mjs'
import { startHub } from '../support/hub.mjs'
import { demo, small, temporaryFolder } from './support/models.mjs'

const sharded = join(root, 'tests/golden/models/qwen3-sharded-f32')
const { ids, name, positions } = goldenCases('tests/golden/demo')[0]
const COMMIT = '0123456789abcdef0123456789abcdef01234567'
const TOKEN = 'hf_SeCrEt'

let hub, locked
before(async () => {
  const small2 = { main: small, 'refs/pr/1': sharded }
  hub = await startHub({ 'Owner/demo': { main: demo }, 'Owner/small': small2 })
  locked = await startHub({ 'Owner/demo': { main: demo }, 'Owner/small': small2 }, { token: TOKEN })
})
after(() => Promise.all([hub.close(), locked.close()]))

const variables = ['HF_ENDPOINT', 'HF_TOKEN', 'HF_HUB_OFFLINE', 'TRANSFORMERS_OFFLINE', 'HF_HOME', 'HF_HUB_CACHE', 'HUGGINGFACE_HUB_CACHE']
let cache
beforeEach(() => {
  for (const variable of variables) delete process.env[variable]
  process.env.HF_HOME = temporaryFolder()
  cache = join(process.env.HF_HOME, 'hub')
  for (const { requests, stored } of [hub, locked]) requests.length = stored.length = 0
})
afterEach(() => {
  for (const variable of variables) delete process.env[variable]
})

/** Loads the demo model, checks the bits of its logits, and gives its info. */
async function loadDemo(source, options) {
  const model = await loadModel(source, { dtype: 'exact', ...options })
  const bits = wordHash(await model.logits(ids, { positions }))
  await model.dispose()
  assert.equal(bits, expectedBits('demo', name))
  return model.info
}

/** Puts a folder into the cache as Hugging Face's libraries do, with links into blobs; `leaveOut` names files that never arrived. */
function putIntoCache(id, folder, { ref = 'main', leaveOut = [] } = {}) {
  const place = join(cache, `models--${id.replace('/', '--')}`)
  const snapshot = join(place, 'snapshots', COMMIT)
  mkdirSync(snapshot, { recursive: true })
  mkdirSync(join(place, 'blobs'), { recursive: true })
  mkdirSync(join(place, 'refs', ref, '..'), { recursive: true })
  writeFileSync(join(place, 'refs', ref), COMMIT)
  for (const file of readdirSync(folder)) {
    const blob = `blob-of-${file}`
    if (leaveOut.includes(file)) {
      writeFileSync(join(place, 'blobs', `${blob}.incomplete`), 'half')
      continue
    }
    copyFileSync(join(folder, file), join(place, 'blobs', blob))
    symlinkSync(join('../../blobs', blob), join(snapshot, file))
  }
  return snapshot
}

describe('a model by its hub’s id', () => {
  it('is fetched from the endpoint, large files from where that redirects to', async () => {
    const info = await loadDemo('Owner/demo', { endpoint: hub.endpoint })
    assert.equal(info.source, `${hub.endpoint}/Owner/demo/resolve/main/`)
    assert.ok(hub.requests.every(({ path }) => path.startsWith('/Owner/demo/resolve/main/')))
    assert.ok(hub.stored.length > 0)
    assert.ok([...hub.requests, ...hub.stored].every(({ authorization }) => authorization === undefined))
  })

  it('is that of the revision', async () => {
    const options = { endpoint: hub.endpoint, revision: 'refs/pr/1' }
    const report = await inspect('Owner/small', options)
    assert.deepEqual(report, await inspect(sharded))
    assert.ok(hub.requests.every(({ path }) => path.startsWith('/Owner/small/resolve/refs%2Fpr%2F1/')))
  })

  it('shows the token to the endpoint and to nobody else', async () => {
    const info = await loadDemo('Owner/demo', { endpoint: locked.endpoint, token: TOKEN })
    assert.ok(locked.requests.every(({ authorization }) => authorization === `Bearer ${TOKEN}`))
    assert.ok(locked.stored.length > 0)
    assert.ok(locked.stored.every(({ authorization }) => authorization === undefined))
    assert.ok(!JSON.stringify(info).includes(TOKEN))
    const elsewhere = await startHub({ 'Owner/demo': { main: demo } })
    await inspect(`${elsewhere.endpoint}/Owner/demo/resolve/main/`, { endpoint: locked.endpoint, token: TOKEN })
    assert.ok(elsewhere.requests.length > 0)
    assert.ok(elsewhere.requests.every(({ authorization }) => authorization === undefined))
    await elsewhere.close()
  })

  it('comes from HF_ENDPOINT with HF_TOKEN where no options say otherwise', async () => {
    process.env.HF_ENDPOINT = `${locked.endpoint}/mirror/`
    process.env.HF_TOKEN = ` ${TOKEN}\n`
    await inspect('Owner/demo')
    assert.ok(locked.requests.length > 0)
    assert.ok(locked.requests.every(({ path }) => path.startsWith('/mirror/Owner/demo/')))
    assert.ok(locked.requests.every(({ authorization }) => authorization === `Bearer ${TOKEN}`))
    process.env.HF_TOKEN = 'hf_other'
    await inspect('Owner/demo', { endpoint: locked.endpoint, token: TOKEN })
    await assert.rejects(inspect('Owner/demo'), { code: 'http' })
  })

  it('is found by the address of its page too, and by that of its weights', async () => {
    const options = { endpoint: locked.endpoint, token: TOKEN }
    const page = `${locked.endpoint}/Owner/small`
    assert.deepEqual(await inspect(page, options), await inspect(small))
    const report = await inspect(`${page}/blob/refs%2Fpr%2F1/model-00002-of-00005.safetensors`, options)
    assert.deepEqual(report, await inspect(sharded))
  })

  it('is read by the command line', async () => {
    const args = ['inspect', '--model', 'Owner/small', '--endpoint', locked.endpoint, '--revision', 'refs/pr/1', '--json']
    const env = { ...process.env, HF_TOKEN: TOKEN }
    const child = spawn(process.execPath, [join(root, 'dist/cli.js'), ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    let out = ''
    child.stdout.on('data', (data) => (out += data))
    assert.equal(await new Promise((resolve) => child.on('close', resolve)), 0)
    assert.deepEqual(JSON.parse(out), await inspect(sharded))
  })
})

describe('an error of a hub', () => {
  const rejects = (promise, code, ...words) =>
    assert.rejects(promise, (error) => {
      assert.equal(error.code, code, error.message)
      for (const word of words) assert.ok(error.message.includes(word), `${error.message} lacks ${word}`)
      assert.ok(!error.message.includes('SeCrEt'), error.message)
      return true
    })

  it('names what was asked and where, and says what may be the reason', async () => {
    const asked = [`${locked.endpoint}/Owner/demo/resolve/main/config.json`, '401', "'Owner/demo'", "'main'"]
    const reasons = ['gated', 'HF_TOKEN', `no local folder ${join(process.cwd(), 'Owner/demo')}`]
    await rejects(loadModel('Owner/demo', { endpoint: locked.endpoint }), 'http', ...asked, ...reasons)
    await rejects(loadModel('Owner/none', { endpoint: hub.endpoint }), 'http', "'Owner/none'", '401', 'may not exist')
    await rejects(loadModel('Owner/demo', { endpoint: hub.endpoint, revision: 'v9' }), 'missing', "'v9'", 'config.json', 'may not exist')
  })

  it('never shows the token, even where the server does', async () => {
    const promise = inspect('Owner/demo', { endpoint: locked.endpoint, token: 'hf_SeCrEt2' })
    await rejects(promise, 'http', '403', 'Not in the authorized list', 'token that was given may not open it')
    await rejects(inspect('Owner/demo', { token: 'hf_SeCrEt \n' }), 'invalid_argument', 'token')
    process.env.HF_TOKEN = 'hf_SeC rEt'
    await rejects(inspect('Owner/demo', { endpoint: locked.endpoint }), 'invalid_argument', 'token')
  })
})

describe('a local folder', () => {
  const inFolder = async (work) => {
    const before = process.cwd()
    process.chdir(temporaryFolder())
    try {
      await work(process.cwd())
    } finally {
      process.chdir(before)
    }
  }

  it('goes before a model on the hub of that name, and says how to write the other', () =>
    inFolder(async (folder) => {
      cpSync(small, 'Owner/small', { recursive: true })
      process.env.HF_ENDPOINT = hub.endpoint
      const model = await loadModel('Owner/small')
      await model.dispose()
      assert.equal(model.info.source, join(folder, 'Owner/small'))
      assert.equal(hub.requests.length, 0)
      const other = { message: new RegExp(`write its address, ${hub.endpoint}/Owner/small\\.`) }
      await assert.rejects(inspect('Owner/small', { revision: 'refs/pr/1' }), { code: 'invalid_argument', ...other })
      rmSync('Owner/small/config.json')
      await assert.rejects(inspect('Owner/small'), { code: 'missing', ...other })
      assert.deepEqual(await inspect(`${hub.endpoint}/Owner/small`), await inspect(small))
    }))

  it('is what a file of weights in it stands for, whatever the file’s name', async () => {
    const folder = temporaryFolder(small)
    renameSync(join(folder, 'model.safetensors'), join(folder, 'other name.safetensors'))
    cpSync(join(sharded, 'model.safetensors.index.json'), join(folder, 'model.safetensors.index.json'))
    assert.deepEqual(await inspect(join(folder, 'other name.safetensors')), await inspect(small))
    assert.deepEqual(await inspect(join(sharded, 'model-00003-of-00005.safetensors')), await inspect(sharded))
    const model = await loadModel(join(folder, 'other name.safetensors'))
    await model.dispose()
    assert.equal(model.info.source, join(folder, 'other name.safetensors'))
    await assert.rejects(inspect(join(folder, 'gone.safetensors')), { code: 'missing', message: /gone\.safetensors/ })
  })
})

describe('a model in the Hugging Face cache', () => {
  beforeEach(() => (process.env.HF_ENDPOINT = hub.endpoint))

  it('is used from there, and the hub is not asked', async () => {
    const snapshot = putIntoCache('Owner/demo', demo)
    assert.equal((await loadDemo('Owner/demo')).source, snapshot)
    assert.equal((await loadDemo('Owner/demo', { revision: COMMIT })).source, snapshot)
    assert.equal((await loadDemo(`${hub.endpoint}/Owner/demo`)).source, snapshot)
    assert.equal(hub.requests.length, 0)
  })

  it('is found by any name of a revision', async () => {
    putIntoCache('Owner/small', sharded, { ref: 'refs/pr/1' })
    assert.deepEqual(await inspect('Owner/small', { revision: 'refs/pr/1' }), await inspect(sharded))
    assert.equal(hub.requests.length, 0)
    assert.deepEqual(await inspect('Owner/small'), await inspect(small))
    assert.ok(hub.requests.length > 0)
  })

  for (const [what, folder, leaveOut] of [
    ['its weights', small, ['model.safetensors']],
    ['its config', small, ['config.json']],
    ['a shard', sharded, ['model-00004-of-00005.safetensors']],
  ]) {
    it(`is not used without ${what}`, async () => {
      putIntoCache('Owner/small', folder, { leaveOut })
      await inspect('Owner/small')
      assert.ok(hub.requests.length > 0)
    })
  }

  it('gives the tokenizer where that is there, whatever else is not', async () => {
    putIntoCache('Owner/demo', demo, { leaveOut: ['model.safetensors', 'tokenizer.json'] })
    const tokenizer = await loadTokenizer('Owner/demo')
    assert.equal(await tokenizer.detokenize(await tokenizer.tokenize('Hello')), 'Hello')
    await tokenizer.dispose()
    assert.equal(hub.requests.length, 0)
    rmSync(join(cache, `models--Owner--demo/snapshots/${COMMIT}/merges.txt`))
    await (await loadTokenizer('Owner/demo')).dispose()
    assert.ok(hub.requests.length > 0)
  })

  it('without its tokenizer is enough only where the hub must not be asked', async () => {
    const snapshot = putIntoCache('Owner/demo', demo, { leaveOut: ['tokenizer.json', 'vocab.json', 'merges.txt'] })
    assert.equal((await loadDemo('Owner/demo')).source, `${hub.endpoint}/Owner/demo/resolve/main/`)
    process.env.HF_HUB_OFFLINE = '1'
    const info = await loadDemo('Owner/demo')
    assert.equal(info.source, snapshot)
    assert.equal(info.hasTokenizer, false)
  })

  it('is all there is where HF_HUB_OFFLINE is set: what is not in it is an error that names the file', async () => {
    process.env.HF_HUB_OFFLINE = '1'
    const refused = (message) => assert.rejects(inspect('Owner/small'), { code: 'network', message })
    await refused(/HF_HUB_OFFLINE is set.*'Owner\/small'.*refs.main is missing/)
    putIntoCache('Owner/small', sharded, { leaveOut: ['model-00004-of-00005.safetensors'] })
    await refused(/model-00004-of-00005\.safetensors is missing/)
    assert.equal(hub.requests.length, 0)
  })
})
