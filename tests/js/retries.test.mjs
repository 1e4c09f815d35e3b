// What a download does when things go wrong for a while: how often it tries again, how long it waits, and how it is paused.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startHostileServer } from '../support/hostile-server.mjs'
import { behaviour } from '../support/misbehaviours.mjs'
import { folder, quickly, read, readWhole, serve, SIZE, transport, truth } from './support/transport.mjs'

const { Attempts, Gate, Passing, UrlFolder, retryAfter } = transport

/** What a read of config.json fails with at a server that behaves so, and how many requests and which waits that took. */
async function failure(behave, more) {
  const server = await serve(behave)
  const patience = quickly(more)
  const error = await read(new UrlFolder(server.url, { patience }), 'config.json').then(assert.fail, (error) => error)
  assert.ok(error.message.startsWith(`${server.url}config.json`), error.message)
  return { error, requests: server.requests.length, waits: patience.waits }
}

describe('a failure that may pass', () => {
  it('is tried again six times, after pauses that double from half a second to eight seconds', async () => {
    const { error, requests, waits } = await failure(behaviour('503'))
    assert.equal(requests, 6)
    assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000])
    assert.deepEqual([error.code, error.status], ['http', 503])
    assert.match(error.message, /503 Service Unavailable, with "busy".* tried 6 times/)
    assert.deepEqual((await failure(behaviour('503'), { attempts: 8 })).waits.slice(4), [8000, 8000, 8000])
  })

  it('waits a random part of a pause, and half of it at least', async () => {
    assert.deepEqual((await failure(behaviour('503'), { random: () => 0 })).waits, [250, 500, 1000, 2000, 4000])
  })

  it('is tried anew after every byte of progress', async () => {
    let [tries, progress] = [0, 0]
    const attempts = new Attempts(quickly({ attempts: 3 }), new Gate())
    const attempt = async () => {
      if (++tries % 2 === 0) progress++
      if (tries < 20) throw new Passing('network', 'lost.')
      return 'done'
    }
    assert.equal(await attempts.run(attempt, undefined, () => progress), 'done')
  })

  it('is tried as often as stat is told', async () => {
    for (const attempts of [1, 3]) {
      const server = await serve(behaviour('503'))
      await assert.rejects(new UrlFolder(server.url, { patience: quickly() }).stat('config.json', attempts), { code: 'http' })
      assert.equal(server.requests.length, attempts)
    }
  })

  it('is a server that is not there yet', async () => {
    const server = await startHostileServer(folder)
    const port = Number(new URL(server.url).port)
    await server.close()
    const { url } = server
    const patience = quickly()
    const refused = await read(new UrlFolder(url, { patience }), 'config.json').then(assert.fail, (error) => error)
    assert.equal(refused.code, 'network')
    assert.match(refused.message, /could not be fetched: .*ECONNREFUSED.* tried 3 times/)

    let later
    const waiting = quickly({ sleep: async () => void (later ??= await startHostileServer(folder, undefined, { port })) })
    await readWhole(new UrlFolder(url, { patience: waiting }))
    await later.close()
  })

  it('is a server that says nothing for too long', async () => {
    const { error, requests } = await failure(behaviour('silence'), { stall: 150 })
    assert.equal(requests, 3)
    assert.equal(error.code, 'network')
    assert.match(error.message, /nothing came for 0.15 s/)
  })
})

describe('a failure for good', () => {
  for (const [name, ...words] of [
    ['400', '400', 'bad'],
    ['401', '401', 'Invalid token'],
    ['403', '403', 'restricted'],
    ['no content', '204'],
  ]) {
    it(`is an answer of ${words[0]}: it is asked for once, and what was found is told`, async () => {
      const { error, requests } = await failure(behaviour(name))
      assert.equal(requests, 1)
      assert.equal(error.status, Number(words[0]))
      for (const word of words) assert.ok(error.message.includes(word), `${error.message} lacks ${word}`)
    })
  }

  it('is a page in place of a file, with the host that it came from', async () => {
    for (const [name, words] of [
      ['page', /status 200\) holds an HTML page/],
      ['portal', /status 200, from http:\/\/127.*\) holds an HTML page/],
    ]) {
      const { error, requests } = await failure(behaviour(name))
      assert.match(error.message, words)
      assert.equal(requests, name === 'page' ? 1 : 2)
    }
  })
})

