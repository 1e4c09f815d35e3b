// Builds what a checkout lacks: the wasm modules and the JavaScript of dist/, and on request the native tests with sanitizers.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { setup } from './setup.mjs'
import { main, root, run, step, which } from './tools.mjs'

/** Configures a CMake folder once (and again when its arguments change), then lets Ninja decide what is out of date. */
async function cmakeBuild(name, { launcher = [], options = [], env = {} }) {
  const folder = join(root, 'build', name)
  const stamp = join(folder, '.configured')
  const command = [...launcher, 'cmake', '-S', root, '-B', folder, '-G', 'Ninja', ...options]
  const asText = command.join('\n')
  if (!existsSync(join(folder, 'build.ninja')) || !existsSync(stamp) || readFileSync(stamp, 'utf8') !== asText) {
    mkdirSync(folder, { recursive: true })
    await run(`${name}-configure`, command[0], command.slice(1), { env })
    writeFileSync(stamp, asText)
  }
  await run(`${name}-build`, 'cmake', ['--build', folder], { env })
}

/** Builds dist/wasm and the JavaScript; `native` adds the core's tests under AddressSanitizer and UBSan. */
export async function build({ emscripten, native = false }) {
  if (native) {
    // Flags of our own, because CMake's for a release switch assertions off.
    const options = ['-DCMAKE_BUILD_TYPE=Release', '-DCMAKE_CXX_FLAGS_RELEASE=-O2', '-DQWASM_SANITIZE=ON']
    await step('Building the core and its tests, with sanitizers', () => cmakeBuild('native', { options }))
  }
  // emcmake looks for emcc beside itself; Emscripten's own Ninja rules want it on PATH.
  const env = { PATH: `${emscripten}:${process.env.PATH}` }
  await step('Building the wasm modules', () =>
    cmakeBuild('wasm', { launcher: [which('emcmake', [emscripten]) ?? 'emcmake'], options: ['-DCMAKE_BUILD_TYPE=Release'], env }))
  await step('Building the JavaScript', () => run('js', process.execPath, [join(root, 'scripts/build-js.mjs')]))
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await main(async () => {
    const native = process.argv.includes('--native')
    await build({ ...await setup({ forTests: native }), native })
  })
}
