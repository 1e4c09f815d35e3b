// A GGUF file that the core writes.
import type { Core } from './core.js'

/** A model on its way into a GGUF file. */
export class Gguf {
  readonly #core: Core
  readonly #address: number

  constructor(core: Core, address: number) {
    this.#core = core
    this.#address = address
  }

  /** Bytes of the whole file. */
  get bytes(): number {
    return this.#core.call('_qw_gguf_bytes', this.#address)
  }

  /** The next piece of the file; empty at its end. */
  next(): Uint8Array<ArrayBuffer> {
    const length = this.#core.checked('_qw_gguf_next', this.#address)
    return this.#core.bytes(this.#core.call('_qw_gguf_piece', this.#address), length)
  }

  free(): void {
    if (this.#core.alive) this.#core.call('_qw_gguf_free', this.#address)
  }
}
