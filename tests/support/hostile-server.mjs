// A file server for tests that misbehaves as asked: it spoils single answers, caps its speed, and dies after so many bytes.
import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'

const PART_BYTES = 256 * 1024
const EXPOSED = 'Accept-Ranges, Content-Encoding, Content-Range, ETag, Retry-After'

/**
 * Serves a folder at `url`, and at `elsewhere`, another origin. `behave(ask, plan)` is called for every request and may spoil the answer:
 * it changes the plan of a good one, returns { status, headers, body } to send just that, or returns nothing. `ask` is { file, range, count,
 * nth, url, headers, elsewhere, otherOrigin }: `range` is [start, end] or null, `count` and `nth` number the requests, in all and of this file;
 * `elsewhere` tells that it came to the other origin.
 * Options: `port`; `bandwidth` in bytes a second; `exposed`, the headers that other origins may see.
 *
 * The server has `requests` (every ask), `sent` and `sentOf` (bytes of bodies, in all and by file), and may be changed while it runs:
 * `behave`, `bandwidth`, and `cutAfter`: once so many bytes were sent in all, every connection is cut and none is accepted, until it is raised.
 */
export async function startHostileServer(folder, behave = () => undefined, options = {}) {
  const server = new HostileServer(folder, behave, options)
  await server.start(options.port ?? 0)
  return server
}

class HostileServer {
  requests = []
  sent = 0
  sentOf = new Map()
  cutAfter = Infinity
  #folder
  #exposed
  #servers = []
  #waiting = []
  #freeAt = 0
  #packed = new Map()

  constructor(folder, behave, { bandwidth = Infinity, exposed = EXPOSED }) {
    this.#folder = folder
    this.#exposed = exposed
    this.behave = behave
    this.bandwidth = bandwidth
  }

  async start(port) {
    for (const elsewhere of [false, true]) {
      const server = createServer((request, response) => {
        response.on('error', () => {}) // a client that went away
        this.#answer(request, response, elsewhere).catch(error => response.destroy(error))
      })
      await new Promise((resolve, reject) => server.on('error', reject).listen(elsewhere ? 0 : port, '127.0.0.1', resolve))
      this.#servers.push(server)
    }
    const [url, elsewhere] = this.#servers.map(server => `http://127.0.0.1:${server.address().port}/`)
    Object.assign(this, { url, elsewhere })
  }

