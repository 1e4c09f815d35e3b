// A hub as huggingface.co is one: models by id and revision, a token, and large files behind a redirect to another origin's signed URLs.
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { parseRange } from '../../scripts/serve.mjs'

const CORS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Headers': 'Authorization, Range',
  'Access-Control-Expose-Headers': 'Content-Range, ETag',
}

/**
 * `models`: { 'Owner/name': { revision: folder } }. With a `token` no file is given without it. `requests` are those to the hub, `stored` those to
 * the storage that it redirects to, each { path, authorization }; the storage refuses whoever brings a token.
 */
export async function startHub(models, { token } = {}) {
  const requests = []
  const stored = []
  const storage = await listen(async (request, response, path) => {
    stored.push({ path, authorization: request.headers.authorization })
    if (request.headers.authorization) return refuse(response, 400, 'Only one auth mechanism allowed')
    if (!request.url.endsWith('?Signature=s')) return refuse(response, 403, 'No signature')
    sendFile(request, response, path.slice(1))
  })
  const hub = await listen(async (request, response, path) => {
    const { authorization } = request.headers
    requests.push({ path, authorization })
    const [, listed] = /^\/api\/models\/([^/]+\/[^/]+)\/revision\/main$/.exec(path) ?? []
    if (models[listed]) return sendListing(response, models[listed].main)
    const [, id, revision, file] = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path.replace(/^\/mirror/, '')) ?? []
    // The hub does not tell whether there is a model that one may not see.
    if (!models[id] || (token && authorization === undefined)) return refuse(response, 401, 'Invalid username or password.')
    if (token && authorization !== `Bearer ${token}`) return refuse(response, 403, `Not in the authorized list: ${authorization}`)
    const folder = models[id][decodeURIComponent(revision)]
    if (!folder) return refuse(response, 404, 'Revision not found')
    const local = join(folder, decodeURIComponent(file))
    if (!file.endsWith('.safetensors')) return sendFile(request, response, local)
    response.writeHead(302, { ...CORS, Location: `${storage.url}${encodeURIComponent(local)}?Signature=s` }).end()
  })
  const close = async () => {
    await hub.close()
    await storage.close()
  }
  return { endpoint: hub.url.replace(/\/$/, ''), requests, stored, close }
}

async function listen(answer) {
  const server = createServer((request, response) => {
    if (request.method === 'OPTIONS') return response.writeHead(204, CORS).end()
    const path = request.url.split('?')[0]
    answer(request, response, path)
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${server.address().port}/`, close }
}

function refuse(response, status, error) {
  response.writeHead(status, { ...CORS, 'Content-Type': 'application/json' }).end(JSON.stringify({ error }))
}

async function sendListing(response, folder) {
  const siblings = (await readdir(folder)).map(rfilename => ({ rfilename }))
  response.writeHead(200, { ...CORS, 'Content-Type': 'application/json' }).end(JSON.stringify({ siblings }))
}

async function sendFile(request, response, path) {
  const bytes = await readFile(decodeURIComponent(path)).catch(() => undefined)
  if (!bytes) return refuse(response, 404, 'Entry not found')
  const range = parseRange(request.headers.range, bytes.length)
  if (range === 'unsatisfiable') return response.writeHead(416, { ...CORS, 'Content-Range': `bytes */${bytes.length}` }).end()
  const { first, last } = range ?? { first: 0, last: bytes.length - 1 }
  const about = range && { 'Content-Range': `bytes ${first}-${last}/${bytes.length}` }
  response.writeHead(range ? 206 : 200, { ...CORS, ...about, 'Content-Length': last - first + 1 }).end(bytes.subarray(first, last + 1))
}
