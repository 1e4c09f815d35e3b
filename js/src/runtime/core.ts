// The wall: a typed view of core/api/qwasm.h. Outside this folder nobody knows pointers.
import { QwasmError, type QwasmErrorCode } from '../errors.js'
import { Gguf } from './gguf.js'
import { had, newBytes, outOfMemory } from './memory.js'
import { Session } from './session.js'

/** The compiled module as its glue hands it over. Addresses are unsigned 32-bit; calls give them back signed. */
export interface CoreModule {
  wasmMemory: WebAssembly.Memory
  [exported: `_qw_${string}`]: (...args: number[]) => number
}

export interface Want {
  id: number
  file: string
  offset: number
  /** 0: the whole file. */
  length: number
  optional: boolean
}

// qw_status of qwasm.h; the index is the status.
const CODES: readonly QwasmErrorCode[] = [
  'internal',
  'invalid_argument',
  'invalid_file',
  'missing',
  'unsupported',
  'out_of_memory',
  'context_overflow',
  'not_finite',
  'wrong_state',
  'no_tokenizer',
]

const WANT = { FILLED: 1, LOADED: 2 }
const WANT_BYTES = 32 // sizeof(qw_want): two doubles, three 32-bit fields, padding

const FREE_SOMETHING = 'a smaller dtype or contextLength, or closing other programs, leaves more room'

export class Core {
  readonly #module: CoreModule
  readonly #maximumBytes: number
  readonly #encoder = new TextEncoder()
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  #scratch = 0
  #scratchBytes = 0
  #dead: QwasmError | undefined

  /** `maximumBytes`: what the module's memory may grow to. */
  constructor(module: CoreModule, maximumBytes: number) {
    this.#module = module
    this.#maximumBytes = maximumBytes
  }

  /** Whether calls are still possible. */
  get alive(): boolean {
    return this.#dead === undefined
  }

  newEngine(options: object): Engine {
    const address = this.withText(JSON.stringify(options), (text) => this.made('_qw_engine_new', text))
    return new Engine(this, address)
  }

  newSession(engine: number): number {
    return this.made('_qw_session_new', engine)
  }

  newGguf(engine: number, name: string): number {
    return this.withText(name, (at) => this.made('_qw_gguf_new', engine, at))
  }

  /** Why a session had no part in what its batch gave. */
  sessionError(session: number, status: number): QwasmError {
    return this.#error(status, this.string(this.call('_qw_session_error', session)))
  }

