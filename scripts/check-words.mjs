// Checks the text of the tree: nothing unfinished, no test left out, no path of one machine, no registry's host in the lock file.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))

const EVERYWHERE = [
  [/\.\.\/shared\b/, 'a path outside the repository'],
  [/\/work\//, "one machine's path"],
  [/\b(TODO|FIXME|XXX)\b/, 'an unfinished thought'],
]
const IN_CODE = [
  [/\bstubs?\b/i, 'a stub'],
  [/\b(it|test|describe|t)\.(skip|todo|only)\b|\b(skip|todo|only):\s*true\b|\bGTEST_SKIP\b|\bDISABLED_[A-Z]/, 'a test left out'],
]
const CODE = /\.(c|cpp|h|inc|ts|mjs|js|sh|py|css|html)$/
// Data (tokenizers, goldens) holds any word; this file holds the words it looks for.
const LEFT_OUT = /^(tests\/golden|models)\/|^package-lock\.json$|^scripts\/check-words\.mjs$/

/** Files under a folder, relative to the repository; without what is built or installed. */
function filesUnder(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return ['.git', 'build', 'dist', 'node_modules'].includes(entry.name) ? [] : filesUnder(path)
    return entry.isFile() && !entry.name.endsWith('.log') ? [path] : []
  })
}

const paths = filesUnder('').filter(path => !LEFT_OUT.test(path))
let problems = 0
for (const path of paths) {
  const lines = readFileSync(join(root, path), 'utf8').split('\n')
  const rules = CODE.test(path) ? [...EVERYWHERE, ...IN_CODE] : EVERYWHERE
  lines.forEach((line, index) => {
    for (const [pattern, what] of rules) {
      if (!pattern.test(line)) continue
      problems++
      console.error(`${path}:${index + 1}: ${what}: ${line.trim().slice(0, 120)}`)
    }
  })
}
const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
for (const [name, entry] of Object.entries(lock.packages)) {
  if (!entry.resolved) continue
  problems++
  console.error(`package-lock.json: ${name} names the host it came from: ${entry.resolved}`)
}
console.log(`Words of ${paths.length} files: ${problems === 0 ? 'clean' : `${problems} problems`}`)
if (problems > 0) process.exitCode = 1
