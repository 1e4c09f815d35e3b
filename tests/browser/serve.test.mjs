// The static server: ranges, headers, and what it refuses.
import assert from 'node:assert/strict'
import { mkdtemp, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { parseRange, startServer } from '../../scripts/serve.mjs'

let folder, site

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'qwasm-serve-'))
  await mkdir(join(folder, 'open'))
  await writeFile(join(folder, 'secret.txt'), 'secret')
  await writeFile(join(folder, 'open/index.html'), '<!doctype html>')
  await writeFile(join(folder, 'open/digits.bin'), '0123456789')
  await writeFile(join(folder, 'open/empty.wasm'), '')
  await symlink(join(folder, 'secret.txt'), join(folder, 'open/link.txt'))
  site = await startServer({ mounts: { '/': join(folder, 'open') } })
})
after(async () => {
  await site?.close()
  await rm(folder, { recursive: true })
})

/** A request whose path goes out as it is, dots and all (fetch would tidy it). */
function raw(path, { method = 'GET', headers = {} } = {}) {
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port: new URL(site.url).port, path, method, headers }, async incoming => {
      const chunks = await incoming.toArray()
      resolve({ status: incoming.statusCode, headers: incoming.headers, text: Buffer.concat(chunks).toString() })
    })
    outgoing.on('error', reject)
    outgoing.end()
  })
}

describe('the server', () => {
  it('sends ranges with 206 and the whole with 200', async () => {
    const whole = await raw('/digits.bin')
    assert.deepEqual([whole.status, whole.text, whole.headers['content-length']], [200, '0123456789', '10'])
    for (const [range, text, contentRange] of [
      ['bytes=2-4', '234', 'bytes 2-4/10'], ['bytes=7-', '789', 'bytes 7-9/10'], ['bytes=-3', '789', 'bytes 7-9/10'],
      ['bytes=8-99', '89', 'bytes 8-9/10'], ['bytes=-99', '0123456789', 'bytes 0-9/10'],
    ]) {
      const part = await raw('/digits.bin', { headers: { Range: range } })
      assert.deepEqual([part.status, part.text, part.headers['content-range']], [206, text, contentRange])
    }
  })

  it('answers 416 past the end and ignores a range it does not understand', async () => {
    const past = await raw('/digits.bin', { headers: { Range: 'bytes=10-' } })
    assert.deepEqual([past.status, past.headers['content-range']], [416, 'bytes */10'])
    for (const range of ['bytes=4-2', 'bytes=-', 'lines=1-2', 'bytes=0-1,3-4']) {
      assert.equal((await raw('/digits.bin', { headers: { Range: range } })).status, 200, range)
    }
    assert.equal(parseRange('bytes=0-', 0), 'unsatisfiable')
  })

  it('isolates the page, forbids foreign and inline scripts, and names types', async () => {
    const { headers } = await raw('/')
    assert.equal(headers['cross-origin-opener-policy'], 'same-origin')
    assert.equal(headers['cross-origin-embedder-policy'], 'require-corp')
    assert.match(headers['content-security-policy'], /script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'/)
    assert.match(headers['content-type'], /^text\/html/)
    assert.equal((await raw('/empty.wasm')).headers['content-type'], 'application/wasm')
  })

  it('stays inside its folder', async () => {
    for (const path of ['/../secret.txt', '/%2e%2e/secret.txt', '/..%2fsecret.txt', '/x/../../secret.txt', '/link.txt', '/%00', '/open']) {
      const { status, text } = await raw(path)
      assert.equal(status, 404, path)
      assert.ok(!text.startsWith('secret'))
    }
    assert.equal((await raw('/%zz')).status, 400)
  })

  it('answers HEAD without a body, an unchanged file with 304, and nothing but GET and HEAD', async () => {
    const head = await raw('/digits.bin', { method: 'HEAD' })
    assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', '10'])
    assert.equal((await raw('/digits.bin', { headers: { 'If-None-Match': head.headers.etag } })).status, 304)
    assert.equal((await raw('/digits.bin', { method: 'POST' })).status, 405)
  })

  it('takes the next port where one is in use', async () => {
    const port = Number(new URL(site.url).port)
    const next = await startServer({ port, mounts: {} })
    assert.ok(Number(new URL(next.url).port) > port)
    await next.close()
  })
})
