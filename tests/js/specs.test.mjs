// What callers may name as a model's source, and what the worker is told of it: hub ids, addresses, files of weights, chosen files.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { importSource } from './support/source.mjs'

const { hubGguf, hubGgufSpec, hubOf, hubSpec, isHubId } = await importSource('loader/hub.ts')
const { addressSpec } = await importSource('loader/specs.ts')
const { fileListSpec, filesFromDrop, givenSpec } = await importSource('loader/given-files.ts')
const { hubCacheFolder, offlineBy } = await importSource('loader/hf-cache.ts')

const hub = hubOf({})
const address = (url, options = {}, base = undefined) => addressSpec(url, hubOf(options), base)

describe('a hub’s id', () => {
  for (const id of ['Qwen/Qwen3-0.6B', 'a/b', 'some-one/x_1.5', '0/0', '_a/b-', 'models/demo']) {
    it(`is ${id}`, () => assert.equal(isHubId(id), true))
  }
  const paths = ['./a/b', 'a/b/', '/a/b', '../b', 'a/.b', '.a/b', 'a', 'a/b/c', 'a//b', 'm/model.safetensors', 'm/a.gguf']
  for (const other of [...paths, 'https://a/b', 'a b/c', 'a/b?c', 'ä/b', '', new URL('https://a.example/b'), undefined]) {
    it(`is not ${other}`, () => assert.equal(isHubId(other), false))
  }

  it('is a folder below the endpoint, at a revision', () => {
    assert.equal(hubSpec('Qwen/Qwen3-0.6B', hub).url, 'https://huggingface.co/Qwen/Qwen3-0.6B/resolve/main/')
    const spec = hubSpec('a/b', hubOf({ endpoint: 'https://mirror.example/hf/', revision: 'refs/pr/1', token: 't' }))
    assert.deepEqual(spec, {
      kind: 'url',
      url: 'https://mirror.example/hf/a/b/resolve/refs%2Fpr%2F1/',
      hub: { id: 'a/b', revision: 'refs/pr/1', endpoint: 'https://mirror.example/hf' },
      token: 't',
    })
  })

  it('takes no revision, endpoint or token that could lead elsewhere', () => {
    for (const revision of ['..', 'a/../b', '/a', 'a/', 'a b', 'a\\b', 'a:b']) {
      assert.throws(() => hubSpec('a/b', hubOf({ revision })), { code: 'invalid_argument' }, revision)
    }
    for (const endpoint of ['ftp://a.example', 'mirror', 'https://me:pass@a.example', 'https://a.example/?x']) {
      assert.throws(() => hubOf({ endpoint }), { code: 'invalid_argument', message: /endpoint/ }, endpoint)
    }
    assert.throws(() => hubOf({ token: 'hf_secret\nX: y' }), { code: 'invalid_argument', message: /^(?!.*secret).*token/ })
  })
})

describe('a GGUF file on the hub', () => {
  it('is the repository’s id and the file, which may lie in a folder', () => {
    assert.deepEqual(hubGguf('a/b/x.gguf'), { id: 'a/b', file: 'x.gguf' })
    assert.equal(hubGgufSpec(hubGguf('a/b/Q4/x y.gguf'), hub).url, 'https://huggingface.co/a/b/resolve/main/Q4/')
    assert.equal(hubGgufSpec(hubGguf('a/b/Q4/x y.gguf'), hub).weights, 'x y.gguf')
    assert.deepEqual(address('https://huggingface.co/a/b/blob/v1/x.gguf'), { ...hubSpec('a/b', hubOf({ revision: 'v1' })), weights: 'x.gguf' })
    assert.equal(address('https://huggingface.co/a/b/resolve/main/x.gguf?download=true').weights, 'x.gguf')
  })
  for (const other of ['a/x.gguf', './a/b/x.gguf', '/a/b/x.gguf', 'a/b/../x.gguf', 'a/b/x.safetensors', 'a/b//x.gguf', 'https://a/b/x.gguf', undefined]) {
    it(`is not ${other}`, () => assert.equal(hubGguf(other), undefined))
  }
})