  /** Calls an export. A trap leaves the memory in an unknown state: nothing runs after it. */
  call(name: `_qw_${string}`, ...args: number[]): number {
    if (this.#dead) throw this.#dead
    try {
      return this.#module[name]!(...args)
    } catch (cause) {
      throw this.#ended(cause)
    }
  }

  /** The same for functions that return a negative qw_status on failure. */
  checked(name: `_qw_${string}`, ...args: number[]): number {
    const result = this.call(name, ...args)
    if (result < 0) throw this.#failure(-result)
    return result
  }

  /** The same for functions that return an address, or NULL on failure. */
  made(name: `_qw_${string}`, ...args: number[]): number {
    const address = this.call(name, ...args)
    if (address === 0) throw this.#failure(this.call('_qw_error_code'))
    return address >>> 0
  }

  /** The same for functions that return a JSON object, or NULL on failure. */
  json(name: `_qw_${string}`, ...args: number[]): Record<string, unknown> {
    return JSON.parse(this.string(this.made(name, ...args))) as Record<string, unknown>
  }

  die(reason: string, cause?: unknown): QwasmError {
    this.#dead ??= new QwasmError('dead', `The engine stopped: ${reason.replace(/\.$/, '')}.`, { cause })
    return this.#dead
  }

  /** A copy of `length` bytes, so that growing or shared memory does not matter to whoever has it. */
  bytes(address: number, length: number): Uint8Array<ArrayBuffer> {
    const copy = newBytes(length, 'a copy of what the module computed', FREE_SOMETHING)
    copy.set(this.memory(address, length))
    return copy
  }

  text(address: number, length: number): string {
    return this.#decoder.decode(this.bytes(address, length))
  }

  string(address: number): string {
    const memory = new Uint8Array(this.#module.wasmMemory.buffer)
    const start = address >>> 0
    return this.text(start, memory.indexOf(0, start) - start)
  }

  view(address: number, length: number): DataView {
    return new DataView(this.#module.wasmMemory.buffer, address >>> 0, length)
  }

  /** The core's memory itself; valid until it grows. */
  memory(address: number, length: number): Uint8Array {
    return new Uint8Array(this.#module.wasmMemory.buffer, address >>> 0, length)
  }

  /** Copies bytes into the core's memory for one call. The room is kept for the next one. */
  withBytes<T>(bytes: Uint8Array, use: (address: number) => T): T {
    return this.withParts([bytes], use)
  }

  /** The same for bytes in several parts, one after the other. */
  withParts<T>(parts: readonly Uint8Array[], use: (address: number, length: number) => T): T {
    const length = parts.reduce((sum, part) => sum + part.byteLength, 0)
    const room = this.#room(length)
    const memory = this.memory(room, length)
    let at = 0
    for (const part of parts) {
      memory.set(part, at)
      at += part.byteLength
    }
    return use(room, length)
  }

  /** The same for a text: its bytes end with a zero. */
  withText<T>(text: string, use: (address: number, length: number) => T): T {
    const bytes = this.#encoder.encode(`${text}\0`)
    return this.withBytes(bytes, (address) => use(address, bytes.length - 1))
  }

  withIds<T>(ids: Int32Array, use: (address: number, count: number) => T): T {
    return this.withBytes(new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength), (address) => use(address, ids.length))
  }

  releaseRoom(): void {
    if (this.#scratch !== 0) this.call('_qw_free', this.#scratch)
    this.#scratch = this.#scratchBytes = 0
  }

  #room(bytes: number): number {
    if (bytes > this.#scratchBytes) {
      this.releaseRoom()
      const size = Math.max(bytes, WANT_BYTES, 4096)
      const address = this.call('_qw_alloc', size) >>> 0
      if (address === 0) throw outOfMemory('bytes on their way into the module', size, `${FREE_SOMETHING} ${this.#had}`)
      this.#scratch = address
      this.#scratchBytes = size
    }
    return this.#scratch
  }

  #failure(status: number): QwasmError {
    return this.#error(status, this.string(this.call('_qw_error_message')))
  }

  #error(status: number, said: string): QwasmError {
    const sentence = said || `The core failed with status ${status}.`
    const code = CODES[status] ?? 'internal'
    return new QwasmError(code, code === 'out_of_memory' ? `${sentence} ${this.#had}` : sentence)
  }

  /** What a trap was. A small allocation that failed has left word; it fails the call, and whatever comes after finds the core dead. */
  #ended(cause: unknown): QwasmError {
    const refused = this.#module['_qw_refused_bytes']!()
    if (refused > 0) {
      const hint = `the model must be loaded again; ${FREE_SOMETHING} ${this.#had}`
      const error = outOfMemory('small things', refused, hint, cause)
      this.die(error.message, error)
      return error
    }
    // The glue leaves a wait by this word when a thread has crashed; the thread's own error arrives later, as an error of the worker.
    if (cause === 'unwind') return this.die('one of its threads failed', cause)
    return this.die(cause instanceof Error ? cause.message : String(cause), cause)
  }

  get #had(): string {
    return had(this.#module.wasmMemory, this.#maximumBytes)
  }
}

/** A model, its tokenizer and its threads. */
export class Engine {
  readonly #core: Core
  readonly #address: number

  constructor(core: Core, address: number) {
    this.#core = core
    this.#address = address
  }

