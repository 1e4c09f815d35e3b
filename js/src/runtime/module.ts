// Chooses the rung (module and memory) that this place can run, fetches that module and starts it.
import { QwasmError } from '../errors.js'
import { VARIANTS, type Variant } from '../variants.js'
import { Core, type CoreModule } from './core.js'
import { fetchModule, type Compile, type ModuleFiles } from './files.js'
import { INITIAL_BYTES, outOfMemory, OWN_MEMORY, reserveSharedMemory, type ModuleMemory } from './memory.js'
import { relaxedSimdProblem } from './probe.js'

/** Where a model runs, and why there. */
export interface Rung {
  variant: Variant
  threads: number
  why: string
  /** What the module's memory may grow to. */
  maximumBytes: number
}

/** Where the modules come from. */
export interface ModulePlace {
  files(variant: Variant): ModuleFiles
  compile: Compile
}

const START_MS = 30_000 // far beyond a slow start (0.2 s); a worker that a policy forbids never answers

// (module (func (result v128) i32.const 0 i8x16.splat))
const SIMD_PROBE = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11]

const usesRelaxed = (variant: Variant) => variant.startsWith('relaxed')
const usesThreads = (variant: Variant) => !variant.endsWith('-single')

class ThreadsFailed extends Error {}

/** Starts the module of the wanted variant, or of the highest rung that runs here; only that one is fetched. */
export async function startCore(
  place: ModulePlace,
  wanted: Variant | undefined,
  threads: number
): Promise<{ core: Core; rung: Rung }> {
  if (!WebAssembly.validate(new Uint8Array(SIMD_PROBE))) {
    throw new QwasmError('environment', 'This browser or Node.js has no WebAssembly SIMD, which qwasm needs.')
  }
  const candidates = wanted ? [wanted] : VARIANTS
  const relaxedProblem = candidates.some(usesRelaxed) ? relaxedSimdProblem() : undefined
  const shared = candidates.some(usesThreads) ? reserveSharedMemory() : OWN_MEMORY
  let threadsProblem = typeof shared === 'string' ? shared : undefined
  const problems = new Set<string>()
  for (const variant of candidates) {
    const problem = (usesRelaxed(variant) && relaxedProblem) || (usesThreads(variant) && threadsProblem)
    if (problem) {
      problems.add(problem)
      continue
    }
    const count = usesThreads(variant) ? threads : 1
    const memory = usesThreads(variant) && typeof shared !== 'string' ? shared : OWN_MEMORY
    try {
      const core = await start(place, variant, count, memory)
      return { core, rung: { variant, threads: count, why: reason(wanted, problems, memory), maximumBytes: memory.maximumBytes } }
    } catch (error) {
      if (!(error instanceof ThreadsFailed)) throw error
      problems.add((threadsProblem = error.message))
    }
  }
  // The ladder's last rung needs nothing, so this is a variant that was asked for.
  throw new QwasmError('environment', `The variant '${wanted}' cannot run here: ${[...problems].join('; ')}.`)
}

/** Why a rung was taken: it was asked for, it is the highest, or what the higher ones lack; and whether memory was granted in full. */
function reason(wanted: Variant | undefined, problems: Set<string>, { maximumBytes }: ModuleMemory): string {
  const highest = problems.size === 0 ? 'relaxed SIMD and threads are there' : [...problems].join('; ')
  const limit = maximumBytes < OWN_MEMORY.maximumBytes ? `; memory of only ${maximumBytes / 2 ** 30} GiB was granted` : ''
  return (wanted ? 'it was asked for' : highest) + limit
}

async function start(place: ModulePlace, variant: Variant, threads: number, memory: ModuleMemory): Promise<Core> {
  const files = place.files(variant)
  const create = await fetchModule(files, place.compile)
  let core: Core | undefined
  let said = ''
  const starting = create({
    ...(memory.shared && { wasmMemory: memory.shared }),
    poolSize: threads - 1,
    print: () => {},
    printErr: (line) => void (said = line),
    onAbort: (what) => void core?.die(said || String(what)),
  })
  core = new Core(await withinTime(starting, files.glue, variant, () => said), memory.maximumBytes)
  return core
}

async function withinTime(starting: Promise<CoreModule>, url: string, variant: Variant, said: () => string): Promise<CoreModule> {
  const threads = usesThreads(variant) ? watchThreads(url) : undefined
  try {
    const module = await (threads ? Promise.race([starting, threads.failed]) : starting)
    threads?.started()
    return module
  } catch (cause) {
    if (cause instanceof ThreadsFailed) throw cause
    const detail = said() || (cause instanceof Error ? cause.message : String(cause))
    if (/out of memory|(could not|cannot) allocate/i.test(detail)) {
      throw outOfMemory(`the module ${url}`, INITIAL_BYTES, `closing other programs or tabs may help (${detail})`, cause)
    }
    throw new QwasmError('environment', `The module ${url} could not be started: ${detail}`, { cause })
  }
}

/** Rejects `failed` where the workers of threads report an error before `started` is called, or do not start in time. */
function watchThreads(url: string): { failed: Promise<never>; started: () => void } {
  let running = false
  let started = () => {}
  let hear = () => {}
  const failed = new Promise<never>((_, reject) => {
    const giveUp = (reason: string) => reject(new ThreadsFailed(`no threads: the workers of ${url} ${reason}`))
    const timer = setTimeout(() => giveUp(`did not start within ${START_MS / 1000} s`), START_MS)
    hear = () => giveUp('could not be started')
    started = () => {
      running = true
      clearTimeout(timer)
    }
  })
  // A thread's error comes twice: as itself, and as its event, which the glue throws. Once threads run the first ends this worker, and its
  // words reach the page; before, and from a module that was given up, neither matters.
  const scope = globalThis as Partial<EventTarget> // Node.js has no such methods there
  scope.addEventListener?.('error', (event) => {
    const { error } = event as ErrorEvent
    if (error instanceof Error || (running && !(error instanceof Event))) return
    event.preventDefault()
    hear()
  })
  return { failed, started }
}
