// A small HTTP server over one folder that misbehaves on demand.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

/**
 * Serves `folder`; `behave(file, range)` may return a manner for a request:
 * { status, body } sends just that; 'whole' answers 200 to a range; 'hidden' leaves Content-Range out; 'shifted' sends another offset;
 * 'gzip' compresses; 'cut' ends the connection half-way; undefined is a good answer. `requests` tells what was asked.
 */
export async function startHostileServer(folder, behave = () => undefined) {
  const requests = []
  const server = createServer(async (request, response) => {
    const file = decodeURIComponent(new URL(request.url, 'http://localhost').pathname.slice(1))
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
    requests.push({ file, range: range ? [Number(range[1]), Number(range[2])] : null, url: request.url })
    const manner = behave(file, range, requests.length)
    if (typeof manner === 'object') return response.writeHead(manner.status, manner.headers).end(manner.body)
    const bytes = await readFile(join(folder, file)).catch(() => undefined)
    if (!bytes) return response.writeHead(404, { 'Content-Type': 'text/html' }).end('<html>not here</html>')
    answer(response, bytes, range, manner)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${server.address().port}/`
  const close = () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  }
  return { url, requests, close }
}

function answer(response, bytes, range, manner) {
  if (manner === 'gzip') {
    const packed = gzipSync(bytes)
    return response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': packed.length }).end(packed)
  }
  if (!range || manner === 'whole') return send(response, 200, {}, bytes, manner)
  const [start, end] = [Number(range[1]), Math.min(Number(range[2]), bytes.length - 1)]
  if (start >= bytes.length) return response.writeHead(416, { 'Content-Range': `bytes */${bytes.length}` }).end()
  const shift = manner === 'shifted' ? 8 : 0
  const headers = manner === 'hidden' ? {} : { 'Content-Range': `bytes ${start + shift}-${end + shift}/${bytes.length}` }
  send(response, 206, headers, bytes.subarray(start + shift, end + 1 + shift), manner)
}

function send(response, status, headers, bytes, manner) {
  response.writeHead(status, { ...headers, 'Content-Length': bytes.length })
  if (manner !== 'cut') return response.end(bytes)
  response.write(bytes.subarray(0, bytes.length >> 1), () => response.destroy())
}
