// esbuild bundles the page's script; the worker and the modules, which it does not look for, are copied beside the bundle.
import { build } from 'esbuild'
import { cpSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = dirname(fileURLToPath(import.meta.url))
const qwasm = dirname(fileURLToPath(import.meta.resolve('qwasm')))
await build({ absWorkingDir: folder, entryPoints: ['main.js'], bundle: true, minify: true, format: 'esm', outdir: 'dist' })
for (const name of ['worker.browser.js', 'wasm']) cpSync(join(qwasm, name), join(folder, 'dist', name), { recursive: true })
cpSync(join(folder, 'index.html'), join(folder, 'dist/index.html'))
