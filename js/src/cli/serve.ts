// `qwasm serve`: a model behind OpenAI's HTTP interface, until a signal ends it.
import { isLoopback } from '../server/access.js'
import { ApiServer, DEFAULT_SETTINGS, type ServerSettings } from '../server/server.js'
import type { Model } from '../types.js'
import { UsageError, type Values } from './options.js'

/** What may still run after a signal, before it is cut off. */
const GRACE_MS = 10_000

/** The settings that the command line asks for; a UsageError on a wrong one. */
export function serverSettings(values: Values): ServerSettings {
  const { host = DEFAULT_SETTINGS.host, name, cors } = values
  const apiKey = values['api-key'] ?? process.env['QWASM_API_KEY']
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) throw new UsageError('--api-key must be visible ASCII characters.')
  if (cors !== undefined && !isOrigin(cors)) throw new UsageError(`--cors must be '*' or an origin such as https://example.org, not '${cors}'.`)
  return {
    ...DEFAULT_SETTINGS,
    host,
    name,
    cors,
    apiKey,
    port: whole(values, 'port', 0, 65_535, DEFAULT_SETTINGS.port),
    maxParallel: whole(values, 'max-parallel', 1, 16, DEFAULT_SETTINGS.maxParallel),
    maxQueue: whole(values, 'max-queue', 0, 100_000, DEFAULT_SETTINGS.maxQueue),
    bodyLimit: whole(values, 'body-limit', 1, 2 ** 30, DEFAULT_SETTINGS.bodyLimit),
  }
}

/** Serves until SIGINT or SIGTERM; a second one does not wait for the requests that run. */
export async function serve(model: Model, settings: ServerSettings, note: (line: string) => void): Promise<void> {
  const server = new ApiServer(model, settings)
  let address
  try {
    address = await server.listen()
  } catch (error) {
    throw new UsageError(`The server cannot listen at ${settings.host}, port ${settings.port}: ${(error as Error).message}.`)
  }
  if (settings.apiKey === undefined && !isLoopback(settings.host)) {
    note('Warning: whoever reaches this machine can use the model; --api-key KEY asks for a key.')
  }
  note(`${address} answers; Ctrl-C ends it.`)
  await new Promise<void>((resolve) => {
    let signals = 0
    const told = () => {
      if (++signals > 1) return server.cut()
      note('Stopping: what runs may end; Ctrl-C again cuts it off.')
      void server.stop(GRACE_MS).then(resolve)
    }
    process.on('SIGINT', told).on('SIGTERM', told)
  })
}

function isOrigin(text: string): boolean {
  if (text === '*') return true
  try {
    return new URL(text).origin === text
  } catch {
    return false
  }
}

function whole(values: Values, name: 'port' | 'max-parallel' | 'max-queue' | 'body-limit', low: number, high: number, otherwise: number): number {
  const value = values[name] ?? otherwise
  if (Number.isInteger(value) && value >= low && value <= high) return value
  throw new UsageError(`--${name} must be a whole number from ${low} to ${high}, not ${value}.`)
}
