// Chooses the rung (module and memory) that this place can run, fetches that module and starts it.
import { QwasmError } from '../errors.js'
import type { Variant } from '../types.js'
import { Core, type CoreModule } from './core.js'

declare const QWASM_VERSION: string // the version of package.json, put in by the build

export interface Rung {
  variant: Variant
  threads: number
  why: string
}

interface ModuleArguments {
  wasmMemory?: WebAssembly.Memory
  poolSize: number
  print(line: string): void
  printErr(line: string): void
  onAbort(what: unknown): void
}

type Factory = (options: ModuleArguments) => Promise<CoreModule>

const INITIAL_PAGES = 512 // the module's INITIAL_MEMORY, 32 MiB
const MAXIMUM_PAGES = [65536, 32768, 16384] // 4, 2, 1 GiB: phones refuse large reservations
const START_MS = 30_000 // far beyond a slow start (0.2 s); a worker that a policy forbids never answers

// (module (func (result v128) i32.const 0 i8x16.splat))
const SIMD_PROBE = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11]

/** Starts the module of the wanted variant, or of the best that runs here. */
export async function startCore(
  wasmUrl: string,
  wanted: Variant | undefined,
  threads: number
): Promise<{ core: Core; rung: Rung }> {
  if (!WebAssembly.validate(new Uint8Array(SIMD_PROBE))) {
    throw new QwasmError('environment', 'This browser or Node.js has no WebAssembly SIMD, which qwasm needs.')
  }
  const single: Rung = { variant: 'simd-single', threads: 1, why: 'it was asked for' }
  if (wanted === 'simd-single') return { core: await start(wasmUrl, 'simd-single', 1), rung: single }
  const shared = sharedMemory()
  if (typeof shared !== 'string') {
    try {
      const core = await start(wasmUrl, 'simd', threads, shared)
      return { core, rung: { variant: 'simd', threads, why: wanted ? 'it was asked for' : 'threads and SIMD are there' } }
    } catch (error) {
      if (wanted || !(error instanceof ThreadsFailed)) throw asEnvironmentError(error)
      single.why = error.message
    }
  } else if (wanted) {
    throw new QwasmError('environment', `The variant '${wanted}' cannot run here: ${shared}.`)
  } else {
    single.why = shared
  }
  return { core: await start(wasmUrl, 'simd-single', 1), rung: single }
}

class ThreadsFailed extends Error {}

function asEnvironmentError(error: unknown): unknown {
  return error instanceof ThreadsFailed
    ? new QwasmError('environment', `The variant 'simd' cannot run here: ${error.message}.`)
    : error
}

/** Memory that threads can share, as large as it is given, or why there is none. */
function sharedMemory(): WebAssembly.Memory | string {
  if ((globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated === false) {
    return 'no threads: the page is not cross-origin isolated (the server must send COOP and COEP headers)'
  }
  if (typeof SharedArrayBuffer === 'undefined') return 'no threads: SharedArrayBuffer is missing'
  for (const maximum of MAXIMUM_PAGES) {
    try {
      return new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum, shared: true })
    } catch {
      // refused: the next smaller reservation
    }
  }
  return 'no threads: shared memory of 1 GiB was refused'
}

async function start(wasmUrl: string, variant: Variant, threads: number, wasmMemory?: WebAssembly.Memory): Promise<Core> {
  const url = new URL(`qwasm-${variant}.mjs`, wasmUrl.endsWith('/') ? wasmUrl : `${wasmUrl}/`).href
  let factory: Factory
  try {
    factory = ((await import(/* @vite-ignore */ /* webpackIgnore: true */ url)) as { default: Factory }).default
  } catch (cause) {
    throw new QwasmError('environment', `The module ${url} could not be loaded: ${(cause as Error).message}`, { cause })
  }
  let core: Core | undefined
  let said = ''
  const starting = factory({
    ...(wasmMemory && { wasmMemory }),
    poolSize: threads - 1,
    print: () => {},
    printErr: (line) => void (said = line),
    onAbort: (what) => void core?.die(said || String(what)),
  })
  const module = await withinTime(starting, url, variant, () => said)
  core = new Core(module)
  if (core.version !== QWASM_VERSION) {
    const message = `The script is qwasm ${QWASM_VERSION}, but ${url} is ${core.version}; an old file may be cached.`
    throw new QwasmError('version_mismatch', message)
  }
  return core
}

async function withinTime(starting: Promise<CoreModule>, url: string, variant: Variant, said: () => string): Promise<CoreModule> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    const reason = `no threads: the workers of ${url} did not start within ${START_MS / 1000} s`
    timer = setTimeout(() => reject(new ThreadsFailed(reason)), START_MS)
  })
  try {
    return await (variant === 'simd' ? Promise.race([starting, late]) : starting)
  } catch (cause) {
    if (cause instanceof ThreadsFailed) throw cause
    const detail = said() || (cause instanceof Error ? cause.message : String(cause))
    throw new QwasmError('environment', `The module ${url} could not be started: ${detail}`, { cause })
  } finally {
    clearTimeout(timer)
  }
}
