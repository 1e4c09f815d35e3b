// The memory that a module runs in: reserved on a ladder of sizes where threads share it, and the part of it that weights may take.

const GIGABYTE = 2 ** 30
const PAGE = 65536
const INITIAL_PAGES = 512 // the module's INITIAL_MEMORY, 32 MiB
const MAXIMUM_BYTES = [4 * GIGABYTE, 2 * GIGABYTE, GIGABYTE] // phones refuse large reservations

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
      return { maximumBytes, shared: new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum: maximumBytes / PAGE, shared: true }) }
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
