// The HTTP server behind `qwasm serve`: OpenAI's routes over one model.
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isAbort, OpenAIError, toOpenAIError } from '../openai/errors.js'
import { createOpenAI, type ChunkStream, type OpenAI } from '../openai/index.js'
import type { Model } from '../types.js'
import { allowOrigin, checkHost, checkKey, isLoopback } from './access.js'
import { readJson, sendEvents, sendJson, sendText } from './exchange.js'
import { Metrics } from './metrics.js'
import { Places } from './places.js'

export interface ServerSettings {
  host: string
  port: number
  /** What requests call the model; default: from its source. */
  name?: string | undefined
  /** Without a key everybody who reaches the server may use it. */
  apiKey?: string | undefined
  /** The origin whose pages may use it, or '*'. */
  cors?: string | undefined
  /** Requests that run at the same time, and those that may wait. */
  maxParallel: number
  maxQueue: number
  /** Bytes of a request's body, and milliseconds until all of it must be here. */
  bodyLimit: number
  bodyTimeoutMs: number
}

export const DEFAULT_SETTINGS = {
  host: '127.0.0.1',
  port: 8000,
  maxParallel: 4,
  maxQueue: 64,
  bodyLimit: 4 * 1024 * 1024,
  bodyTimeoutMs: 30_000,
} satisfies ServerSettings

/** What a route's handler gets. */
interface Call {
  request: IncomingMessage
  response: ServerResponse
  /** Aborted when the caller leaves, or when the server is cut off. */
  signal: AbortSignal
}

interface Route {
  /** As metrics name it. */
  name: string
  method: 'GET' | 'POST'
  /** Whether callers without the key may ask. */
  open?: boolean
  answer(call: Call): Promise<void> | void
}

type Generate = (body: never, options: { signal: AbortSignal }) => Promise<unknown>

export class ApiServer {
  readonly #settings: ServerSettings
  readonly #openai: OpenAI
  readonly #metrics = new Metrics()
  readonly #places: Places
  readonly #server: Server
  readonly #routes: Readonly<Record<string, Route>>
  readonly #running = new Set<AbortController>()
  /** What /health says. */
  #state: 'ok' | 'stopping' | 'dead' = 'ok'

  constructor(model: Model, settings: ServerSettings) {
    this.#settings = settings
    const { name, maxParallel, maxQueue, bodyTimeoutMs } = settings
    this.#openai = createOpenAI(model, { ...(name !== undefined && { name }), onUsage: (usage) => this.#metrics.used(usage) })
    this.#places = new Places(maxParallel, maxQueue)
    this.#routes = this.#makeRoutes()
    const patience = { headersTimeout: Math.min(10_000, bodyTimeoutMs), requestTimeout: bodyTimeoutMs, connectionsCheckingInterval: 500 }
    this.#server = createServer(patience, (request, response) => void this.#handle(request, response))
  }

