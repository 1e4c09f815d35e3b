// A file of weights that was named itself, and the folder it stands for: it plays the part of model.safetensors there.
import { QwasmError } from '../errors.js'
import type { FileState, Source } from './source.js'

export const SINGLE = 'model.safetensors'
export const INDEX = 'model.safetensors.index.json'

/** The file that a name stands for: a file of weights or an index itself, a shard for its index; undefined for other names. */
export function weightsFile(name: string): string | undefined {
  if (!/\.safetensors(\.index\.json)?$/.test(name) || name.includes('/')) return undefined
  return name.replace(/-\d{5}-of-\d{5}\.safetensors$/, '.safetensors.index.json')
}

/** The name under which the core asks for it. */
export function weightsRole(file: string): string {
  return file.endsWith('.index.json') ? INDEX : SINGLE
}

export function refuseGguf(name: string, place: string): void {
  if (!/\.gguf$/i.test(name)) return
  throw new QwasmError('unsupported', `${place}: GGUF files are not supported; give the folder of a Hugging Face model.`)
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