describe('a server that asks to wait', () => {
  const busyOnce = (header) => ({ count }) => (count === 1 ? { status: 429, headers: { 'Retry-After': header } } : undefined)
  const waited = async (header) => {
    const patience = quickly()
    await readWhole(new UrlFolder((await serve(busyOnce(header))).url, { patience }))
    return patience.waits.reduce((sum, ms) => sum + ms, 0)
  }

  it('is waited for, in seconds or until a date', async () => {
    assert.equal(await waited('7'), 7000)
    assert.equal(await waited(new Date(1_700_000_009_000).toUTCString()), 9000)
  })
  it('is asked again after the usual pause where what it asks is no time, or past', async () => {
    for (const header of ['0', 'soon', new Date(1e12).toUTCString()]) assert.equal(await waited(header), 500)
  })
  it('for more than a minute is an error that says how long', async () => {
    const { error, requests } = await failure(behaviour('429 for an hour'))
    assert.equal(requests, 1)
    assert.match(error.message, /429 .*slow down.* asks to wait 3600 s/)
  })
  it('holds up all requests of the source', async () => {
    const busy = { status: 503, headers: { 'Retry-After': '10' } }
    const server = await serve(({ file, nth }) => (file === 'config.json' && nth === 1 ? busy : undefined))
    const patience = quickly()
    const source = new UrlFolder(server.url, { patience })
    const start = patience.now()
    const first = readWhole(source, 'config.json')
    while (patience.waits.length === 0) await sleep(1)
    await readWhole(source)
    assert.ok(patience.now() - start >= 10_000)
    await first
  })
  it('may write it in any way that HTTP knows', () => {
    assert.equal(retryAfter('12', 0), 12_000)
    assert.equal(retryAfter('Thu, 01 Jan 1970 00:00:05 GMT', 1000), 4000)
    assert.equal(retryAfter('never', 0), undefined)
    assert.equal(retryAfter(null, 0), undefined)
  })
})

describe('a gate', () => {
  /** A slow server, a source behind a gate, and a read of the weights that is under way. */
  async function underWay(behave) {
    const server = await serve(behave, { bandwidth: 1e6 })
    const gate = new Gate()
    const patience = quickly()
    const source = new UrlFolder(server.url, { gate, patience })
    const reading = read(source, 'model.safetensors', 0, SIZE)
    await server.reached(60_000)
    return { server, gate, patience, source, reading }
  }

  it('that is shut stops what flows; opened, reading goes on where it stood, and nothing counts as failed', async () => {
    const { server, gate, patience, reading } = await underWay()
    gate.pause()
    assert.equal(gate.paused, true)
    await sleep(100)
    const { sent } = server
    assert.ok(sent < SIZE)
    await sleep(100)
    assert.equal(server.sent, sent)
    gate.resume()
    const { bytes } = await reading
    assert.deepEqual(bytes, truth['model.safetensors'])
    const [, second] = server.requests
    assert.equal(server.requests.length, 2)
    assert.ok(second.range[0] > 0 && second.range[0] <= sent)
    assert.deepEqual(patience.waits, [])
  })

  it('that is shut again and again delays, and no more', async () => {
    const { gate, reading, patience } = await underWay()
    for (let i = 0; i < 10; i++) {
      gate.pause()
      await sleep(5)
      gate.resume()
      await sleep(20)
    }
    assert.deepEqual((await reading).bytes, truth['model.safetensors'])
    assert.deepEqual(patience.waits, [])
  })

  it('works for a server without ranges too', async () => {
    const { gate, reading } = await underWay(behaviour('whole'))
    gate.pause()
    await sleep(20)
    gate.resume()
    assert.deepEqual((await reading).bytes, truth['model.safetensors'])
  })

  it('that is shut lets no request through', async () => {
    const server = await serve()
    const gate = new Gate()
    gate.pause()
    const reading = readWhole(new UrlFolder(server.url, { gate }))
    await sleep(50)
    assert.equal(server.requests.length, 0)
    gate.resume()
    await reading
  })
})

describe('headers of one’s own', () => {
  const headers = { Authorization: 'Bearer secret' }

  it('come with every request', async () => {
    const server = await serve()
    const source = new UrlFolder(server.url, { headers })
    await source.stat('config.json')
    await readWhole(source)
    await read(source, 'model.safetensors', 5, 10)
    assert.deepEqual(server.requests.map((request) => request.headers.authorization), Array(3).fill('Bearer secret'))
  })
  it('follow a redirect on the same host, and Authorization does not leave it', async () => {
    for (const [name, last] of [
      ['redirect', 'Bearer secret'],
      ['redirect elsewhere', undefined],
    ]) {
      const server = await serve(behaviour(name))
      await readWhole(new UrlFolder(server.url, { headers }))
      assert.equal(server.requests.length, 2)
      assert.equal(server.requests[0].headers.authorization, 'Bearer secret')
      assert.equal(server.requests[1].headers.authorization, last)
    }
  })
})

describe('an address', () => {
  it('keeps the key of a signed URL, and names are escaped', async () => {
    const server = await serve()
    const source = new UrlFolder(`${server.url}?key=1`)
    assert.equal(await source.stat('dir with space/ä.json'), 'missing')
    assert.match(server.requests[0].url, /dir%20with%20space\/%C3%A4\.json\?key=1$/)
  })
})