  /** Begins to listen; gives the address that clients have as their base. */
  async listen(): Promise<string> {
    const { host, port } = this.#settings
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, host, resolve)
    })
    const { address, port: taken, family } = this.#server.address() as AddressInfo
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}/v1`
  }

  /** Takes no more requests, and resolves when those that run have ended: by themselves, or cut off after `graceMs` or by `cut`. */
  async stop(graceMs: number): Promise<void> {
    this.#state = 'stopping'
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    const timer = setTimeout(() => this.cut(), graceMs)
    await closed
    clearTimeout(timer)
  }

  /** Ends all requests that run. */
  cut(): void {
    for (const running of this.#running) running.abort()
    // Time for the last words; whoever has not hung up then is hung up on.
    setTimeout(() => this.#server.closeAllConnections(), 500).unref()
  }

  #makeRoutes(): Record<string, Route> {
    const { chat, completions, embeddings, models } = this.#openai
    const metrics = () => this.#metrics.text(this.#places.taken, this.#places.waiting)
    return {
      '/v1/chat/completions': this.#generating('chat', chat.completions.create as Generate),
      '/v1/completions': this.#generating('completions', completions.create as Generate),
      '/v1/embeddings': this.#generating('embeddings', embeddings.create as Generate),
      '/v1/models': { name: 'models', method: 'GET', answer: async ({ response }) => sendJson(response, 200, await models.list()) },
      '/health': { name: 'health', method: 'GET', open: true, answer: ({ response }) => this.#sayState(response) },
      '/metrics': { name: 'metrics', method: 'GET', answer: ({ response }) => sendText(response, metrics()) },
    }
  }

  #route(path: string): Route | undefined {
    if (Object.hasOwn(this.#routes, path)) return this.#routes[path]
    const [, id] = /^\/v1\/models\/(.+)$/.exec(path) ?? []
    if (id === undefined) return undefined
    const { models } = this.#openai
    return { name: 'model', method: 'GET', answer: async ({ response }) => sendJson(response, 200, await models.retrieve(decoded(id))) }
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = performance.now()
    const route = this.#route((request.url ?? '').split('?')[0]!)
    const running = new AbortController()
    this.#running.add(running)
    response.on('close', () => {
      this.#running.delete(running)
      if (!response.writableFinished) running.abort()
      const status = response.writableFinished ? response.statusCode : LEFT
      this.#metrics.answered(route?.name ?? 'other', status, (performance.now() - started) / 1000)
      if (this.#state === 'stopping') setImmediate(() => this.#server.closeIdleConnections())
    })
    try {
      response.setHeader('x-request-id', randomUUID()).setHeader('Cache-Control', 'no-store').setHeader('X-Content-Type-Options', 'nosniff')
      if (this.#state === 'stopping') response.setHeader('Connection', 'close')
      if (this.#admits(request, response, route)) await route!.answer({ request, response, signal: running.signal })
    } catch (error) {
      this.#refuse(response, error)
    }
  }

  /** Whether the request may go to its route; throws where it may not, and answers a browser's question about origins itself. */
  #admits(request: IncomingMessage, response: ServerResponse, route: Route | undefined): boolean {
    const { apiKey, cors, host } = this.#settings
    if (cors !== undefined && allowOrigin(request, response, cors)) return false
    if (apiKey === undefined && isLoopback(host)) checkHost(request)
    if (apiKey !== undefined && !route?.open) checkKey(request, apiKey)
    if (!route) throw new OpenAIError(404, 'invalid_request_error', 'There is no such address here.', { code: 'not_found' })
    if (request.method === route.method || (request.method === 'HEAD' && route.method === 'GET')) return true
    response.setHeader('Allow', route.method)
    throw new OpenAIError(405, 'invalid_request_error', `This address takes ${route.method} only.`, { code: 'method_not_allowed' })
  }

  #generating(name: string, create: Generate): Route {
    const answer = async ({ request, response, signal }: Call) => {
      const body = await readJson(request, this.#settings.bodyLimit)
      if (this.#state === 'stopping') throw stopping()
      if (this.#places.full) {
        const seconds = Math.ceil(this.#metrics.meanSeconds(name))
        response.setHeader('Retry-After', Math.min(60, Math.max(1, seconds)))
        throw new OpenAIError(429, 'rate_limit_error', 'Too many requests wait already; try again later.', { code: 'rate_limit_exceeded' })
      }
      const leave = await this.#places.enter(signal)
      try {
        const made = await create(body as never, { signal })
        if (isStream(made)) await sendEvents(response, made, signal, (error) => this.#told(error))
        else sendJson(response, 200, made)
      } finally {
        leave()
      }
    }
    return { name, method: 'POST', answer }
  }

  #sayState(response: ServerResponse): void {
    sendJson(response, this.#state === 'ok' ? 200 : 503, { status: this.#state })
  }

  #refuse(response: ServerResponse, error: unknown): void {
    if (response.destroyed) return // nobody is there to hear it
    const told = this.#told(error)
    if (response.headersSent) response.destroy()
    else sendJson(response, told.status, told.body())
  }

  /** A failure as the caller gets it. */
  #told(error: unknown): OpenAIError {
    const told = isAbort(error) ? stopping() : toOpenAIError(error) // a caller who left hears nothing, so the server aborted
    if (told.code === 'dead') this.#state = 'dead'
    return told
  }
}

/** The status in metrics of requests whose caller left before the end, as nginx has it. */
const LEFT = 499

function stopping(): OpenAIError {
  return new OpenAIError(503, 'server_error', 'The server is stopping.', { code: 'stopping' })
}

function isStream(made: unknown): made is ChunkStream<unknown> {
  return typeof made === 'object' && made !== null && Symbol.asyncIterator in made
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
