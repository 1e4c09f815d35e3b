// What the cache holds, by model, and removing it: for people and settings pages. Works beside running loads.
import { QwasmError } from '../errors.js'
import type { CachedModel, CacheUsage, ModelCaches } from '../types.js'
import { DOWNLOADS, PREPARED } from './model-cache.js'
import { isJournal, journalName, readContents } from './pack.js'
import type { Store } from './store.js'

export function makeCaches(openStore: () => Promise<Store | undefined>): ModelCaches {
  const list = async (): Promise<CachedModel[]> => {
    const store = await openStore()
    const models: CachedModel[] = []
    for (const name of (await store?.folders()) ?? []) {
      const model = await describe(store!, name)
      if (model) models.push(model)
    }
    return models.sort((a, b) => b.lastUsed - a.lastUsed)
  }
  return {
    list,

    async remove(source?: string | URL): Promise<number> {
      const store = await openStore()
      let freed = 0
      for (const { id, source: place, hub, bytes } of await list()) {
        if (source !== undefined && ![id, place, hub].includes(String(source))) continue
        const release = await store!.lock(id)
        if (!release) throw new QwasmError('wrong_state', `${place} is being loaded or kept by a running model; it can be removed afterwards.`)
        try {
          await store!.remove(id)
        } finally {
          release()
        }
        freed += bytes
      }
      return freed
    },

    async usage(): Promise<CacheUsage> {
      const models = await list()
      const bytes = models.reduce((sum, model) => sum + model.bytes, 0)
      const quota = await (await openStore())?.quota()
      return { models: models.length, bytes, available: quota ? Math.max(0, quota.quota - quota.usage) : null }
    },
  }
}

async function describe(store: Store, name: string): Promise<CachedModel | undefined> {
  const folder = await store.folder(name)
  const files = await folder.list()
  const downloads = readContents(await folder.readText(journalName(DOWNLOADS)))
  const source = downloads.about?.['source']
  if (!source) return undefined
  const prepared: string[] = []
  for (const file of files) {
    if (!file.name.startsWith(PREPARED) || !isJournal(file.name)) continue
    const { committed, about } = readContents(await folder.readText(file.name))
    if (committed && about?.['layout']) prepared.push(about['layout'].replace(/-.*/, ''))
  }
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  return { id: name, source, hub: downloads.about?.['hub'] ?? null, bytes, complete: downloads.committed, prepared: prepared.sort(), lastUsed: downloads.used }
}
