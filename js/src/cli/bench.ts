// qwasm bench: every wanted combination of dtype, KV cache and module, each in a process of its own, so that its memory counts nothing else.
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { inspect } from '../node.js'
import { VARIANTS } from '../variants.js'
import { measure, type BenchRun, type Combination } from './bench-run.js'
import { describeMachine, type Machine } from './machine.js'
import { hubOptions, type Values } from './options.js'

export interface BenchReport {
  model: string
  machine: Machine
  runs: BenchRun[]
  /** Combinations that could not run, such as modules that this Node.js is too old for, and why. */
  failed: (Combination & { reason: string })[]
  /** Whether runs with the same dtype and KV cache gave the same bits. */
  logitsAgree: boolean
}

const DTYPES = ['exact', 'q8', 'q4']

export async function bench(source: string, values: Values, note: (line: string) => void): Promise<BenchReport> {
  await inspect(source, hubOptions(values)) // a model that is none is said once
  const combinations = combine(listed(values.dtype, DTYPES), listed(values.kv, ['auto']), listed(values.variant, [...VARIANTS]))
  const report: BenchReport = { model: source, machine: describeMachine(), runs: [], failed: [], logitsAgree: true }
  for (const combination of combinations) {
    if (combinations.length === 1) {
      report.runs.push(await measure(source, combination, values))
      break
    }
    note(`measuring ${combination.dtype}, kv ${combination.kv}, ${combination.variant} …`)
    const result = await measureApart(source, combination, values)
    if (typeof result === 'string') report.failed.push({ ...combination, reason: result })
    else report.runs.push(result)
  }
  report.logitsAgree = agree(report.runs)
  return report
}

function listed(names: string | undefined, otherwise: string[]): string[] {
  return names?.split(',') ?? otherwise
}

function combine(dtypes: string[], kvs: string[], variants: string[]): Combination[] {
  return dtypes.flatMap((dtype) => kvs.flatMap((kv) => variants.map((variant) => ({ dtype, kv, variant }))))
}

/** Measures in another process; gives the sentence of its failure where it fails. */
async function measureApart(source: string, { dtype, kv, variant }: Combination, values: Values): Promise<BenchRun | string> {
  const options = ['--model', source, '--dtype', dtype, '--kv', kv, '--variant', variant, '--json']
  for (const [name, value] of Object.entries(hubOptions(values))) options.push(`--${name}`, String(value))
  if (values.threads !== undefined) options.push('--threads', String(values.threads))
  if (values.quick) options.push('--quick')
  const script = fileURLToPath(import.meta.url)
  const child = spawn(process.execPath, [...process.execArgv, script, 'bench', ...options], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve, reject) => child.on('close', resolve).on('error', reject))
  const [output, complaints, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  if (code !== 0) return complaints.trim().replace(/^qwasm: /, '') || `the process ended with ${code}`
  return (JSON.parse(output) as BenchReport).runs[0]!
}

function agree(runs: BenchRun[]): boolean {
  const hashes = new Map<string, string>()
  return runs.every(({ dtype, kv, logitsHash }) => {
    const key = `${dtype} ${kv}`
    if (!hashes.has(key)) hashes.set(key, logitsHash)
    return hashes.get(key) === logitsHash
  })
}