describe('an address', () => {
  it('is a folder, which ends with a slash whoever writes it', () => {
    assert.deepEqual(address('https://a.example/m'), { kind: 'url', url: 'https://a.example/m/' })
    assert.equal(address('m/n?x=1#y', {}, 'https://a.example/p/').url, 'https://a.example/p/m/n/?x=1')
    assert.equal(address('./a/b', {}, 'https://a.example/p/').url, 'https://a.example/p/a/b/')
  })

  for (const [file, weights] of [
    ['model.safetensors', 'model.safetensors'],
    ['a%20b.safetensors', 'a b.safetensors'],
    ['model-00001-of-00002.safetensors', 'model.safetensors.index.json'],
    ['x.fp16-00002-of-00002.safetensors', 'x.fp16.safetensors.index.json'],
    ['model.safetensors.index.json', 'model.safetensors.index.json'],
    ['model.gguf', 'model.gguf'],
    ['m-00002-of-00003.gguf', 'm-00002-of-00003.gguf'],
  ]) {
    it(`of ${file} is its folder, with ${weights} for weights`, () => {
      assert.deepEqual(address(`https://a.example/m/${file}?key=1`), { kind: 'url', url: 'https://a.example/m/?key=1', weights })
    })
  }

  it('is no nonsense', () => {
    assert.throws(() => address('http://'), { code: 'invalid_argument' })
    assert.throws(() => address('https://me:secret@a.example/m'), { code: 'invalid_argument', message: /^(?!.*secret).*a\.example/ })
  })

  it('on the hub is the model there, as people copy it', () => {
    for (const copied of ['', '/tree/main', '/tree/main/', '/resolve/main/']) {
      assert.deepEqual(address(`https://huggingface.co/a/b${copied}`), hubSpec('a/b', hub), copied)
    }
    assert.deepEqual(address('https://huggingface.co/a/b/tree/refs%2Fpr%2F1').hub.revision, 'refs/pr/1')
    assert.deepEqual(address('https://huggingface.co/a/b', { revision: 'v2' }).hub.revision, 'v2')
    assert.deepEqual(address('https://huggingface.co/a/b/blob/v1/x.safetensors'), {
      ...hubSpec('a/b', hubOf({ revision: 'v1' })),
      weights: 'x.safetensors',
    })
    assert.equal(address('https://huggingface.co/a/b/').url, 'https://huggingface.co/a/b/')
    assert.equal(address('https://huggingface.co/a/b/resolve/main/sub/folder').url, 'https://huggingface.co/a/b/resolve/main/sub/folder/')
  })

  it('gets the token below the hub’s endpoint only', () => {
    const options = { token: 't', endpoint: 'https://hub.example/hf' }
    assert.equal(address('https://hub.example/hf/a/b', options).token, 't')
    assert.equal(address('https://hub.example/hf/a/b/resolve/main/sub/', options).token, 't')
    const others = ['https://hub.example/x/', 'https://hub.example.evil/hf/a/b', 'http://hub.example/hf/a/b', 'https://hub.example/hfx/a/b']
    for (const url of [...others, 'https://huggingface.co/a/b', 'https://hub.example/hf/../a/b']) {
      assert.equal(address(url, options).token, undefined, url)
    }
  })

  it('has one revision: another one that is asked is refused', () => {
    const refused = (url, message) => assert.throws(() => address(url, { revision: 'v1' }), { code: 'invalid_argument', message })
    refused('https://a.example/m/', /revision \('v1'\).*a\.example\/m/)
    refused('https://huggingface.co/a/b/tree/main', /'v1'.*'main'/)
  })
})

describe('files that were chosen', () => {
  const file = (path, text = '') =>
    Object.defineProperty(new File([text], path.split('/').at(-1)), 'webkitRelativePath', { value: path })
  const names = (list) => fileListSpec(list).files.map(({ name }) => name)

  it('count by the last part of their path, the nearest first', async () => {
    const { files, place } = fileListSpec([
      file('m/onnx/config.json', 'far'),
      file('m/config.json', 'near'),
      file('m/x/y/config.json', 'farther'),
    ])
    assert.equal(place, '1 given file')
    assert.equal(await files[0].blob.text(), 'near')
  })

  it('do not count where they or their folders are hidden', () => {
    assert.deepEqual(names([file('m/.cache/config.json'), file('m/._a'), file('m/a/tokenizer.json')]), ['tokenizer.json'])
  })

  it('are those of one model', () => {
    const two = [file('m/a/config.json'), file('m/b/config.json')]
    const message = /m\/a\/config\.json and m\/b\/config\.json/
    assert.throws(() => fileListSpec(two), { code: 'invalid_argument', message })
    assert.deepEqual(names([...two, file('m/config.json')]), ['config.json'])
  })

  it('may give their weights any name, if it is the only one', () => {
    assert.deepEqual(names([file('config.json'), file('x.safetensors')]), ['config.json', 'model.safetensors'])
    const shard = 'x-00001-of-00001.safetensors'
    assert.deepEqual(names([file('x.safetensors.index.json'), file(shard)]), ['model.safetensors.index.json', shard])
    assert.deepEqual(names([file('x.safetensors'), file('model.safetensors')]), ['x.safetensors', 'model.safetensors'])
  })

  it('may be one GGUF model, by its first part, where no other weights are among them', () => {
    const weights = (...paths) => fileListSpec(paths.map((path) => file(path))).weights
    assert.equal(weights('x.gguf'), 'x.gguf')
    assert.equal(weights('m/x-00002-of-00002.gguf', 'm/config.json', 'm/x-00001-of-00002.gguf'), 'x-00001-of-00002.gguf')
    assert.equal(weights('x.gguf', 'config.json', 'model.safetensors'), undefined)
    assert.throws(() => weights('b.gguf', 'a.gguf'), { code: 'invalid_argument', message: /several GGUF models.*'a\.gguf', 'b\.gguf'/ })
  })

  it('may be a single one, and must be some', async () => {
    assert.equal((await givenSpec(new File(['{}'], 'config.json'))).files.length, 1)
    await assert.rejects(givenSpec([]), { code: 'invalid_argument' })
    assert.equal(await givenSpec('a/b'), undefined)
  })
})

