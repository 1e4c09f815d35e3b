// A static server for the demo page and the browser tests: ranges, isolation headers, a strict content security policy.
import { createReadStream } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('../', import.meta.url))

const MIME_TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
}

/** URL prefix → folder; the longest prefix that fits wins. */
export const PAGE_MOUNTS = { '/': join(root, 'web'), '/dist/': join(root, 'dist'), '/models/': join(root, 'models'), '/models/smollm2/': join(root, 'build/models/smollm2') }

// Models may come from any hub or mirror; nothing else may come from elsewhere.
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "worker-src 'self'", "connect-src 'self' https:", "style-src 'self'",
  "img-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
].join('; ')

const BASE_HEADERS = {
  'Accept-Ranges': 'bytes',
  'Cache-Control': 'no-cache',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
}
const ISOLATION_HEADERS = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' }

function answer(response, status, headers, text = '') {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': Buffer.byteLength(text), ...headers })
  response.end(text)
}

/** The file behind a URL: { path, size, etag }, or null where there is none inside the mounted folders. */
async function findFile(mounts, url) {
  const prefix = Object.keys(mounts).filter(mount => url.startsWith(mount)).sort((a, b) => b.length - a.length)[0]
  if (prefix === undefined || url.includes('\0')) return null
  const name = url.slice(prefix.length)
  try {
    const folder = await realpath(mounts[prefix])
    const path = await realpath(join(folder, name === '' || name.endsWith('/') ? `${name}index.html` : name))
    // Dots and links were followed above; what is outside the folder now is an escape.
    if (!path.startsWith(folder + sep)) return null
    const about = await stat(path)
    return about.isFile() ? { path, size: about.size, etag: `"${about.size.toString(36)}-${Math.floor(about.mtimeMs).toString(36)}"` } : null
  } catch {
    return null
  }
}

/** First and last byte of a Range header; null: send the whole file; 'unsatisfiable': status 416. */
export function parseRange(header, size) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '')
  if (!match || (match[1] === '' && match[2] === '')) return null
  if (match[1] === '') {
    const count = Math.min(Number(match[2]), size)
    return count === 0 ? 'unsatisfiable' : { first: size - count, last: size - 1 }
  }
  const first = Number(match[1])
  const last = match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1)
  if (match[2] !== '' && Number(match[2]) < first) return null
  return first >= size ? 'unsatisfiable' : { first, last }
}

function sendFile(request, response, file, headers) {
  const about = { ...headers, ETag: file.etag }
  if (request.headers['if-none-match'] === file.etag) return void response.writeHead(304, about).end()
  const ifRange = request.headers['if-range']
  const range = ifRange && ifRange !== file.etag ? null : parseRange(request.headers.range, file.size)
  if (range === 'unsatisfiable') return answer(response, 416, { ...about, 'Content-Range': `bytes */${file.size}` })
  const { first, last } = range ?? { first: 0, last: file.size - 1 }
  response.writeHead(range ? 206 : 200, {
    ...about,
    'Content-Type': MIME_TYPES[extname(file.path).toLowerCase()] ?? 'application/octet-stream',
    'Content-Length': last - first + 1,
    ...(range && { 'Content-Range': `bytes ${first}-${last}/${file.size}` }),
  })
  if (request.method === 'HEAD' || file.size === 0) return void response.end()
  const stream = createReadStream(file.path, { start: first, end: last })
  stream.on('error', () => response.destroy())
  response.on('close', () => stream.destroy())
  stream.pipe(response)
}

/** The request handler; `isolation: false` leaves out the headers that give a page threads, `policy: null` the content security policy. */
export function makeHandler({ mounts = PAGE_MOUNTS, isolation = true, policy = CONTENT_SECURITY_POLICY } = {}) {
  const headers = { ...BASE_HEADERS, ...(policy && { 'Content-Security-Policy': policy }), ...(isolation && ISOLATION_HEADERS) }
  return async (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return answer(response, 405, { ...headers, Allow: 'GET, HEAD' }, 'Only GET and HEAD are answered here.\n')
    }
    let path
    try {
      path = decodeURIComponent(request.url.split(/[?#]/)[0])
    } catch {
      return answer(response, 400, headers, 'The address is not valid percent-encoding.\n')
    }
    const file = await findFile(mounts, path)
    if (file) sendFile(request, response, file, headers)
    else answer(response, 404, headers, `There is no ${path} here.\n`)
  }
}

/** Listens on 127.0.0.1 at `port`, or at the next free one; resolves with { server, url, close }. */
export async function startServer({ port = 0, ...options } = {}) {
  const server = createServer(makeHandler(options))
  for (let attempt = port; ; attempt++) {
    try {
      await new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(attempt, '127.0.0.1', () => resolve(server.off('error', reject)))
      })
      break
    } catch (error) {
      if (error.code !== 'EADDRINUSE' || attempt >= port + 100) throw error
    }
  }
  const close = () => new Promise(resolve => {
    server.close(resolve)
    server.closeAllConnections()
  })
  return { server, url: `http://127.0.0.1:${server.address().port}/`, close }
}

/** Serves the demo page as the command line says; prints the address. */
export async function serveFromCommandLine() {
  const { values } = parseArgs({ options: { port: { type: 'string', default: '8080' }, 'no-isolation': { type: 'boolean', default: false } } })
  const port = Number(values.port)
  if (!Number.isInteger(port) || port < 0 || port > 65535) throw new Error(`--port must be a whole number from 0 to 65535, not ${values.port}`)
  const { url } = await startServer({ port, isolation: !values['no-isolation'] })
  console.log(`qwasm is at ${url} (Ctrl+C ends it)`)
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await serveFromCommandLine()
