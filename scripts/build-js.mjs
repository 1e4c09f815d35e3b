// Builds the JavaScript package: esbuild bundles into dist/, the TypeScript compiler checks and writes the types.
import { build } from 'esbuild'
import { spawn } from 'node:child_process'
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { buildId } from './build-id.mjs'
import { root } from './tools.mjs'

async function bundle() {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const common = {
    absWorkingDir: root,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    outdir: 'dist',
    define: { QWASM_VERSION: JSON.stringify(version), QWASM_BUILD: JSON.stringify(buildId()) },
    legalComments: 'none',
    logLevel: 'warning',
  }
  const browser = { ...common, platform: 'browser' }
  const node = { ...common, platform: 'node', target: 'node20' }
  const short = { minify: true } // what nobody reads while debugging: two workers and a program
  await build({ ...browser, entryPoints: { browser: 'js/src/browser.ts' } })
  await build({ ...browser, ...short, entryPoints: { 'worker.browser': 'js/src/worker/browser.ts' } })
  await keepImport('worker.browser.js')
  const openai = { ...common, platform: 'neutral', entryPoints: { openai: 'js/src/openai/index.ts' } }
  await build(openai)
  await build({ ...openai, format: 'cjs', outExtension: { '.js': '.cjs' } })
  // A script of the old kind, for pages run it before all else, and so that every browser takes it as a service worker.
  await build({ ...browser, format: 'iife', entryPoints: { isolation: 'js/src/isolation.ts' } })
  await build({ ...node, entryPoints: { node: 'js/src/node.ts' } })
  await build({ ...node, ...short, entryPoints: { cli: 'js/src/cli/main.ts', 'worker.node': 'js/src/worker/node.ts' } })
  await keepImport('worker.node.js')
  await build({
    ...node,
    format: 'cjs',
    entryPoints: { node: 'js/src/node.ts' },
    outExtension: { '.js': '.cjs' },
    define: { ...common.define, 'import.meta.url': 'moduleUrl' },
    banner: { js: "const moduleUrl = require('node:url').pathToFileURL(__filename).href" },
  })
}

/** Gives a worker's one import of the glue its comments back, which go with the white space: they keep Vite and webpack from following it. */
async function keepImport(name) {
  const path = join(root, 'dist', name)
  const parts = (await readFile(path, 'utf8')).split('import(')
  if (parts.length !== 2) throw new Error(`${name} should have one import(), and has ${parts.length - 1}.`)
  await writeFile(path, parts.join('import(/* @vite-ignore */ /* webpackIgnore: true */ '))
}

function writeTypes() {
  return new Promise((resolve, reject) => {
    const tsc = spawn(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', root], { stdio: 'inherit' })
    tsc.on('error', reject)
    tsc.on('exit', (code) => (code === 0 ? resolve() : reject(new Error('The types do not check.'))))
  })
}

/** The declarations that `file` leads to, itself among them. */
async function declarationsFrom(folder, file, found = new Set()) {
  if (found.has(file)) return found
  found.add(file)
  const text = await readFile(join(folder, file), 'utf8')
  for (const [, path] of text.matchAll(/(?:from |import\()["'](\.[^"']+)\.js["']/g)) {
    await declarationsFrom(folder, posix.join(posix.dirname(file), `${path}.d.ts`), found)
  }
  return found
}

/** Publishes the declarations that users see, twice: as those of an ES module and, in a folder that says so, of a CommonJS one. */
async function copyTypes() {
  const from = join(root, 'build/types')
  const files = await declarationsFrom(from, 'openai/index.d.ts', await declarationsFrom(from, 'index.d.ts'))
  for (const folder of ['types', 'types/cjs']) {
    const to = join(root, 'dist', folder)
    if (folder === 'types') await rm(to, { recursive: true, force: true })
    for (const file of files) {
      await mkdir(dirname(join(to, file)), { recursive: true })
      await copyFile(join(from, file), join(to, file))
    }
  }
  await writeFile(join(root, 'dist/types/cjs/package.json'), '{ "type": "commonjs" }\n')
}

try {
  await Promise.all([bundle(), writeTypes().then(copyTypes)])
} catch (error) {
  console.error(`build-js: ${error.message}`)
  process.exitCode = 1
}
