// What a linked module still lacks before it may ship; runs right after the linker.
// node finish-module.mjs GLUE ID_FILE changes GLUE (a .mjs) and the .wasm beside it:
// - threads start from whatever name the glue's file has, since bundlers give it another;
// - development servers for browsers do not look for the modules of Node.js that only Node.js imports;
// - both files carry the build id, so that files of two builds never meet (js/src/runtime/files.ts).
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'

const [gluePath, idFile] = process.argv.slice(2)
const id = readFileSync(idFile, 'utf8')
const name = basename(gluePath, '.mjs')
const threads = name.endsWith('-single') ? 0 : 1

/** Replaces every `from`; another Emscripten may write it another way, so there must be as many as are known. */
function replaceAll(text, from, to, count) {
  const parts = text.split(from)
  if (parts.length - 1 !== count) throw new Error(`${gluePath}: ${from} was expected ${count} times and is there ${parts.length - 1} times.`)
  return parts.join(to)
}

/** A custom section of a wasm file; each length is below 128, so that one byte holds it. */
function customSection(title, text) {
  const content = [Buffer.from([title.length]), Buffer.from(title), Buffer.from(text)]
  return Buffer.concat([Buffer.from([0, content.reduce((sum, part) => sum + part.length, 0)]), ...content])
}

let glue = readFileSync(gluePath, 'utf8')
glue = replaceAll(glue, `new URL("${name}.mjs",import.meta.url)`, 'new URL(import.meta.url)', threads)
glue = replaceAll(glue, 'import("module")', 'import(/* @vite-ignore */ String("module"))', 1)
glue = replaceAll(glue, "import('worker_threads')", "import(/* @vite-ignore */ String('worker_threads'))", threads)
writeFileSync(gluePath, `${glue}export const build = ${JSON.stringify(id)};\n`)
appendFileSync(gluePath.replace(/\.mjs$/, '.wasm'), customSection('qwasm-build', id))
