// How the worker opens a source: what browsers and Node.js have in common.
import { QwasmError } from '../errors.js'
import type { SourceSpec } from '../worker/protocol.js'
import type { Gate } from './gate.js'
import type { Source } from './source.js'
import { folderName } from './specs.js'
import { UrlFolder } from './url.js'
import { isGguf, NamedWeights } from './weights-file.js'

export function openUrl({ url, token, offline }: SourceSpec & { kind: 'url' }, gate: Gate): Source {
  const folder = new UrlFolder(url, { gate, ...(token && { headers: { Authorization: `Bearer ${token}` } }) })
  return offline ? new Unreachable(folder, offline) : folder
}

export function withWeights(folder: Source, { weights }: SourceSpec): Source {
  return weights && !isGguf(weights) ? new NamedWeights(folder, weights) : folder
}

/** The source in a few words, for people. */
export function sourceName(spec: SourceSpec): string {
  const folder = folderName(spec)
  return spec.weights ? `${folder.replace(/\/$/, '')}/${spec.weights}` : folder
}

/** A folder behind a URL that must not be asked. */
class Unreachable implements Source {
  readonly #folder: Source
  readonly #why: string

  constructor(folder: Source, why: string) {
    this.#folder = folder
    this.#why = why
  }

  place(file: string): string {
    return this.#folder.place(file)
  }

  async stat(file: string): Promise<never> {
    throw new QwasmError('network', `${this.place(file)} is not fetched: ${this.#why}`)
  }

  read(file: string): Promise<never> {
    return this.stat(file)
  }

  close(): Promise<void> {
    return this.#folder.close()
  }
}
