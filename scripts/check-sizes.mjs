// Checks the sizes that are promised: each wasm module, and the package as it would be published.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { VARIANTS, root } from './tools.mjs'

const MODULES = VARIANTS.map(variant => `qwasm-${variant}`)
const MODULE_RAW = 400 * 1024
const MODULE_BROTLI = 150 * 1024
const PACKAGE_UNPACKED = 2.5e6

let failures = 0
function check(what, bytes, limit) {
  const good = bytes <= limit
  if (!good) failures++
  console.log(`${what}: ${bytes} bytes of ${limit} allowed${good ? '' : ': TOO LARGE'}`)
}

for (const name of MODULES) {
  const module = readFileSync(join(root, `dist/wasm/${name}.wasm`))
  check(`${name}.wasm`, module.length, MODULE_RAW)
  check(`${name}.wasm, brotli`, brotliCompressSync(module).length, MODULE_BROTLI)
}
const [pack] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
check('npm package, unpacked', pack.unpackedSize, PACKAGE_UNPACKED)
const SCRIPTS = ['browser.js', 'node.js', 'node.cjs', 'worker.browser.js', 'worker.node.js', 'isolation.js', 'openai.js', 'openai.cjs', 'cli.js']
const TYPES = ['types/index.d.ts', 'types/openai/index.d.ts', 'types/cjs/index.d.ts', 'types/cjs/openai/index.d.ts', 'types/cjs/package.json']
for (const path of [...SCRIPTS, ...TYPES, ...MODULES.flatMap(name => [`wasm/${name}.mjs`, `wasm/${name}.wasm`])].map(name => `dist/${name}`)) {
  if (pack.files.some(file => file.path === path)) continue
  failures++
  console.log(`npm package: ${path} is missing`)
}
if (failures > 0) process.exitCode = 1
