// Addresses as the caller's thread describes them to the worker.
import { QwasmError } from '../errors.js'
import { show } from '../show.js'
import type { SourceSpec } from '../worker/protocol.js'
import { decoded, ggufHint, hubAddressSpec, hubHint, type Hub } from './hub.js'
import { weightsFile } from './weights-file.js'

/** The URL of a folder, or of a file of weights in it; relative ones count from `base`. One on the hub is a model there. */
export function addressSpec(source: string | URL, hub: Hub, base?: string): SourceSpec & { kind: 'url' } {
  let url: URL
  try {
    url = new URL(source, base)
  } catch {
    const expected = 'the URL of a folder or of a file of weights'
    throw new QwasmError('invalid_argument', `The model's source ${show(String(source))} is not ${expected}.`)
  }
  if (url.username || url.password) {
    const message = `The model's URL at ${url.host} holds a name or password, which cannot be sent; leave it out.`
    throw new QwasmError('invalid_argument', message)
  }
  url.hash = ''
  const spec = hubAddressSpec(url, hub) ?? { kind: 'url', url: url.href }
  if (spec.hub) return spec
  refuseRevision(hub.revision, spec)
  return { ...spec, ...folderOf(url) }
}

/** Files, folders and their URLs have no revisions: another one than was asked must not be loaded instead. */
export function refuseRevision(revision: string | undefined, spec: SourceSpec): void {
  if (revision === undefined) return
  const sentence = `The option revision ('${revision}') is for models on a hub, but the source is ${folderName(spec)}.`
  throw new QwasmError('invalid_argument', [sentence, spec.otherwise].filter(Boolean).join(' '))
}

/** The folder, for people: without what follows a URL's '?', which may be a key. */
export function folderName(spec: SourceSpec): string {
  if (spec.kind === 'files') return spec.place
  if (spec.kind === 'folder') return spec.path
  const { origin, pathname } = new URL(spec.url)
  return origin + pathname
}

/** A load's failure as the caller gets it: without the token, and with the likely reason where a file was not found or refused. */
export async function explainFailure(error: unknown, spec: SourceSpec): Promise<unknown> {
  if (!(error instanceof QwasmError)) return error
  const { code, status } = error
  const { token = '', hub = undefined } = spec.kind === 'url' ? spec : {}
  const message = token ? error.message.replaceAll(token, '(the token)') : error.message // a server may quote it
  const refused = status === 401 || status === 403
  const absent = code === 'missing' && message.includes(folderName(spec)) // a file: tensors and fields are named without place
  const listed = absent && hub && !spec.weights ? await ggufHint(hub, token) : undefined
  const hints = refused || absent ? [hub && (listed ?? hubHint(hub, token !== '')), spec.otherwise].filter(Boolean) : []
  return new QwasmError(code, [message, ...hints].join(' '), { status })
}

function folderOf(address: URL): { url: string; weights?: string } {
  const url = new URL(address)
  const [, folder, name] = /^(.*\/)(.*)$/.exec(url.pathname)!
  const weights = weightsFile(decoded(name!))
  url.pathname = weights || name === '' ? folder! : `${folder}${name}/`
  return { url: url.href, ...(weights && { weights }) }
}
