// Where the modules lie: beside the worker's script, or in the folder that the caller names.
import type { ModuleFiles } from '../runtime/files.js'
import type { Variant } from '../variants.js'

// Bundlers find and rename files by `new URL('…', import.meta.url)` with the name written out, so each stands here; paths are those of dist/.
// Functions, so that a script without a usable import.meta.url still takes the caller's folder.
const BESIDE: Record<Variant, () => [glue: URL, wasm: URL]> = {
  'relaxed': () => [new URL('./wasm/qwasm-relaxed.mjs', import.meta.url), new URL('./wasm/qwasm-relaxed.wasm', import.meta.url)],
  'simd': () => [new URL('./wasm/qwasm-simd.mjs', import.meta.url), new URL('./wasm/qwasm-simd.wasm', import.meta.url)],
  'relaxed-single': () => [
    new URL('./wasm/qwasm-relaxed-single.mjs', import.meta.url),
    new URL('./wasm/qwasm-relaxed-single.wasm', import.meta.url),
  ],
  'simd-single': () => [
    new URL('./wasm/qwasm-simd-single.mjs', import.meta.url),
    new URL('./wasm/qwasm-simd-single.wasm', import.meta.url),
  ],
}

/** The files of a variant; `folder` is the caller's `wasmUrl`, in which they have their own names. */
export function moduleFiles(variant: Variant, folder: string | undefined): ModuleFiles {
  if (folder === undefined) {
    const [glue, wasm] = BESIDE[variant]()
    return { glue: glue.href, wasm: wasm.href }
  }
  const inFolder = (ending: string) => new URL(`qwasm-${variant}.${ending}`, folder.endsWith('/') ? folder : `${folder}/`).href
  return { glue: inFolder('mjs'), wasm: inFolder('wasm') }
}
