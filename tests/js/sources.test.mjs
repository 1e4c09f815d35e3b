// Places that models lie in: every byte that arrives stands at the asked offset, whatever the server does; what is wrong is named.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { startHostileServer } from './support/hostile-server.mjs'
import { temporaryFolder } from './support/models.mjs'
import { importSource } from './support/source.mjs'

const { UrlFolder } = await importSource('loader/url.ts')
const { openFolder } = await importSource('loader/node-folder.ts')
const { FilesSource } = await importSource('loader/files.ts')
const { loadEngine } = await importSource('loader/load.ts')
const { fileListSpec } = await importSource('loader/given-files.ts')

const SIZE = 300_000
const data = Uint8Array.from({ length: SIZE }, (_, i) => (i * 2654435761) >>> 24)
const folder = temporaryFolder()
writeFileSync(join(folder, 'weights.bin'), data)
writeFileSync(join(folder, 'config.json'), '{"a": 1}')
mkdirSync(join(folder, 'dir with space'))
writeFileSync(join(folder, 'dir with space/ä.json'), '{}')

const receiver = { onBytes: () => {}, room: (length) => new Uint8Array(length) }
const servers = []
after(() => Promise.all(servers.map((server) => server.close())))

async function serve(behave) {
  const server = await startHostileServer(folder, behave)
  servers.push(server)
  return { server, source: new UrlFolder(server.url) }
}

/** An engine that wants the given ranges of one file, the first (a header) alone, and keeps what it gets. */
function recorder(ranges, file = 'weights.bin') {
  const got = []
  let next = 0
  return {
    got,
    loadBytes: ranges.reduce((sum, [, length]) => sum + length, 0),
    nextWant: () => {
      if (next === ranges.length) return got.length === ranges.length ? 'loaded' : 'wait'
      if (next > 0 && got.length === 0) return 'wait'
      const [offset, length] = ranges[next]
      return { id: next++, file, offset, length, optional: false }
    },
    push: (id, bytes, fileSize) => got.push({ id, bytes: Uint8Array.from(bytes), fileSize }),
    pushMissing: (id) => got.push({ id, missing: true }),
    loaded: () => {},
  }
}

/** Loads ranges of weights.bin from a source and checks each byte; returns the progress reports. */
async function loadRanges(
  source,
  ranges = [
    [0, 8],
    [8, 1000],
    [1008, 99_992],
    [101_000, 100_000],
    [201_000, 99_000],
  ],
  maxParallel = 4
) {
  const engine = recorder(ranges)
  const reports = []
  await loadEngine(engine, source, maxParallel, (progress) => reports.push(progress))
  assert.equal(engine.got.length, ranges.length)
  for (const { id, bytes } of engine.got) {
    const [offset, length] = ranges[id]
    assert.deepEqual(bytes, data.slice(offset, offset + length), `range ${id}`)
  }
  return reports
}

const loadFile = (source, file) => loadEngine(recorder([[0, 0]], file), source, 4, () => {})

describe('ranges of a folder behind a URL', () => {
  it('are fetched as asked, and progress ends at the total', async () => {
    const { server, source } = await serve()
    const reports = await loadRanges(source)
    assert.ok(server.requests.every(({ range }) => range))
    assert.deepEqual(reports.at(-1), { phase: 'ready', file: '', loaded: SIZE, total: SIZE, rate: null, secondsLeft: null })
    for (const { loaded, total } of reports) assert.ok(loaded <= total)
  })

  for (const [manner, requests] of [
    ['whole', 1],
    ['hidden', 2],
    ['shifted', 2],
  ]) {
    it(`are right where the server answers them ${manner}`, async () => {
      const { server, source } = await serve((file, range) => (range ? manner : undefined))
      await loadRanges(source)
      assert.equal(server.requests.length, requests)
    })
  }

  it('are right where only some answers are whole', async () => {
    const { source } = await serve((file, range, count) => (count % 2 === 0 ? 'whole' : undefined))
    await loadRanges(source)
  })

  it('are right backwards too, from a server without ranges', async () => {
    const { source } = await serve(() => 'whole')
    await loadRanges(
      source,
      [
        [200_000, 100_000],
        [100_000, 100_000],
        [0, 100_000],
      ],
      1
    )
  })

  it('are right where a compressed body is shorter than its length', async () => {
    const { source } = await serve(() => 'gzip')
    for (const { loaded, total } of await loadRanges(source)) assert.ok(loaded <= total)
  })

  it('survive a connection that is lost once', async () => {
    const { server, source } = await serve((file, range, count) => (count === 2 ? 'cut' : undefined))
    await loadRanges(source)
    assert.equal(server.requests.length, 6)
  })

  it('past the end are empty, with the true size', async () => {
    const { source } = await serve()
    const arrived = await source.read('weights.bin', SIZE + 5, 10, receiver)
    assert.equal(arrived.bytes.length, 0)
    assert.equal(arrived.fileSize, SIZE)
  })

  it('that end early are short', async () => {
    for (const manner of [undefined, 'whole']) {
      const { source } = await serve(() => manner)
      const { bytes } = await source.read('weights.bin', SIZE - 3, 10, receiver)
      assert.deepEqual(bytes, data.slice(SIZE - 3))
    }
  })

  it('keep the key of a signed URL, and escape names', async () => {
    const server = await startHostileServer(folder)
    servers.push(server)
    const source = new UrlFolder(`${server.url}?key=1`)
    assert.notEqual(await source.read('dir with space/ä.json', 0, 0, receiver), 'missing')
    assert.match(server.requests[0].url, /dir%20with%20space\/%C3%A4\.json\?key=1$/)
  })
})

