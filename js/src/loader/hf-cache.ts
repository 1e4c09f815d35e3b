// The folder in which Hugging Face's libraries keep what they downloaded (Node.js): models--Owner--name/{refs,snapshots,blobs}.
import { readFile, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { HubModel } from '../worker/protocol.js'
import { ggufParts, INDEX, isGguf, SINGLE, weightsRole } from './weights-file.js'

const COMMIT = /^[0-9a-f]{40}$/

type Environment = Record<string, string | undefined>

/** What a load needs of a model's files. */
export interface Needs {
  config: boolean
  weights: boolean
  tokenizer: boolean
  /** The file of weights where one was named. */
  named?: string | undefined
}

/** Where the libraries look, in their order. */
export function hubCacheFolder(environment: Environment): string {
  const { HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME } = environment
  const home = HF_HOME || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'huggingface')
  return (HF_HUB_CACHE || HUGGINGFACE_HUB_CACHE || join(home, 'hub')).replace(/^~(?=$|[/\\])/, homedir())
}

/** The name of the variable that forbids to ask the hub; undefined where none does. */
export function offlineBy(environment: Environment): string | undefined {
  return ['HF_HUB_OFFLINE', 'TRANSFORMERS_OFFLINE'].find((name) => /^(1|on|yes|true)$/i.test(environment[name] ?? ''))
}

/** A model's folder in the cache where all needed files are in it, else the path of the first that is not there. */
export async function findSnapshot(
  cache: string,
  model: HubModel,
  needs: Needs
): Promise<{ folder: string } | { missing: string }> {
  const place = join(cache, `models--${model.id.replace('/', '--')}`)
  const ref = join(place, 'refs', model.revision)
  const commit = COMMIT.test(model.revision) ? model.revision : (await readFile(ref, 'utf8').catch(() => '')).trim()
  if (!COMMIT.test(commit)) return { missing: ref }
  const folder = join(place, 'snapshots', commit)
  const missing = await firstMissing(folder, needs)
  return missing === undefined ? { folder } : { missing: join(folder, missing) }
}

/** Links are followed: one whose blob was never finished leads nowhere. */
async function firstMissing(folder: string, { config, weights, tokenizer, named }: Needs): Promise<string | undefined> {
  const has = async (name: string) => (await stat(join(folder, name)).catch(() => undefined))?.isFile() ?? false
  if (named !== undefined && isGguf(named)) {
    for (const part of ggufParts(named)) if (!(await has(part))) return part
    return undefined
  }
  if (config && !(await has('config.json'))) return 'config.json'
  const apart = tokenizer && (await has('vocab.json')) && (await has('merges.txt'))
  if (tokenizer && !apart && !(await has('tokenizer.json'))) return 'tokenizer.json'
  if (!weights) return undefined
  const single = named === undefined ? SINGLE : weightsRole(named) === SINGLE ? named : undefined
  const index = named === undefined ? INDEX : weightsRole(named) === INDEX ? named : undefined
  if (single && (await has(single))) return undefined
  const shards = index && (await shardsOf(join(folder, index)))
  if (!shards) return single ?? index
  for (const shard of shards) if (!(await has(shard))) return shard
  return undefined
}

async function shardsOf(index: string): Promise<string[] | undefined> {
  try {
    const { weight_map: files } = JSON.parse(await readFile(index, 'utf8')) as { weight_map: Record<string, string> }
    return [...new Set(Object.values(files))]
  } catch {
    return undefined // none, or none that can be read
  }
}
