// A file of weights that was named itself, and the folder it stands for: it plays the part of model.safetensors there.
import { QwasmError } from '../errors.js'
import type { Arrived, Receiver, Source } from './source.js'

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

  async read(file: string, offset: number, length: number, receiver: Receiver): Promise<Arrived | 'missing'> {
    if (!this.#isWeights(file)) return this.#folder.read(file, offset, length, receiver)
    return file === weightsRole(this.#file) ? this.#folder.read(this.#file, offset, length, receiver) : 'missing'
  }

  close(): Promise<void> {
    return this.#folder.close()
  }

  #isWeights(file: string): boolean {
    return file === SINGLE || file === INDEX
  }
}
