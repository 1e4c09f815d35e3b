// Worker scripts and modules that misbehave in one way each, written into temporary folders.
import { mkdirSync, writeFileSync } from 'node:fs'
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
      }`
    )
  }
  return folder
}
