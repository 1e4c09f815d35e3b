// qwasm cache: what was downloaded and kept, and removing it.
import { caches } from '../node.js'
import type { CachedModel } from '../types.js'

/** Removes what `remove` names ('all': everything), and returns the bytes that this freed. */
export function removeFromCache(remove: string): Promise<number> {
  return remove === 'all' ? caches.remove() : caches.remove(remove)
}

export function cacheTable(models: readonly CachedModel[]): string {
  if (models.length === 0) return 'The cache is empty.\n'
  const lines = models.map(({ source, hub, bytes, complete, prepared, lastUsed }) => {
    const notes = [complete ? '' : 'not finished', prepared.length > 0 ? `prepared: ${prepared.join(', ')}` : ''].filter(Boolean)
    const used = lastUsed > 0 ? new Date(lastUsed).toISOString().slice(0, 10) : 'never'
    return `${megabytes(bytes).padStart(10)}  used ${used}  ${hub ?? source}${notes.length > 0 ? `  (${notes.join('; ')})` : ''}`
  })
  const all = models.reduce((sum, { bytes }) => sum + bytes, 0)
  return `${[...lines, `${megabytes(all).padStart(10)}  in all`].join('\n')}\n`
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
