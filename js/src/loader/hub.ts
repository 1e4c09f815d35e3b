// Models on a hub (huggingface.co or a mirror of it): their ids, where their files lie, what to say where one is not found.
import { QwasmError } from '../errors.js'
import { isRevision, isToken } from '../options.js'
import { show } from '../show.js'
import type { HubOptions } from '../types.js'
import type { HubModel, SourceSpec } from '../worker/protocol.js'
import { ggufParts, isGguf, weightsFile } from './weights-file.js'

export const DEFAULT_ENDPOINT = 'https://huggingface.co'
const LISTING_MS = 10_000
const ID = /^[A-Za-z0-9_-][\w.-]*\/[A-Za-z0-9_-][\w.-]*$/

/** A hub as a load uses it: options checked, defaults filled in. */
export interface Hub {
  /** Without a slash at the end. */
  endpoint: string
  revision: string | undefined
  token: string | undefined
}

/** Whether a text reads as owner/name. Names of files, './owner/name' and 'owner/name/' do not. */
export function isHubId(source: unknown): source is string {
  return typeof source === 'string' && ID.test(source) && !/\.(safetensors|gguf|json)$/i.test(source)
}

/** The model and file of 'owner/name/file.gguf'; undefined for other texts. */
export function hubGguf(source: unknown): { id: string; file: string } | undefined {
  const [, id, file] = typeof source === 'string' ? (/^([^/]+\/[^/]+)\/(.+)$/.exec(source) ?? []) : []
  const parts = file?.split('/') ?? []
  const inside = parts.length > 0 && parts.every((part) => part !== '' && !part.startsWith('.')) && !/[\\?#:%]/.test(file!)
  return isHubId(id) && inside && isGguf(file!) ? { id, file: file! } : undefined
}

/** The spec of a GGUF file in a model's repository, which may lie in a folder there. */
export function hubGgufSpec({ id, file }: { id: string; file: string }, hub: Hub): SourceSpec & { kind: 'url' } {
  const spec = hubSpec(id, hub)
  const folders = file.split('/')
  const weights = folders.pop()!
  return { ...spec, url: spec.url + folders.map((folder) => `${encodeURIComponent(folder)}/`).join(''), weights }
}

/** The hub that options ask for; a relative endpoint counts from `base`. */
export function hubOf({ endpoint = DEFAULT_ENDPOINT, revision, token }: HubOptions, base?: string): Hub {
  let url: URL | undefined
  try {
    url = new URL(endpoint, base)
  } catch {} // said below
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    const expected = 'an http or https URL without name, password, query and fragment'
    const message = `The hub's endpoint (the option, or HF_ENDPOINT under Node.js) must be ${expected}`
    throw new QwasmError('invalid_argument', `${message}, not ${show(String(endpoint))}.`)
  }
  if (token !== undefined && !isToken(token)) {
    const message = "The hub's token must be a string of visible ASCII characters, and what was given is not."
    throw new QwasmError('invalid_argument', message)
  }
  return { endpoint: url.origin + url.pathname.replace(/\/+$/, ''), revision, token }
}

export function hubSpec(id: string, { endpoint, revision = 'main', token }: Hub): SourceSpec & { kind: 'url' } {
  if (!isRevision(revision)) {
    throw new QwasmError('invalid_argument', `${show(revision)} is not the name of a branch or tag, or a commit.`)
  }
  const url = `${endpoint}/${id}/resolve/${encodeURIComponent(revision)}/`
  return { kind: 'url', url, hub: { id, revision, endpoint }, ...(token && { token }) }
}

/** The spec of an http(s) URL below the hub's endpoint, which alone gets the token; undefined for all other URLs. */
export function hubAddressSpec(url: URL, hub: Hub): (SourceSpec & { kind: 'url' }) | undefined {
  if (!url.href.startsWith(`${hub.endpoint}/`)) return undefined
  const below = url.href.slice(hub.endpoint.length + 1)
  const [owner, name, view, revision, ...rest] = below.split('/')
  const id = `${owner}/${name}`
  const file = decoded(rest.join('/'))
  // As people copy them from the hub: the model's page, its tree of files, or one file of weights.
  if (isHubId(id) && !url.search) {
    if (view === undefined) return hubSpec(id, hub)
    const weights = weightsFile(file)
    const gguf = ['resolve', 'blob'].includes(view!) && revision ? hubGguf(`${id}/${file}`) : undefined
    if (gguf) return hubGgufSpec(gguf, atRevision(hub, decoded(revision!), url.href))
    if (['tree', 'resolve', 'blob'].includes(view!) && revision && (file === '' || weights)) {
      return { ...hubSpec(id, atRevision(hub, decoded(revision), url.href)), ...(weights && { weights }) }
    }
  }
  return { kind: 'url', url: url.href, ...(hub.token && { token: hub.token }) }
}

function atRevision(hub: Hub, revision: string, address: string): Hub {
  if (hub.revision === undefined || hub.revision === revision) return { ...hub, revision }
  const message = `The option revision is '${hub.revision}', but ${address} is of the revision '${revision}'.`
  throw new QwasmError('invalid_argument', message)
}

/** A part of a URL as text; as it is where it is no valid percent-encoding. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** The GGUF files of a model that has nothing else; undefined where it has none, or the hub does not tell. */
export async function ggufHint({ id, revision, endpoint }: HubModel, token: string): Promise<string | undefined> {
  try {
    const headers: Record<string, string> = token ? { Authorization: `Bearer ${token}` } : {}
    const url = `${endpoint}/api/models/${id}/revision/${encodeURIComponent(revision)}`
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(LISTING_MS) })
    const { siblings } = (await answer.json()) as { siblings: { rfilename: string }[] }
    const files = [...new Set(siblings.map(({ rfilename }) => rfilename).filter(isGguf).map((file) => ggufParts(file)[0]!))].sort()
    if (files.length === 0) return undefined
    return `The repository has GGUF files; name one of them: ${files.map((file) => `'${id}/${file}'`).join(', ')}.`
  } catch {
    return undefined
  }
}

/** What may be the reason where a model's file was not found or refused. */
export function hubHint({ id, revision, endpoint }: HubModel, hasToken: boolean): string {
  const access = hasToken
    ? 'the token that was given may not open it'
    : 'it may be gated or private and need a token (the option token, or HF_TOKEN under Node.js)'
  return `The model '${id}', its revision '${revision}' or this file may not exist on ${endpoint}, or ${access}.`
}
