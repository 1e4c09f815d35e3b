// npm run fuzz [TARGET…] [SECONDS]: lets libFuzzer look for inputs that crash the core's parsers. Needs clang; npm test replays the corpus without it.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { SetupError, main, root, run, step, which } from './tools.mjs'

const BUILD = join(root, 'build/fuzz')
const OPTIONS = ['-DCMAKE_BUILD_TYPE=Release', '-DCMAKE_CXX_FLAGS_RELEASE=-O1', '-DQWASM_FUZZ=ON']
const SANITIZERS = { ASAN_OPTIONS: 'allocator_may_return_null=1', UBSAN_OPTIONS: 'halt_on_error=1:print_stacktrace=1' }

/** What libFuzzer finds is kept in build/fuzz; what shall stay is moved to tests/fuzz/corpus by hand. */
function fuzz(target, seconds) {
  const corpus = join(BUILD, 'corpus', target)
  mkdirSync(corpus, { recursive: true })
  cpSync(join(root, 'tests/fuzz/corpus', target), corpus, { recursive: true })
  const limits = [`-max_total_time=${seconds}`, '-max_len=65536', '-rss_limit_mb=4096', `-artifact_prefix=${join(BUILD, `${target}-`)}`]
  const env = { ...process.env, ...SANITIZERS }
  return spawnSync(join(BUILD, `tests/fuzz/${target}_fuzz`), [corpus, ...limits], { stdio: 'inherit', env }).status === 0
}

await main(async () => {
  const known = readdirSync(join(root, 'tests/fuzz/corpus'))
  const words = process.argv.slice(2)
  const seconds = words.find(word => /^\d+$/.test(word)) ?? '60'
  const targets = words.filter(word => word !== seconds)
  for (const target of targets) if (!known.includes(target)) throw new SetupError(`There is no target ${target}; there are ${known.join(', ')}.`)
  const clang = which('clang++')
  if (!clang) throw new SetupError('clang++ is missing: install clang with its run-time libraries (Debian: apt-get install clang libclang-rt-dev).')
  await step('Building the fuzz targets', async () => {
    await run('fuzz-configure', 'cmake', ['-S', root, '-B', BUILD, '-G', 'Ninja', `-DCMAKE_CXX_COMPILER=${clang}`, ...OPTIONS])
    await run('fuzz-build', 'cmake', ['--build', BUILD, '--target', ...known.map(target => `${target}_fuzz`)])
  })
  const failed = (targets.length > 0 ? targets : known).filter(target => !fuzz(target, seconds))
  if (failed.length > 0) throw new SetupError(`These targets found something; the inputs are in build/fuzz: ${failed.join(', ')}`)
})
