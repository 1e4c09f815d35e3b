// What the loader needs of a place where a model's files lie, and what all places have in common.
import { QwasmError } from '../errors.js'

/** What tells one state of a file from another. Equal states are the same bytes; a field that is null or -1 is not known. */
export interface FileState {
  size: number
  /** Without the mark of a weak one and without the suffix that servers add when they compress. */
  etag: string | null
  lastModified: string | null
  /** The status of the server's answer. */
  status?: number
  /** The origin of the answer, where a redirect led to another than the model's. */
  origin?: string
}

export interface Source {
  /** The file's place, as an error names it. */
  place(file: string): string
  /** The file's state without its bytes; 'missing' where there is none. `attempts`: how often to try (1 = no second try). */
  stat(file: string, attempts?: number): Promise<FileState | 'missing'>
  /**
   * Hands the bytes from `offset` on, in order, to `write`: `length` of them, fewer where the file ends early; with length 0 all to the
   * end. A part is valid only during the call. What was handed over is never handed over again: after a lost connection reading goes on
   * where it stands. The state is that of the bytes.
   */
  read(file: string, offset: number, length: number, write: (part: Uint8Array) => void): Promise<FileState | 'missing'>
  close(): Promise<void>
}

/** Thrown by stat and read when a file's state is not what it was earlier in this load: the loader then starts that file anew. */
export class SourceChanged extends QwasmError {
  readonly file: string

  constructor(file: string, message: string, code: 'http' | 'io' = 'http') {
    super(code, message)
    this.file = file
  }
}

/** How two states of a file differ, in words; undefined where what is known of both agrees. */
export function difference(before: FileState, now: FileState): string | undefined {
  if (before.size >= 0 && now.size >= 0 && before.size !== now.size) return `${before.size} bytes before, ${now.size} now`
  if (before.etag !== null && now.etag !== null) {
    // Servers behind one name may differ in their clocks: equal ETags outweigh dates.
    return before.etag === now.etag ? undefined : `ETag ${before.etag} before, ${now.etag} now`
  }
  if (before.lastModified === null || now.lastModified === null || before.lastModified === now.lastModified) return undefined
  return `last modified ${before.lastModified} before, ${now.lastModified} now`
}

/** What is known of a file after one more answer that agrees with the earlier ones. */
export function mergedState(before: FileState | undefined, now: FileState): FileState {
  if (!before) return now
  const size = now.size >= 0 ? now.size : before.size
  return { ...before, ...now, size, etag: now.etag ?? before.etag, lastModified: now.lastModified ?? before.lastModified }
}

/** File names come from the model's own index, which nobody vouches for: they must stay inside the folder. */
export function checkFileName(file: string): void {
  const parts = file.split('/')
  if (parts.some((part) => part === '' || part === '.' || part === '..') || /[\\:?#\0]/.test(file)) {
    throw new QwasmError('invalid_file', `The model names a file '${file}', which is no name inside its folder.`)
  }
}

const FOREIGN: readonly [string, string][] = [
  ['<!doctype html', 'an HTML page'],
  ['<html', 'an HTML page'],
  ['<head', 'an HTML page'],
  ['<body', 'an HTML page'],
  ['<script', 'an HTML page'],
  ['<?xml', 'an XML document'],
  ['<error>', 'an XML document'],
  ['version https://git-lfs', 'a Git LFS pointer (the file itself was not downloaded; run `git lfs pull`)'],
  ['PK\x03\x04', 'a ZIP archive'],
  ['\x1f\x8b\x08', 'gzip data'],
  ['GGUF', 'a GGUF file'],
]

/** How much of a file's beginning tells whether it is foreign. */
export const BEGINNING_BYTES = 128
const BRACE = 0x7b

/**
 * What stands at the beginning of a model's file instead of its data, in words; undefined where nothing looks wrong. `bytes` are the
 * first BEGINNING_BYTES at least, or the whole file.
 */
export function foreignContent(file: string, bytes: Uint8Array): string | undefined {
  const beginning = bytes.subarray(0, BEGINNING_BYTES)
  const safetensors = file.endsWith('.safetensors')
  // A safetensors header's length may look like any mark. But it is below 2^32, so its upper half is 0, and a brace follows it.
  if (safetensors && beginning[8] === BRACE && beginning.subarray(4, 8).every((byte) => byte === 0)) return undefined
  if (/\.gguf$/i.test(file) && latin1(beginning.subarray(0, 4)) === 'GGUF') return undefined
  const text = latin1(beginning).replace(/^\xef\xbb\xbf/, '').trimStart()
  const foreign = FOREIGN.find(([mark]) => text.toLowerCase().startsWith(mark.toLowerCase()))
  if (foreign) return foreign[1]
  const message = safetensors ? text.startsWith('{') : /^\{\s*"error"\s*:\s*["{]/.test(text)
  return message ? `a JSON text (${snippet(beginning)})` : undefined
}

/** Throws where a file's beginning is something else than a model's data. */
export function refuseForeign(place: string, file: string, beginning: Uint8Array, state: FileState): void {
  const foreign = foreignContent(file, beginning)
  if (foreign === undefined) return
  const from = state.origin === undefined ? '' : `, from ${state.origin}`
  const answered = state.status === undefined ? '' : ` (status ${state.status}${from})`
  const message = `${place}${answered} holds ${foreign}, not the model's ${file}.`
  throw new QwasmError(answered === '' ? 'invalid_file' : 'http', message, { status: state.status })
}

/** The beginning of an unexpected text, on one line. */
export function snippet(bytes: Uint8Array): string {
  const line = new TextDecoder().decode(bytes.subarray(0, 300)).replace(/\s+/g, ' ').trim()
  return line.length > 80 ? `${line.slice(0, 80)}…` : line
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}
