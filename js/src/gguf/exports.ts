// The worker's side of saving: the files that are being made, by numbers.
import { QwasmError } from '../errors.js'
import type { Engine } from '../runtime/core.js'
import type { Gguf } from '../runtime/gguf.js'

export class Exports {
  readonly #open = new Map<number, Gguf>()
  #next = 1

  open(engine: Engine, name: string): { file: number; bytes: number } {
    const gguf = engine.newGguf(name)
    this.#open.set(this.#next, gguf)
    return { file: this.#next++, bytes: gguf.bytes }
  }

  /** The next piece; none at the end. */
  read(file: number): Uint8Array<ArrayBuffer> {
    const gguf = this.#open.get(file)
    if (!gguf) throw new QwasmError('wrong_state', 'This GGUF file is not being written.')
    return gguf.next()
  }

  close(file: number): void {
    this.#open.get(file)?.free()
    this.#open.delete(file)
  }
}
