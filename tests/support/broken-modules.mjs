// Copies of the wasm modules whose threads fail in one way each: for `wasmUrl`.
import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { VARIANTS, root } from '../../scripts/tools.mjs'

const ENTRY = 'var invokeEntryPoint=(ptr,arg)=>{'
const MAKE_WORKER = 'allocateUnusedWorker(){'

/** How a thread fails: a text of Emscripten's glue, and what is put behind it. */
const FAILURES = {
  'throws-at-its-start': [ENTRY, 'throw new Error("this thread failed");'],
  // A thread reaches its work through a table of functions of its own: without them, the first piece of work is a trap.
  'traps-at-its-first-work': [ENTRY, 'for(let i=1;i<wasmTable.length;i++)if(i!=ptr)wasmTable.set(i,null);'],
  'has-no-script': [
    MAKE_WORKER,
    'const Worker=class extends globalThis.Worker{constructor(url,options){super(new URL("nowhere.mjs",import.meta.url),options)}};',
  ],
}

/** Writes the threaded modules into a new folder, with the failure in their glue; the others stay as they are. */
export function writeBrokenModules(folder, failure) {
  const [place, addition] = FAILURES[failure]
  mkdirSync(folder)
  for (const variant of VARIANTS) {
    const name = `qwasm-${variant}`
    const glue = readFileSync(join(root, `dist/wasm/${name}.mjs`), 'utf8')
    const threaded = !variant.endsWith('-single')
    assert.equal(glue.split(place).length, threaded ? 2 : 1, `${name}.mjs has "${place}" once where it has threads`)
    writeFileSync(join(folder, `${name}.mjs`), glue.replace(place, place + addition))
    copyFileSync(join(root, `dist/wasm/${name}.wasm`), join(folder, `${name}.wasm`))
  }
}
