// A file of weights that was named itself, and the folder it stands for: it plays the part of model.safetensors there. A GGUF file is a model of its own.
import { QwasmError } from '../errors.js'
import { show } from '../show.js'
import type { FileState, Source } from './source.js'

export const SINGLE = 'model.safetensors'
export const INDEX = 'model.safetensors.index.json'

/** The file that a name stands for: a file of weights, an index or a GGUF file itself, a shard for its index; undefined for other names. */
export function weightsFile(name: string): string | undefined {
  if (isGguf(name) && !name.includes('/')) return name
  if (!/\.safetensors(\.index\.json)?$/.test(name) || name.includes('/')) return undefined
  return name.replace(/-\d{5}-of-\d{5}\.safetensors$/, '.safetensors.index.json')
}

/** The name under which the core asks for it. */
export function weightsRole(file: string): string {
  return file.endsWith('.index.json') ? INDEX : SINGLE
}

export const isGguf = (name: string): boolean => /\.gguf$/i.test(name)

const PART = /-(\d{5})-of-(\d{5})\.gguf$/i

/** All parts of the GGUF model that a file belongs to. */
export function ggufParts(file: string): string[] {
  const count = Number(PART.exec(file)?.[2] ?? 0)
  const part = (_: unknown, index: number) => file.replace(PART, `-${String(index + 1).padStart(5, '0')}-of-$2.gguf`)
  return count === 0 ? [file] : Array.from({ length: count }, part)
}

/**
 * The one GGUF model among the files of a folder, by its first part; undefined where there is none, or weights of Hugging Face's layout lie
 * there. Several are an error that lists them.
 */
export function onlyGguf(names: readonly string[], place: string): string | undefined {
  if (names.some((name) => weightsFile(name) !== undefined && !isGguf(name))) return undefined
  const models = [...new Set(names.filter(isGguf).map((name) => ggufParts(name)[0]!))].sort()
  if (models.length < 2) return models[0]
  throw new QwasmError('invalid_argument', `There are several GGUF models in ${place}; give one of them: ${models.map(show).join(', ')}.`)
}

/** A folder whose weights are the named file, whatever else lies there. */
export class NamedWeights implements Source {
  readonly #folder: Source
  readonly #file: string

  constructor(folder: Source, file: string) {
    this.#folder = folder
    this.#file = file
  }

  place(file: string): string {
    return this.#folder.place(this.#isWeights(file) ? this.#file : file)
  }

  async stat(file: string, attempts?: number): Promise<FileState | 'missing'> {
    const name = this.#nameOf(file)
    return name === undefined ? 'missing' : this.#folder.stat(name, attempts)
  }

  async read(file: string, offset: number, length: number, write: (part: Uint8Array) => void): Promise<FileState | 'missing'> {
    const name = this.#nameOf(file)
    return name === undefined ? 'missing' : this.#folder.read(name, offset, length, write)
  }

  close(): Promise<void> {
    return this.#folder.close()
  }

  /** What a file that the core asks for is called in the folder; undefined where it is not to be there. */
  #nameOf(file: string): string | undefined {
    if (!this.#isWeights(file)) return file
    return file === weightsRole(this.#file) ? this.#file : undefined
  }

  #isWeights(file: string): boolean {
    return file === SINGLE || file === INDEX
  }
}
