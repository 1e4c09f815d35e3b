// Sources under Node.js: local paths first, then the Hugging Face cache, then the hub.
import type { Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { QwasmError } from '../errors.js'
import { show } from '../show.js'
import type { HubOptions, LoadOptions } from '../types.js'
import type { LoadRequest, SourceSpec } from '../worker/protocol.js'
import { givenSpec } from './given-files.js'
import { findSnapshot, hubCacheFolder, offlineBy } from './hf-cache.js'
import { DEFAULT_ENDPOINT, hubGguf, hubGgufSpec, hubOf, hubSpec, isHubId } from './hub.js'
import { addressSpec, refuseRevision } from './specs.js'
import { onlyGguf, weightsFile } from './weights-file.js'

type Parts = LoadRequest['parts']

export function pathOrUrl(place: string | URL): URL {
  if (place instanceof URL || /^(https?|file|data):/i.test(place)) return new URL(place)
  return pathToFileURL(resolve(place))
}

/** A source as the worker opens it. */
export async function nodeSpec(source: unknown, options: LoadOptions, parts: Parts): Promise<SourceSpec> {
  const given = await givenSpec(source)
  if (given) {
    refuseRevision(options.revision, given)
    return given
  }
  if ((typeof source !== 'string' && !(source instanceof URL)) || source === '') {
    const expected = "a hub's id, a path, a URL or the files of a folder"
    throw new QwasmError('invalid_argument', `The model's source must be ${expected}, not ${show(source)}.`)
  }
  const asked = withEnvironment(options)
  const maybeCached = (spec: SourceSpec & { kind: 'url' }) => (options.cache === 'reload' ? spec : cachedSpec(spec, parts))
  if (/^https?:/i.test(String(source))) return maybeCached(addressSpec(source, hubOf(asked)))
  const path = fileURLToPath(pathOrUrl(source))
  const found = await stat(path).catch(() => undefined)
  if (!found && isHubId(source)) {
    const otherwise = `There is no local folder ${path} either.`
    return maybeCached({ ...hubSpec(source, hubOf(asked)), otherwise })
  }
  const gguf = found ? undefined : hubGguf(source)
  if (gguf) return maybeCached({ ...hubGgufSpec(gguf, hubOf(asked)), otherwise: `There is no local file ${path} either.` })
  const local = await localSpec(path, found)
  if (isHubId(source)) {
    local.otherwise = `To mean the model on the hub, write its address, ${String(asked.endpoint).replace(/\/+$/, '')}/${source}.`
  }
  refuseRevision(asked.revision, local)
  return local
}

/** A folder, or a file of weights in one. */
async function localSpec(path: string, found: Stats | undefined): Promise<SourceSpec> {
  if (found?.isDirectory()) {
    const gguf = onlyGguf(await readdir(path), path)
    return { kind: 'folder', path, ...(gguf && { weights: gguf }) }
  }
  const weights = weightsFile(basename(path))
  if (!weights) return { kind: 'folder', path }
  if (!found) throw new QwasmError('missing', `There is no file ${path}.`)
  return { kind: 'folder', path: dirname(path), weights }
}

/** Options go before the variables that Hugging Face's libraries know. */
function withEnvironment({ endpoint, token, revision }: HubOptions): HubOptions {
  const { HF_ENDPOINT, HF_TOKEN } = process.env
  token ??= HF_TOKEN?.trim() || undefined
  return { endpoint: endpoint ?? (HF_ENDPOINT || DEFAULT_ENDPOINT), ...(token && { token }), ...(revision && { revision }) }
}

/** What the Hugging Face cache holds whole is used from there; where the hub must not be asked, what loads at all is enough. */
async function cachedSpec(spec: SourceSpec & { kind: 'url' }, parts: Parts): Promise<SourceSpec> {
  if (!spec.hub) return spec
  const offline = offlineBy(process.env)
  const needs = {
    config: parts !== 'tokenizer',
    weights: parts !== 'tokenizer',
    tokenizer: parts === 'tokenizer' || (parts === 'model' && !offline),
    named: spec.weights,
  }
  const snapshot = await findSnapshot(hubCacheFolder(process.env), spec.hub, needs)
  if ('folder' in snapshot) return { kind: 'folder', path: snapshot.folder, ...(spec.weights && { weights: spec.weights }) }
  if (!offline) return spec
  const { id, revision } = spec.hub
  const model = `'${id}' at revision '${revision}'`
  const why = `${offline} is set, and the Hugging Face cache does not hold ${model}: ${snapshot.missing} is missing.`
  return { ...spec, offline: why }
}