describe('what is no model file', () => {
  const refused = async (behave, code, ...words) => {
    const { server, source } = await serve(behave)
    await assert.rejects(loadFile(source, 'config.json'), (error) => {
      assert.equal(error.code, code)
      for (const word of [`${server.url}config.json`, ...words])
        assert.ok(error.message.includes(word), `${error.message} lacks ${word}`)
      return true
    })
  }
  const page = '\n<!DOCTYPE html><html><body>Sign in</body></html>'

  it('is an HTML page with status 200', () => refused(() => ({ status: 200, body: page }), 'http', '200', 'HTML page'))
  it('is a Git LFS pointer', () =>
    refused(
      () => ({ status: 200, body: 'version https://git-lfs.github.com/spec/v1\noid sha256:1\n' }),
      'http',
      '200',
      'Git LFS pointer'
    ))
  it('is an answer of 401', () =>
    refused(() => ({ status: 401, body: '{"error": "Invalid token"}' }), 'http', '401', 'Invalid token'))
  it('is an answer of 429', () => refused(() => ({ status: 429, body: 'slow down' }), 'http', '429', 'slow down'))
  it('is an answer of 500', () => refused(() => ({ status: 500, body: '' }), 'http', '500'))

  it('is a server that is not there', async () => {
    const { server, source } = await serve()
    await server.close()
    await assert.rejects(loadFile(source, 'config.json'), { code: 'network', message: /config\.json/ })
  })

  it('is a missing file, which the engine hears of', async () => {
    const { source } = await serve()
    assert.equal(await source.read('nothing.json', 0, 0, receiver), 'missing')
    assert.equal(await source.read('nothing.bin', 0, 8, receiver), 'missing')
  })

  it('is a Git LFS pointer in a local folder', async () => {
    const local = temporaryFolder()
    writeFileSync(join(local, 'model.safetensors'), 'version https://git-lfs.github.com/spec/v1\n')
    const engine = recorder([[0, 8]], 'model.safetensors')
    const source = await openFolder(local)
    await assert.rejects(
      loadEngine(engine, source, 4, () => {}),
      { code: 'invalid_file', message: /model\.safetensors.*Git LFS/ }
    )
    await source.close()
  })
})

describe('file names from a model’s index', () => {
  for (const name of ['../secret', '/etc/passwd', 'a/../../b', 'http://elsewhere/x', 'a\\b', 'C:x', '', 'a//b', 'x?y', './x']) {
    it(`must stay inside the folder: ${JSON.stringify(name)} is refused`, async () => {
      await assert.rejects(
        loadEngine(recorder([[0, 8]], name), await openFolder(folder), 4, () => {}),
        { code: 'invalid_file' }
      )
    })
  }
})

describe('a local folder', () => {
  it('gives ranges, whole files, and tells what is missing', async () => {
    const source = await openFolder(folder)
    await loadRanges(source)
    assert.equal((await source.read('config.json', 0, 0, receiver)).bytes.length, 8)
    assert.equal((await source.read('weights.bin', SIZE + 1, 8, receiver)).bytes.length, 0)
    assert.equal(await source.read('nothing', 0, 0, receiver), 'missing')
    await source.close()
  })
  it('that does not exist is named', () =>
    assert.rejects(openFolder('/nowhere/at/all'), { code: 'missing', message: /\/nowhere\/at\/all/ }))
  it('is not a file', () =>
    assert.rejects(openFolder(join(folder, 'config.json')), { code: 'invalid_argument', message: /config\.json is a file/ }))
})

describe('files that were chosen', () => {
  it('give ranges, and tell what is missing', async () => {
    const { files } = fileListSpec([new File([data], 'weights.bin')])
    const source = new FilesSource(files)
    await loadRanges(source)
    assert.equal(await source.read('nothing', 0, 0, receiver), 'missing')
  })
})