/** A folder as a browser's handle shows it; { name: text or folder }. */
function handle(name, content) {
  if (typeof content === 'string') return { kind: 'file', name, getFile: async () => new File([content], name) }
  const children = Object.entries(content).map(([child, inner]) => handle(child, inner))
  return {
    kind: 'directory',
    name,
    async *values() {
      yield* children
    },
  }
}

describe('a folder’s handle', () => {
  it('gives the files in it and in its folders, the nearest first', async () => {
    const folder = { sub: { 'config.json': 'far', 'a.json': 'a' }, '.git': { x: 'x' }, 'config.json': 'near' }
    const { files, place } = await givenSpec(handle('m', folder))
    assert.equal(place, "the folder 'm'")
    const texts = await Promise.all(files.map(async ({ name, blob }) => [name, await blob.text()]))
    assert.deepEqual(texts, [
      ['config.json', 'near'],
      ['a.json', 'a'],
    ])
  })

  it('is walked down a few levels only', async () => {
    const deep = (levels) => (levels === 0 ? { 'deep.json': '' } : { folder: deep(levels - 1) })
    const { files } = await givenSpec(handle('m', { ...deep(3), 'config.json': '' }))
    assert.deepEqual(files.map(({ name }) => name), ['config.json', 'deep.json'])
    assert.deepEqual((await givenSpec(handle('m', { ...deep(4), 'config.json': '' }))).files.length, 1)
  })

  it('of a folder with thousands of files is refused', async () => {
    const many = Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`${i}.txt`, '']))
    await assert.rejects(givenSpec(handle('home', many)), { code: 'invalid_argument', message: /home holds more than 2000 files/ })
  })

  it('that may not be read is an error with its name', async () => {
    const refuse = () => {
      throw new DOMException('Not allowed', 'NotAllowedError')
    }
    const locked = { kind: 'directory', name: 'm', values: refuse }
    await assert.rejects(givenSpec(locked), { code: 'io', message: /^m cannot be read: Not allowed/ })
  })
})

describe('a drop', () => {
  it('gives its files and those in its folders', async () => {
    const leaf = (path) => ({ isFile: true, name: path, file: (resolve) => resolve(new File([''], path)) })
    const folder = (name, entries) => ({
      isFile: false,
      name,
      createReader: () => {
        const rest = [...entries]
        return { readEntries: (resolve) => resolve(rest.splice(0, 100)) } // as Chromium does
      },
    })
    const many = Array.from({ length: 250 }, (_, i) => leaf(`${i}.txt`))
    const item = (entry) => ({ kind: 'file', webkitGetAsEntry: () => entry })
    const files = await filesFromDrop({
      items: [
        item(folder('m', many)),
        item(leaf('a.json')),
        { kind: 'string', getAsFile: () => null },
        { kind: 'file', getAsFile: () => new File([''], 'b.json') }, // where the browser has no entries
      ],
    })
    assert.equal(files.length, 252)
    assert.deepEqual(files.slice(0, 2).map(({ name }) => name), ['a.json', 'b.json'])
    assert.equal(files.at(-1).webkitRelativePath, 'm/249.txt')
  })
})

describe('the Hugging Face cache', () => {
  it('lies where its variables say, in their order', () => {
    const all = { HF_HUB_CACHE: '/1', HUGGINGFACE_HUB_CACHE: '/2', HF_HOME: '/3', XDG_CACHE_HOME: '/4' }
    const places = ['/1', '/2', '/3/hub', '/4/huggingface/hub']
    for (const [i, name] of Object.keys(all).entries()) {
      assert.equal(hubCacheFolder(all), places[i])
      all[name] = ''
    }
    assert.match(hubCacheFolder({}), /[/\\]\.cache[/\\]huggingface[/\\]hub$/)
    assert.doesNotMatch(hubCacheFolder({ HF_HOME: '~/hf' }), /~/)
  })
  it('is all there is where a variable says so', () => {
    assert.equal(offlineBy({ HF_HUB_OFFLINE: '1' }), 'HF_HUB_OFFLINE')
    assert.equal(offlineBy({ HF_HUB_OFFLINE: '0', TRANSFORMERS_OFFLINE: 'true' }), 'TRANSFORMERS_OFFLINE')
    assert.equal(offlineBy({ HF_HUB_OFFLINE: '' }), undefined)
  })
})