  /** The next range to bring; 'wait': answer one first; 'loaded': everything is there. */
  nextWant(): Want | 'wait' | 'loaded' {
    return this.#core.withBytes(new Uint8Array(WANT_BYTES), (at) => {
      const state = this.#core.checked('_qw_next_want', this.#address, at)
      if (state !== WANT.FILLED) return state === WANT.LOADED ? 'loaded' : 'wait'
      const want = this.#core.view(at, WANT_BYTES)
      return {
        offset: want.getFloat64(0, true),
        length: want.getFloat64(8, true),
        file: this.#core.string(want.getUint32(16, true)),
        id: want.getUint32(20, true),
        optional: want.getUint32(24, true) === 1,
      }
    })
  }

  push(id: number, parts: readonly Uint8Array[], fileSize: number): void {
    this.#core.withParts(parts, (at, length) => this.#core.checked('_qw_push', this.#address, id, at, length, fileSize))
  }

  pushMissing(id: number): void {
    this.#core.checked('_qw_push_missing', this.#address, id)
  }

  get loadBytes(): number {
    return this.#core.call('_qw_load_bytes', this.#address)
  }

  /** The name of how the weights stand in memory; '' before the headers were read. */
  get weightsLayout(): string {
    return this.#core.string(this.#core.call('_qw_weights_layout', this.#address))
  }

  /** The weights' memory itself; valid until memory grows. */
  weights(): Uint8Array {
    const length = this.#core.call('_qw_weights_bytes', this.#address)
    return this.#core.memory(this.#core.call('_qw_weights', this.#address), length)
  }

  /** All of the weights' memory was written: their rows are not wanted any more. */
  restoreWeights(): void {
    this.#core.checked('_qw_restore_weights', this.#address)
  }

  free(): void {
    this.#core.call('_qw_engine_free', this.#address)
  }

  /** Gives the room for pushes back, which may be as large as the tokenizer's file. */
  loaded(): void {
    this.#core.releaseRoom()
  }

  info(): Record<string, unknown> {
    return this.#core.json('_qw_info', this.#address)
  }

  inspect(context: number, bandwidth: number): Record<string, unknown> {
    return this.#core.json('_qw_inspect', this.#address, context, bandwidth)
  }

  /** Bytes per second at which all threads together read the weights. */
  readBandwidth(): number {
    return this.#core.checked('_qw_read_bandwidth', this.#address)
  }

  /** `mark`: the character that keeps a control token plain text, or ''. */
  tokenize(text: string, honourAdded: boolean, mark = ''): number[] {
    const code = mark.codePointAt(0) ?? 0
    const count = this.#core.withText(text, (at, length) =>
      this.#core.checked('_qw_tokenize', this.#address, at, length, honourAdded ? 1 : 0, code)
    )
    const bytes = this.#core.bytes(this.#core.call('_qw_ids', this.#address), 4 * count)
    return Array.from(new Int32Array(bytes.buffer))
  }

  detokenize(ids: Int32Array, skipSpecial: boolean): string {
    const length = this.#core.withIds(ids, (at, count) =>
      this.#core.checked('_qw_detokenize', this.#address, at, count, skipSpecial ? 1 : 0)
    )
    return this.#core.text(this.#core.call('_qw_text', this.#address), length)
  }

  newSession(): Session {
    return new Session(this.#core, this.#core.newSession(this.#address))
  }

  /** The model as a GGUF file that is called `name`. */
  newGguf(name: string): Gguf {
    return new Gguf(this.#core, this.#core.newGguf(this.#address, name))
  }

  /** The next token of each session as one batch, or why it has none. */
  step(sessions: readonly Session[]): (number | QwasmError)[] {
    const count = sessions.length
    const words = new Uint32Array(2 * count) // their addresses, then room for their tokens
    words.set(sessions.map(({ address }) => address))
    return this.#core.withBytes(new Uint8Array(words.buffer), (at) => {
      const tokens = at + 4 * count
      this.#core.checked('_qw_step_many', at, count, tokens)
      const ids = new Int32Array(this.#core.bytes(tokens, 4 * count).buffer)
      return sessions.map(({ address }, i) => (ids[i]! < 0 ? this.#core.sessionError(address, -ids[i]!) : ids[i]!))
    })
  }
}
