// npm run bench:peers: qwasm beside llama.cpp and its relatives, in one run on one machine. README.md says how.
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { fetchSmallModel } from '../../scripts/setup.mjs'
import { SetupError, main, step } from '../../scripts/tools.mjs'
import { importSource } from '../js/support/source.mjs'
import { CONTESTANTS, measureQwasmIn } from './contestants.mjs'
import { NODE_24, fullSizeModel, installNpmPeers, prepareQwasm } from './install.mjs'
import { BUSY_LEAST, THREADS_LEAST, rateTable, ratioTable, ratios } from './report.mjs'
import { SHAPE, better } from './shape.mjs'

const BASELINE = 'llama.cpp'

function readOptions() {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: Object.keys(CONTESTANTS).join() },
      dtype: { type: 'string', default: 'q4,q8' },
      times: { type: 'string', default: String(SHAPE.times) },
      json: { type: 'string' },
      markdown: { type: 'boolean', default: false },
      busy: { type: 'boolean', default: false },
      threads: { type: 'boolean', default: false },
    },
  })
  const listed = (name, known) => {
    const names = values[name].split(',')
    const wrong = names.find(word => !known.includes(word))
    if (wrong !== undefined) throw new SetupError(`--${name}: there is no '${wrong}'; there are ${known.join(', ')}.`)
    return names
  }
  const times = Number(values.times)
  if (!Number.isInteger(times) || times < 1) throw new SetupError(`--times must be a whole number of at least 1, not '${values.times}'.`)
  return { ...values, times, only: listed('only', Object.keys(CONTESTANTS)), dtypes: listed('dtype', ['q4', 'q8', 'stored']) }
}

/** What `work` gives; null, after saying why, where it fails: one who fails does not keep the others from running. */
async function attempt(work) {
  try {
    return await work()
  } catch (error) {
    console.error(error.message)
    return null
  }
}

/** Installs what is needed, before anybody is measured; gives who is ready. */
async function prepareAll(folder, { only, dtypes }) {
  const ready = []
  for (const name of only) {
    const prepared = await attempt(async () => {
      for (const dtype of dtypes) await CONTESTANTS[name].prepare(folder, dtype)
      return true
    })
    if (prepared) ready.push(name)
  }
  return ready
}

/** Everybody in turn; the baseline at the beginning and at the end, since the speed of a machine drifts. */
async function comparePeers(folder, { only, dtypes, times }) {
  const ready = await prepareAll(folder, { only, dtypes })
  const turns = ready.includes(BASELINE) ? [BASELINE, ...ready.filter(name => name !== BASELINE), BASELINE] : ready
  const results = {}
  for (const dtype of dtypes) {
    const rates = (results[dtype] = {})
    for (const name of turns) {
      const measure = () => CONTESTANTS[name].measure(folder, dtype, { ...SHAPE, times })
      const result = await attempt(() => step(`Measuring ${name}, ${dtype}`, measure))
      if (result) rates[name] = better(rates[name], result)
    }
  }
  return results
}

/** Decoding beside a process that keeps a processor busy, as a share of decoding alone. */
async function compareBusy(folder, dtype, shape) {
  const alone = await measureQwasmIn(NODE_24, folder, { ...shape, dtype })
  const other = spawn(process.execPath, ['-e', 'for (;;) {}'], { stdio: 'ignore' })
  try {
    const beside = await measureQwasmIn(NODE_24, folder, { ...shape, dtype })
    return { what: 'decode, beside a busy process / alone', dtype, found: beside.decode / alone.decode, least: BUSY_LEAST[dtype] }
  } finally {
    other.kill('SIGKILL')
  }
}

async function compareThreads(folder, dtype, shape) {
  const one = await measureQwasmIn(NODE_24, folder, { ...shape, dtype, threads: 1 })
  const two = await measureQwasmIn(NODE_24, folder, { ...shape, dtype, threads: 2 })
  return { what: 'decode, 2 threads / 1 thread', dtype, found: two.decode / one.decode, least: THREADS_LEAST[dtype] }
}

/** Of the asked comparisons of qwasm with itself: those that did not fail. */
async function compareItself(folder, { busy, threads, dtypes, times }) {
  const comparisons = [...(busy ? [['busy', compareBusy]] : []), ...(threads ? [['threads', compareThreads]] : [])]
  const found = []
  for (const [name, compare] of comparisons) {
    for (const dtype of dtypes) {
      found.push(await attempt(() => step(`Measuring ${name}, ${dtype}`, () => compare(folder, dtype, { ...SHAPE, times }))))
    }
  }
  return found.filter(Boolean)
}

await main(async () => {
  const options = readOptions()
  await prepareQwasm()
  if (options.dtypes.includes('stored')) await fetchSmallModel()
  const folder = await fullSizeModel()
  const machine = (await importSource('cli/machine.ts')).describeMachine()
  const report = { machine, shape: { ...SHAPE, times: options.times } }
  if (options.busy || options.threads) {
    await installNpmPeers()
    report.ratios = await compareItself(folder, options)
  } else {
    report.results = await comparePeers(folder, options)
    report.ratios = ratios(report.results)
  }
  if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`)
  console.log(`\n${machine.cpu} (${machine.flags.join(' ')}), ${machine.system}; ${SHAPE.threads} threads, the best of ${options.times}\n`)
  if (report.results) console.log(`${rateTable(report.results, CONTESTANTS, options.markdown)}\n`)
  console.log(ratioTable(report.ratios, options.markdown))
})
