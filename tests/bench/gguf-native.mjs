// Native llama.cpp as something that gives logits and ids, in a process of its own: see gguf_logits.py.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { root } from '../../scripts/tools.mjs'

const NEWLINE = 10

export class NativeModel {
  #child
  #received = Buffer.alloc(0)
  #chunks = [] // what came since
  #waiting = 0 // their bytes
  #ended = false
  #wake = () => {}

  constructor(python, path, { threads, kv }) {
    this.#child = spawn(python, [join(root, 'tests/bench/gguf_logits.py'), path, String(threads), kv], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child.stdin.on('error', () => {}) // the process has ended, which its output tells
    this.#child.on('error', () => this.#child.stdout.destroy())
    this.#child.stdout.on('data', data => this.#arrived(data)).on('close', () => this.#end())
  }

  #arrived(data) {
    this.#chunks.push(data)
    this.#waiting += data.length
    this.#wake()
  }

  #end() {
    this.#ended = true
    this.#wake()
  }

  /** Waits until so many bytes have come. */
  async #bytes(count) {
    while (this.#received.length + this.#waiting < count) {
      if (this.#ended) throw new Error('llama.cpp ended')
      await new Promise(resolve => (this.#wake = resolve))
    }
    this.#received = Buffer.concat([this.#received, ...this.#chunks.splice(0)])
    this.#waiting = 0
    return this.#received
  }

  async #take(count) {
    const all = await this.#bytes(count)
    this.#received = all.subarray(count)
    return all.subarray(0, count)
  }

  async #ask(question) {
    this.#child.stdin.write(`${JSON.stringify(question)}\n`)
    let end = -1
    while (end < 0) end = (await this.#bytes(this.#received.length + 1)).indexOf(NEWLINE)
    const answer = JSON.parse((await this.#take(end + 1)).toString())
    if (answer.error) throw new Error(answer.error)
    return answer
  }

  /** The logits after each of the ids, one row after the other. */
  async logits(ids) {
    const { floats } = await this.#ask({ ids: [...ids] })
    return new Float32Array(new Uint8Array(await this.#take(4 * floats)).buffer)
  }

  /** The ids of a text, control tokens in it honoured. */
  async tokenize(text) {
    return (await this.#ask({ text })).ids
  }

  end() {
    this.#child.stdin.end()
  }
}
