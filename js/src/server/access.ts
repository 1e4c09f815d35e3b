// Who may use the server: keys, the names that it goes by, and pages of other origins.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { OpenAIError } from '../openai/errors.js'

export function isLoopback(host: string): boolean {
  const plain = host.replace(/^\[|\]$/g, '')
  return plain === 'localhost' || plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'))
}

/** Refuses callers without the key. */
export function checkKey(request: IncomingMessage, key: string): void {
  const given = /^Bearer +(.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
  const digest = (text: string) => createHash('sha256').update(text).digest()
  // Digests are of one length, so the comparison takes the same time whatever is given.
  if (timingSafeEqual(digest(given), digest(key))) return
  throw new OpenAIError(401, 'authentication_error', 'The API key is missing or wrong: Authorization: Bearer KEY.', { code: 'invalid_api_key' })
}

/**
 * Refuses requests that reached a server of this machine under a foreign name: so a page whose name was made to point here (DNS rebinding)
 * would pass as one of the server's own.
 */
export function checkHost(request: IncomingMessage): void {
  const name = (request.headers.host ?? '').replace(/:\d+$/, '')
  if (isLoopback(name)) return
  throw new OpenAIError(403, 'invalid_request_error', `This server answers to localhost and 127.0.0.1 only, not to '${name}'.`)
}

/** Lets pages of one origin, or of all ('*'), read the answers; and answers their browser's question beforehand. True where it was one. */
export function allowOrigin(request: IncomingMessage, response: ServerResponse, allowed: string): boolean {
  const { origin } = request.headers
  if (allowed !== '*') response.setHeader('Vary', 'Origin')
  if (origin === undefined || (allowed !== '*' && origin !== allowed)) return false
  response.setHeader('Access-Control-Allow-Origin', allowed)
  response.setHeader('Access-Control-Expose-Headers', 'x-request-id, retry-after')
  if (request.method !== 'OPTIONS' || !request.headers['access-control-request-method']) return false
  response.setHeader('Access-Control-Allow-Methods', 'GET, POST')
  // The official client sends a dozen headers of its own, and '*' would leave out Authorization.
  response.setHeader('Access-Control-Allow-Headers', request.headers['access-control-request-headers'] ?? '')
  response.setHeader('Access-Control-Max-Age', '600')
  response.writeHead(204).end()
  return true
}
