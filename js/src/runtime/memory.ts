// The memory that a module runs in: reserved on a ladder of sizes where threads share it, the part of it that weights may take, and
// the error of memory that is not there.
import { QwasmError } from '../errors.js'

const GIGABYTE = 2 ** 30
const PAGE = 65536
const MAXIMUM_BYTES = [4 * GIGABYTE, 2 * GIGABYTE, GIGABYTE] // phones refuse large reservations

/** What a module begins with: its INITIAL_MEMORY. */
export const INITIAL_BYTES = 32 * 2 ** 20

export interface ModuleMemory {
  maximumBytes: number
  /** Where threads share it; else the module brings its own. */
  shared?: WebAssembly.Memory
}

export const OWN_MEMORY: ModuleMemory = { maximumBytes: 4 * GIGABYTE }

/** Memory that threads can share, as large as it is given, or why there is none. */
export function reserveSharedMemory(): ModuleMemory | string {
  if ((globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated === false) {
    return 'no threads: the page is not cross-origin isolated (the server must send COOP and COEP headers)'
  }
  if (typeof SharedArrayBuffer === 'undefined') return 'no threads: SharedArrayBuffer is missing'
  for (const maximumBytes of MAXIMUM_BYTES) {
    try {
      const pages = { initial: INITIAL_BYTES / PAGE, maximum: maximumBytes / PAGE }
      return { maximumBytes, shared: new WebAssembly.Memory({ ...pages, shared: true }) }
    } catch {
      // refused: the next smaller reservation
    }
  }
  return 'no threads: shared memory of 1 GiB was refused'
}

/** Gigabytes of the device as a browser tells them, coarsely; undefined where it does not. */
export function deviceGigabytes(): number | undefined {
  return (globalThis as { navigator?: { deviceMemory?: number } }).navigator?.deviceMemory
}

/** Bytes that weights may take: half of what the memory may grow to, and no more than a quarter of the device's. */
export function weightBudget(maximumBytes: number, deviceMemory = deviceGigabytes()): number {
  const ofDevice = deviceMemory === undefined ? Infinity : (deviceMemory * GIGABYTE) / 4
  return Math.min(maximumBytes / 2, ofDevice)
}

const inWords = (bytes: number) => bytes.toLocaleString('en-US')

/** The error of an allocation that failed, in the words that the core has for its own. `hint`: what would take less. */
export function outOfMemory(what: string, bytes: number, hint: string, cause?: unknown): QwasmError {
  return new QwasmError('out_of_memory', `no memory for ${what}: ${inWords(bytes)} bytes were asked; ${hint}`, { cause })
}

/** What a module has, behind the sentence of an allocation in it. */
export function had({ buffer }: WebAssembly.Memory, maximumBytes: number): string {
  return `(the module's memory has ${inWords(buffer.byteLength)} bytes and may grow to ${inWords(maximumBytes)})`
}

/** Zeros in JavaScript's own memory. */
export function newBytes(count: number, what: string, hint: string): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(count)
  } catch (cause) {
    throw outOfMemory(what, count, hint, cause)
  }
}
