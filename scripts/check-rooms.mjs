// Checks the arrows between the core's rooms: which folder may include which.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))

// The table of core/README.md. A room may also include itself, the standard library, and what its third-party entry allows.
const MAY_USE = {
  base: [],
  quant: ['base'],
  kernels: ['quant', 'base'],
  files: ['quant', 'base'],
  text: ['base'],
  sample: ['base'],
  model: ['kernels', 'files', 'quant', 'base'],
  engine: ['model', 'sample', 'text', 'files', 'kernels', 'quant', 'base'],
  api: ['engine', 'model', 'sample', 'text', 'files', 'kernels', 'quant', 'base'],
}

const problems = []
const core = join(root, 'core')
for (const entry of readdirSync(core, { withFileTypes: true, recursive: true })) {
  if (!entry.isFile() || !/\.(h|cpp|inc)$/.test(entry.name)) continue
  const path = join(entry.parentPath ?? entry.path, entry.name)
  const name = path.slice(root.length)
  const room = name.split('/')[1]
  if (!MAY_USE[room]) {
    problems.push(`${name}: the table of rooms has no row for core/${room}`)
    continue
  }
  for (const [, include] of readFileSync(path, 'utf8').matchAll(/^\s*#\s*include\s+"([^"]+)"/gm)) {
    const [top, target] = include.split('/')
    if (top !== 'core') problems.push(`${name}: includes "${include}"; includes start at the repository's root, with "core/"`)
    else if (target !== room && !MAY_USE[room].includes(target)) problems.push(`${name}: core/${room} may not use core/${target} (${include})`)
  }
}
for (const problem of problems) console.error(problem)
console.log(`Arrows between the core's rooms: ${problems.length === 0 ? 'as the table says' : `${problems.length} broken`}`)
if (problems.length > 0) process.exitCode = 1
