// Imports modules of js/src into a test, for what the package's entries do not show.
import { build } from 'esbuild'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../../support/golden.mjs'

/** The exports of TypeScript files, by their paths under js/src. */
export async function importSource(...paths) {
  const folder = mkdtempSync(join(tmpdir(), 'qwasm-source-'))
  try {
    const outfile = join(folder, 'bundle.mjs')
    const common = { bundle: true, format: 'esm', platform: 'node', target: 'node20', define: { QWASM_VERSION: '"0"', QWASM_BUILD: '"0"' } }
    const contents = paths.map((path) => `export * from './js/src/${path}'`).join('\n')
    await build({ ...common, stdin: { contents, resolveDir: root }, outfile })
    return await import(pathToFileURL(outfile).href)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
