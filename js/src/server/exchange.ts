// One request and its answer over HTTP: bounded bodies in; JSON, text or server-sent events out.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { abortError } from '../errors.js'
import { OpenAIError, invalid } from '../openai/errors.js'

/** A caller that reads nothing of a stream for so long is gone. */
const STALL_MS = 30_000

/** The JSON that a request brings, of at most `limit` bytes. */
export async function readJson(request: IncomingMessage, limit: number): Promise<unknown> {
  const type = request.headers['content-type'] ?? ''
  // Pages of other sites can send other types without asking first.
  if (!/^application\/json\b/i.test(type)) {
    throw new OpenAIError(415, 'invalid_request_error', `The body must be application/json, not ${type || 'without a type'}.`)
  }
  const text = (await readBody(request, limit)).toString('utf8')
  try {
    return JSON.parse(text)
  } catch {
    throw invalid(null, 'The body is not valid JSON.') // what it holds may be private, and an error may be kept
  }
}

function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const tooLarge = () => {
    const message = `The body is larger than the ${limit} bytes that are allowed.`
    return new OpenAIError(413, 'invalid_request_error', message, { code: 'request_too_large' })
  }
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length'] ?? 0) > limit) return reject(tooLarge())
    const parts: Buffer[] = []
    let size = 0
    request.on('data', (part: Buffer) => {
      size += part.length
      if (size <= limit) parts.push(part)
      else reject(tooLarge())
    })
    request.on('end', () => resolve(Buffer.concat(parts)))
    request.on('error', reject)
    request.on('close', () => reject(abortError()))
  })
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  send(response, status, 'application/json; charset=utf-8', JSON.stringify(value))
}

export function sendText(response: ServerResponse, text: string): void {
  send(response, 200, 'text/plain; version=0.0.4; charset=utf-8', text)
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) }).end(text)
}

/** Sends chunks as server-sent events; a failure amid them is the last event. `failed` tells what to say of it. */
export async function sendEvents(
  response: ServerResponse,
  chunks: AsyncIterable<unknown>,
  signal: AbortSignal,
  failed: (error: unknown) => OpenAIError
): Promise<void> {
  // X-Accel-Buffering: nginx would collect the events otherwise.
  response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'X-Accel-Buffering': 'no' })
  const event = async (data: string) => {
    if (!response.write(`data: ${data}\n\n`)) await drained(response)
  }
  try {
    for await (const chunk of chunks) await event(JSON.stringify(chunk))
    if (signal.aborted) throw abortError(signal)
    await event('[DONE]')
  } catch (error) {
    if (!response.destroyed) await event(JSON.stringify(failed(error).body()))
  }
  response.end()
}

/** Waits until the caller has read what was sent; one that does not is cut off. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => response.destroy(), STALL_MS)
    const done = () => {
      clearTimeout(timer)
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
    if (response.destroyed) done()
  })
}
