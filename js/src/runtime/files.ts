// A module's two files: fetches them, and refuses those that another build made.
import { QwasmError } from '../errors.js'
import type { CoreModule } from './core.js'

declare const QWASM_BUILD: string // version and hash of the modules' sources (scripts/build-id.mjs), put in by the build

/** Where a module's files lie: Emscripten's glue, which is imported, and the wasm. */
export interface ModuleFiles {
  glue: string
  wasm: string
}

/** Fetches and compiles a wasm file, each platform in its own way. */
export type Compile = (url: string) => Promise<WebAssembly.Module>

/** What Emscripten's glue is given; the rest of its options keep their defaults. */
export interface ModuleArguments {
  wasmMemory?: WebAssembly.Memory
  poolSize: number
  print(line: string): void
  printErr(line: string): void
  onAbort(what: unknown): void
}

type Receive = (instance: WebAssembly.Instance, wasm: WebAssembly.Module) => void

interface Glue {
  default(
    options: ModuleArguments & { instantiateWasm(imports: WebAssembly.Imports, receive: Receive): object }
  ): Promise<CoreModule>
  build?: string
}

/** Fetches both files at once and checks their builds: an old glue would call the wrong functions of a new wasm. Gives what starts the module. */
export async function fetchModule(
  files: ModuleFiles,
  compile: Compile
): Promise<(options: ModuleArguments) => Promise<CoreModule>> {
  const glueHere = import(/* @vite-ignore */ /* webpackIgnore: true */ files.glue) as Promise<Glue>
  const [glue, wasm] = await Promise.all([named(files.glue, glueHere), named(files.wasm, compile(files.wasm))])
  checkBuild(files.glue, glue.build)
  const [section] = WebAssembly.Module.customSections(wasm, 'qwasm-build')
  checkBuild(files.wasm, section && new TextDecoder().decode(section))
  return (options) =>
    new Promise((resolve, reject) => {
      const instantiateWasm = (imports: WebAssembly.Imports, receive: Receive) => {
        WebAssembly.instantiate(wasm, imports).then((instance) => receive(instance, wasm)).catch(reject)
        return {} // tells the glue that the exports come later
      }
      glue.default({ ...options, instantiateWasm }).then(resolve, reject)
    })
}

async function named<T>(url: string, loading: Promise<T>): Promise<T> {
  try {
    return await loading
  } catch (cause) {
    throw new QwasmError('environment', `The module's file ${url} could not be loaded: ${(cause as Error).message}`, { cause })
  }
}

function checkBuild(url: string, found: string | undefined): void {
  if (found === QWASM_BUILD) return
  const message = `The script is of qwasm's build ${QWASM_BUILD}, but ${url} is of ${found ?? 'an unknown one'}; an old file may be cached.`
  throw new QwasmError('version_mismatch', message)
}