  async close() {
    await Promise.all(this.#servers.map(server => {
      server.closeAllConnections()
      return new Promise(resolve => server.close(resolve))
    }))
  }

  /** Resolves once so many bytes of bodies were sent in all. */
  reached(bytes) {
    return new Promise(resolve => {
      this.#waiting.push({ bytes, resolve })
      this.#count('', 0)
    })
  }

  async #answer(request, response, elsewhere) {
    if (this.sent >= this.cutAfter) return request.socket.destroy()
    response.setHeader('Access-Control-Allow-Origin', '*')
    response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin')
    if (this.#exposed) response.setHeader('Access-Control-Expose-Headers', this.#exposed)
    if (request.method === 'OPTIONS') {
      return response.writeHead(204, { 'Access-Control-Allow-Headers': 'Authorization, Range', 'Access-Control-Max-Age': 60 }).end()
    }
    const ask = this.#ask(request, elsewhere)
    const plan = await planOf(join(this.#folder, ask.file), ask)
    const instead = await this.behave(ask, plan)
    if (instead) return response.writeHead(instead.status, instead.headers).end(instead.body)
    await this.#carryOut(plan, ask, response)
  }

  #ask(request, elsewhere) {
    const file = decodeURIComponent(new URL(request.url, 'http://localhost').pathname.slice(1))
    const [, start, end] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? []
    const range = start === undefined ? null : [Number(start), end === '' ? Infinity : Number(end)]
    const nth = this.requests.filter(earlier => earlier.file === file).length + 1
    const { url, headers } = request
    const otherOrigin = elsewhere ? this.url : this.elsewhere
    const ask = { file, range, count: this.requests.length + 1, nth, url, headers, elsewhere, otherOrigin }
    this.requests.push(ask)
    return ask
  }

  async #carryOut(plan, ask, response) {
    const { socket } = response
    if (plan.before === 'silence') return
    if (plan.before === 'close') return socket.destroy()
    if (plan.compress) {
      const body = await this.#compressed(plan)
      Object.assign(plan.headers, { 'Content-Encoding': 'gzip', 'Content-Length': body.length })
      plan.body = body
    }
    if (plan.unframed) response.removeHeader('Transfer-Encoding') // the connection's end is the body's
    for (const [name, value] of Object.entries(plan.headers)) if (value !== null) response.setHeader(name, value)
    response.writeHead(plan.status)
    response.flushHeaders()
    await this.#send(plan, ask, response)
    if (response.destroyed || plan.stop === 'stall') return
    if (plan.stop === undefined) return response.end()
    await new Promise(resolve => response.write('', resolve)) // what was written is on its way
    if (plan.stop === 'end') return response.end()
    await sleep(5)
    if (plan.stop === 'reset') socket.resetAndDestroy()
    else socket.destroy()
  }

  async #send(plan, ask, response) {
    let left = plan.stop === undefined ? Infinity : plan.stopAt
    let place = plan.start
    for await (const part of this.#parts(plan)) {
      if (left === 0) break
      const bytes = part.subarray(0, Math.min(left, this.cutAfter - this.sent))
      if (plan.flip >= place && plan.flip < place + bytes.length) bytes[plan.flip - place] ^= 1
      left -= bytes.length
      place += bytes.length
      await this.#write(bytes, response)
      if (response.destroyed) return
      this.#count(ask.file, bytes.length)
      if (plan.drip && place < plan.start + plan.drip) await sleep(50)
    }
  }

  async *#parts(plan) {
    const { path, start, end, body, extra, drip = 0 } = plan
    const slow = Math.min(start + drip, end)
    if (body) yield body
    else {
      if (slow > start) yield* createReadStream(path, { start, end: slow - 1, highWaterMark: 50 })
      const highWaterMark = Math.min(PART_BYTES, Math.max(1024, this.bandwidth / 20))
      if (end > slow) yield* createReadStream(path, { start: slow, end: end - 1, highWaterMark })
    }
    if (extra) yield extra
  }

  /** Compressed once, since that blocks this process, where a client in the same process waits. */
  async #compressed({ path, start, end }) {
    const key = `${path} ${start} ${end}`
    if (!this.#packed.has(key)) this.#packed.set(key, gzipSync((await readFile(path)).subarray(start, end), { level: 1 }))
    return this.#packed.get(key)
  }

  async #write(bytes, response) {
    if (this.bandwidth !== Infinity) {
      const now = performance.now()
      this.#freeAt = Math.max(now, this.#freeAt) + (1000 * bytes.length) / this.bandwidth
      await sleep(this.#freeAt - now)
    }
    if (response.destroyed || response.write(bytes)) return
    await new Promise(resolve => {
      const go = () => {
        response.off('drain', go).off('close', go)
        resolve()
      }
      response.on('drain', go).on('close', go)
    })
  }

  #count(file, bytes) {
    this.sent += bytes
    this.sentOf.set(file, (this.sentOf.get(file) ?? 0) + bytes)
    for (const { resolve } of this.#waiting.filter(({ bytes }) => bytes <= this.sent)) resolve()
    this.#waiting = this.#waiting.filter(({ bytes }) => bytes > this.sent)
    if (this.sent >= this.cutAfter) for (const server of this.#servers) server.closeAllConnections()
  }
}

/** The plan of a good answer; `behave` spoils it. Its fields beyond these are in misbehaviours.mjs. */
async function planOf(path, { range }) {
  const found = await stat(path).catch(() => undefined)
  if (!found?.isFile()) {
    const body = Buffer.from('<html>not here</html>')
    return { path, size: -1, status: 404, headers: { 'Content-Type': 'text/html', 'Content-Length': body.length }, start: 0, end: 0, body }
  }
  const { size, mtimeMs } = found
  const headers = {
    'Accept-Ranges': 'bytes', 'Content-Type': path.endsWith('.json') ? 'application/json' : 'application/octet-stream',
    ETag: `"${size.toString(16)}-${Math.floor(mtimeMs).toString(16)}"`, 'Last-Modified': new Date(mtimeMs).toUTCString(),
  }
  if (range && range[0] >= size) return { path, size, status: 416, headers: { ...headers, 'Content-Range': `bytes */${size}` }, start: 0, end: 0 }
  const [start, end] = range ? [range[0], Math.min(range[1] + 1, size)] : [0, size]
  headers['Content-Length'] = end - start
  if (range) headers['Content-Range'] = `bytes ${start}-${end - 1}/${size}`
  return { path, size, status: range ? 206 : 200, headers, start, end }
}
