// Runs other programs for set-up and build: short progress lines on stderr, their output in build/log, its end shown when they fail.
import { spawn } from 'node:child_process'
import { createWriteStream, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../', import.meta.url))

/** The wasm modules that a build makes, as in js/src/variants.ts. */
export const VARIANTS = ['relaxed', 'simd', 'relaxed-single', 'simd-single']

/** A failure whose sentence tells a person what to do; printed without a stack. */
export class SetupError extends Error {}

/** Where to get a program that is not there. */
const INSTALL_HINTS = {
  cmake: 'install CMake 3.20 or newer (Debian: apt-get install cmake; macOS: brew install cmake)',
  ninja: 'install Ninja (Debian: apt-get install ninja-build; macOS: brew install ninja)',
  npm: 'install npm, which comes with Node.js 20 or newer',
  emcmake: 'install the Emscripten SDK, version 3.1.69 or newer, and put its emcc on PATH',
  sh: 'a POSIX shell is needed',
}

/** Shows that `title` runs; gives the function that ends the line. */
function startLine(title) {
  const start = Date.now()
  const seconds = () => `${((Date.now() - start) / 1000).toFixed(1).padStart(6)} s`
  const live = process.stderr.isTTY
  const show = () => process.stderr.write(live ? `\r[${seconds()}] ${title} …` : `[${seconds()}] ${title} …\n`)
  if (live) show()
  // A terminal sees the seconds run; a log file gets a sign of life every 30 seconds.
  const timer = setInterval(show, live ? 200 : 30_000)
  return word => {
    clearInterval(timer)
    process.stderr.write(`${live ? '\r\x1b[K' : ''}[${seconds()}] ${title}${word}\n`)
  }
}

/** Runs `work` under a progress line. */
export async function step(title, work) {
  const finish = startLine(title)
  try {
    const result = await work()
    finish('')
    return result
  } catch (error) {
    finish(': failed')
    throw error
  }
}

/** The last lines of a log, for a person who sees a failure. */
function tail(path, lines = 40) {
  return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-lines).join('\n')
}

/** Runs a program to its end; its output goes to build/log/<log>.log. Rejects with the log's last lines. */
export async function run(log, command, args, { env = {}, cwd = root } = {}) {
  mkdirSync(join(root, 'build/log'), { recursive: true })
  const path = join(root, `build/log/${log}.log`)
  const file = createWriteStream(path)
  file.write(`$ ${[command, ...args].join(' ')}\n`)
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.pipe(file, { end: false })
  child.stderr.pipe(file, { end: false })
  const code = await new Promise((resolve, reject) => {
    child.on('error', error => reject(error.code === 'ENOENT' ? new SetupError(missing(command)) : error))
    child.on('close', (exitCode, signal) => resolve(exitCode ?? signal))
  })
  await new Promise(resolve => file.end(resolve))
  if (code !== 0) throw new SetupError(`${tail(path)}\n\n${command} ended with ${code}; all it said is in build/log/${log}.log`)
}

function missing(command) {
  return `${command} is missing: ${INSTALL_HINTS[command] ?? `install ${command} and put it on PATH`}.`
}

/** Runs a program and gives its trimmed standard output, or null where it is absent or fails. */
export async function ask(command, args) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  child.stdout.on('data', data => (output += data))
  const code = await new Promise(resolve => {
    child.on('error', () => resolve(null))
    child.on('close', resolve)
  })
  return code === 0 ? output.trim() : null
}

/** The full path of a program on PATH (or in `extra` folders before it), or null. */
export function which(command, extra = []) {
  for (const folder of [...extra, ...(process.env.PATH ?? '').split(delimiter)]) {
    const path = join(folder, command)
    if (folder && existsSync(path)) return path
  }
  return null
}

/** Runs a script's main function; a SetupError ends the process with its sentence alone. */
export async function main(work) {
  try {
    await work()
  } catch (error) {
    console.error(error instanceof SetupError ? `\n${error.message}` : error)
    process.exitCode = 1
  }
}
