// The build id: the version, and a hash over what the wasm modules are made of. A script and a module of different ids refuse each other.
// node build-id.mjs FILE writes it there, and leaves a file that holds it already as it is: what depends on the file is then not built anew.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from './tools.mjs'

/** The modules' sources, relative to the repository, in one order everywhere. */
function sources() {
  const inFolders = ['core', 'wasm'].flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true }).map(path => `${folder}/${path.replaceAll('\\', '/')}`))
  return ['CMakeLists.txt', ...inFolders.filter(path => /\.(cpp|h|inc)$|\/CMakeLists\.txt$/.test(path))].sort()
}

export function buildId() {
  const hash = createHash('sha256')
  for (const path of sources()) hash.update(`${path}\0`).update(readFileSync(join(root, path))).update('\0')
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return `${version}+${hash.digest('hex').slice(0, 12)}`
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [file] = process.argv.slice(2)
  const id = buildId()
  if (!existsSync(file) || readFileSync(file, 'utf8') !== id) writeFileSync(file, id)
}
