// A project of a user: the recipes, with the package installed from its tarball.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../../support/golden.mjs'

const npm = (folder, ...args) => execFileSync('npm', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

/**
 * Makes the project in a temporary folder: { folder, tarball: Buffer, qwasm: the installed package's folder, remove() }.
 * Nothing comes from the network: the package's one dependency is the repository's own copy.
 */
export function makeProject() {
  const folder = mkdtempSync(join(tmpdir(), 'qwasm-project-'))
  const [{ filename }] = JSON.parse(npm(root, 'pack', '--json', '--ignore-scripts', '--pack-destination', folder))
  cpSync(join(root, 'tests/package/recipes'), folder, { recursive: true })
  const jinja = `file:${join(root, 'node_modules/@huggingface/jinja')}`
  const about = { private: true, type: 'module', dependencies: { qwasm: `file:${filename}` }, overrides: { '@huggingface/jinja': jinja } }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(about))
  npm(folder, 'install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund')
  symlinkSync(join(root, 'node_modules/esbuild'), join(folder, 'node_modules/esbuild'))
  const qwasm = join(folder, 'node_modules/qwasm')
  return { folder, tarball: readFileSync(join(folder, filename)), qwasm, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
