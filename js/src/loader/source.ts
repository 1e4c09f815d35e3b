// What the loader needs of a place where a model's files lie, and what all places have in common.
import { QwasmError } from '../errors.js'

export interface Arrived {
  bytes: Uint8Array
  /** Bytes of the whole file, or -1 where the transport does not know. */
  fileSize: number
  /** The status of the server's answer. */
  status?: number
}

/** What a source needs of whoever reads. */
export interface Receiver {
  /** Hears of bytes on the way. */
  onBytes(count: number): void
  /** Room for a range, which is used again once its bytes were taken: a source need not leave megabytes to the garbage collector. */
  room(length: number): Uint8Array
}

export interface Source {
  /** Reads a range of a file (fewer bytes where it ends early), or all of it where `length` is 0. */
  read(file: string, offset: number, length: number, receiver: Receiver): Promise<Arrived | 'missing'>
  /** The file's place, as an error names it. */
  place(file: string): string
  close(): Promise<void>
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
  ['<?xml', 'an XML document'],
  ['version https://git-lfs', 'a Git LFS pointer (the file itself was not downloaded; run `git lfs pull`)'],
]

/** What stands at a file's beginning instead of a model's data, in words; undefined where nothing looks wrong. */
export function foreignContent(bytes: Uint8Array): string | undefined {
  const beginning = latin1(bytes.subarray(0, 64)).trimStart().toLowerCase()
  if (beginning.length < 5) return undefined // fewer characters would fit too much
  return FOREIGN.find(([mark]) => beginning.startsWith(mark.slice(0, beginning.length)))?.[1]
}

/** The beginning of an unexpected text, on one line. */
export function snippet(bytes: Uint8Array): string {
  const line = new TextDecoder().decode(bytes.subarray(0, 300)).replace(/\s+/g, ' ').trim()
  return line.length > 80 ? `${line.slice(0, 80)}…` : line
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}
