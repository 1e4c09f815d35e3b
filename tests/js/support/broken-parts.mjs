// Worker scripts and modules that misbehave in one way each, written into temporary folders.
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../../support/golden.mjs'
import { VARIANTS } from '../../support/variants.mjs'
import { temporaryFolder } from './models.mjs'

const dist = pathToFileURL(join(root, 'dist/')).href

/** The worker of the package after `code` ran in its thread, and with `later` run when it has started: for `workerUrl`. */
export function workerAfter(code, later = '') {
  const path = join(temporaryFolder(), 'worker.mjs')
  writeFileSync(path, `${code}\nawait import('${dist}worker.node.js')\n${later}\n`)
  return path
}

/** A folder for `wasmUrl` whose modules are the real ones, changed by `code`, the body of a function of `module`. */
export function modulesWith(code) {
  const folder = join(temporaryFolder(), 'wasm')
  mkdirSync(folder)
  for (const variant of VARIANTS) {
    const name = `qwasm-${variant}.mjs`
    writeFileSync(
      join(folder, name),
      `import create from '${dist}wasm/${name}'
      export default async (options) => {
        const module = await create(options)
        ${code}
        return module
      }
      export { build } from '${dist}wasm/${name}'`
    )
    symlinkSync(join(root, `dist/wasm/qwasm-${variant}.wasm`), join(folder, `qwasm-${variant}.wasm`))
  }
  return folder
}

/** A folder for `wasmUrl` whose files of one ending, 'mjs' or 'wasm', are those of another build: its id ends with `id`. */
export function modulesOfBuild(id, ending) {
  const folder = join(temporaryFolder(), 'wasm')
  cpSync(join(root, 'dist/wasm'), folder, { recursive: true })
  for (const variant of VARIANTS) {
    const path = join(folder, `qwasm-${variant}.${ending}`)
    const bytes = readFileSync(path)
    // The id stands at the end of a file, `0.1.0+` and twelve digits; in the glue a quote, a semicolon and a new line follow.
    bytes.write(id, bytes.lastIndexOf('+') + 13 - id.length, 'latin1')
    writeFileSync(path, bytes)
  }
  return folder
}
