// Builds the JavaScript package: esbuild bundles into dist/, the TypeScript compiler checks and writes dist/types/.
import { build } from 'esbuild'
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

async function bundle() {
  const { version } = JSON.parse(await readFile(`${root}package.json`, 'utf8'))
  const common = {
    absWorkingDir: root,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    outdir: 'dist',
    define: { QWASM_VERSION: JSON.stringify(version) },
    legalComments: 'none',
    logLevel: 'warning',
  }
  await build({
    ...common,
    platform: 'browser',
    entryPoints: { browser: 'js/src/browser.ts', 'worker.browser': 'js/src/worker/browser.ts' },
  })
  await build({
    ...common,
    platform: 'node',
    target: 'node20',
    entryPoints: { node: 'js/src/node.ts', 'worker.node': 'js/src/worker/node.ts', cli: 'js/src/cli/main.ts' },
  })
}

function checkTypes() {
  return new Promise((resolve, reject) => {
    const tsc = spawn(process.execPath, [`${root}node_modules/typescript/bin/tsc`, '-p', root], { stdio: 'inherit' })
    tsc.on('error', reject)
    tsc.on('exit', (code) => (code === 0 ? resolve() : reject(new Error('The types do not check.'))))
  })
}

try {
  await Promise.all([bundle(), checkTypes()])
} catch (error) {
  console.error(`build-js: ${error.message}`)
  process.exitCode = 1
}
