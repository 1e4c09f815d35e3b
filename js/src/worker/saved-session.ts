// A session as bytes, and back: a mark, the header's length (u32 at 8) and its checksum (f64 at 16); the header, which is JSON, filled up with spaces to
// whole eights; then what is used of each block of the cache, behind its checksum (f64). Numbers are little-endian.
import { QwasmError } from '../errors.js'
import { BLOCK_TOKENS, type Session } from '../runtime/session.js'
import { newBytes } from '../runtime/memory.js'
import type { ModelInfo } from '../types.js'

const MARK = 'qwasm/se'
const VERSION = 1
const PREFIX = 24

interface Header {
  version: number
  /** The model as errors name it. */
  model: string
  identity: string
  tokens: number[]
}

export async function saveSession(session: Session, model: ModelInfo, pause: () => Promise<void>): Promise<Uint8Array<ArrayBuffer>> {
  const tokens = Array.from(session.cached())
  const header: Header = { version: VERSION, model: nameOf(model), identity: model.identity, tokens }
  const text = JSON.stringify(header)
  const encoded = new TextEncoder().encode(text)
  const padded = new TextEncoder().encode(text + ' '.repeat(-encoded.length & 7))
  const saved = newBytes(PREFIX + padded.length + blocksLength(model, tokens.length), 'a saved session', 'a shorter session takes less')
  const view = new DataView(saved.buffer)
  new TextEncoder().encodeInto(MARK, saved)
  view.setUint32(8, padded.length, true)
  view.setFloat64(16, checksum(padded), true)
  saved.set(padded, PREFIX)
  let at = PREFIX + padded.length
  for (const { index, count } of blocks(tokens.length)) {
    const start = at + 8
    let end = start
    for (const part of usedParts(session, model, index, count)) {
      saved.set(part, end)
      end += part.length
    }
    view.setFloat64(at, checksum(saved.subarray(start, end)), true)
    at = end
    await pause()
  }
  return saved
}

/** Fills a new session. Throws, before or after a part of it was filled, on bytes that are not a whole saved session of this model. */
export async function restoreSession(session: Session, model: ModelInfo, saved: Uint8Array, pause: () => Promise<void>): Promise<void> {
  const view = new DataView(saved.buffer, saved.byteOffset, saved.byteLength)
  const { header, end } = readHeader(saved, view)
  if (header.version !== VERSION) {
    throw new QwasmError('unsupported', `The session was saved in form ${header.version}; this version of qwasm reads form ${VERSION}.`)
  }
  if (header.identity !== model.identity) {
    throw new QwasmError('invalid_argument', `The session was saved with the model ${header.model}; this model is ${nameOf(model)}.`)
  }
  const length = end + blocksLength(model, header.tokens.length)
  if (length !== saved.length) throw damaged(`expected ${length} bytes, found ${saved.length}`)
  if (header.tokens.length === 0) return
  session.restore(Int32Array.from(header.tokens))
  let at = end
  for (const { index, count } of blocks(header.tokens.length)) {
    const parts = [...usedParts(session, model, index, count)]
    const block = saved.subarray(at + 8, at + 8 + parts.length * parts[0]!.length)
    if (checksum(block) !== view.getFloat64(at, true)) throw damaged(`block ${index} does not have its checksum`)
    parts.forEach((part, i) => part.set(block.subarray(i * part.length, (i + 1) * part.length)))
    at += 8 + block.length
    await pause()
  }
}

/** The blocks of a cache with so many tokens. */
const blocks = (tokens: number) =>
  Array.from({ length: Math.ceil(tokens / BLOCK_TOKENS) }, (_, index) => ({
    index,
    count: Math.min(BLOCK_TOKENS, tokens - index * BLOCK_TOKENS),
  }))

/** A block has the keys and the values of each head in each layer, one after the other; in them four tokens' numbers stand together. */
const headsOf = (model: ModelInfo) => 2 * model.layers * model.keyValueHeads
const usedBytes = (model: ModelInfo, count: number) => (Math.ceil(count / 4) * 4 * model.kvBytesPerToken) / headsOf(model)

const blocksLength = (model: ModelInfo, tokens: number): number =>
  blocks(tokens).reduce((sum, { count }) => sum + 8 + headsOf(model) * usedBytes(model, count), 0)

/** The memory of a block's first `count` tokens, head by head; valid until memory grows. */
function* usedParts(session: Session, model: ModelInfo, index: number, count: number): Generator<Uint8Array> {
  const block = session.block(index, BLOCK_TOKENS * model.kvBytesPerToken)
  const head = block.length / headsOf(model)
  for (let at = 0; at < block.length; at += head) yield block.subarray(at, at + usedBytes(model, count))
}

function readHeader(saved: Uint8Array, view: DataView): { header: Header; end: number } {
  if (saved.length < PREFIX) throw damaged(`expected at least ${PREFIX} bytes, found ${saved.length}`)
  const mark = new TextDecoder('latin1').decode(saved.subarray(0, MARK.length))
  if (mark !== MARK) throw damaged(`expected '${MARK}' at its beginning, found other bytes`)
  const end = PREFIX + view.getUint32(8, true)
  if (end > saved.length) throw damaged(`expected ${end} bytes of header, found ${saved.length} in all`)
  const text = saved.subarray(PREFIX, end)
  if (checksum(text) !== view.getFloat64(16, true)) throw damaged('its header does not have its checksum')
  try {
    const header = JSON.parse(new TextDecoder().decode(text)) as Header
    const { version, tokens } = header
    const areIds = (list: unknown) => Array.isArray(list) && list.every((id) => Number.isInteger(id) && id >= 0 && id < 2 ** 31)
    if (typeof version === 'number' && (version !== VERSION || areIds(tokens))) return { header, end }
  } catch {
    // no JSON: the sentence below says it
  }
  throw damaged('its header is not one that qwasm writes')
}

/** A number that damage changes: two hashes in the manner of MurmurHash3, 53 bits. 100 MB take 0.1 s. */
function checksum(bytes: Uint8Array): number {
  const whole = bytes.length & ~3
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice()
  let a = bytes.length
  let b = ~bytes.length
  const mix = (word: number) => {
    a = Math.imul(a ^ word, 0x9e3779b1)
    a ^= a >>> 15
    b = Math.imul(b ^ word, 0x85ebca77)
    b ^= b >>> 13
  }
  for (const word of new Int32Array(aligned.buffer, aligned.byteOffset, whole / 4)) mix(word)
  for (const byte of bytes.subarray(whole)) mix(byte)
  return (a >>> 0) * 2 ** 21 + (b >>> 11)
}

/** Of a path the last name alone: the rest may tell more than its owner wants to hand on. */
function nameOf({ source, architecture, parameters, dtype, kv, identity }: ModelInfo): string {
  const folder = source.replace(/[/\\]+$/, '').replace(/^.*[/\\]/, '')
  return `${folder} (${architecture}, ${parameters} parameters, ${dtype}, cache in ${kv}, ${identity})`
}

function damaged(what: string): QwasmError {
  return new QwasmError('invalid_file', `The saved session is damaged or none: ${what}.`)
}
