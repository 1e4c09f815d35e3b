// The report of `bench` as a table for people.
import type { BenchRun } from './bench-run.js'
import type { BenchReport } from './bench.js'
import { bytes } from './inspect-table.js'

export function benchTable({ model, machine, runs, failed, logitsAgree }: BenchReport): string {
  const { cpu, flags, hardwareThreads, system, node, v8 } = machine
  const head = [model, `${cpu}, ${hardwareThreads} hardware threads: ${flags.join(' ')}`, `Node.js ${node} (V8 ${v8}) on ${system}`]
  const tail = failed.map(({ dtype, kv, variant, reason }) => `${dtype}, kv ${kv}, ${variant}: ${reason}`)
  if (runs.length > 1) tail.push(`Logits of the same dtype and KV cache: ${logitsAgree ? 'the same bits in all modules' : 'NOT THE SAME'}`)
  return [...head, '', ...runs.flatMap((run) => [...runLines(run), '']), ...tail].join('\n').trimEnd() + '\n'
}

function runLines({ dtype, kv, variant, threads, loadMs, prefill, decode, readBandwidth, memory, logitsHash }: BenchRun): string[] {
  return [
    `${dtype}, kv ${kv}, ${variant}, ${threads} thread${threads === 1 ? '' : 's'}: loaded in ${(loadMs / 1000).toFixed(2)} s`,
    ...table(
      ['prompt', 'first token', 'prefill'],
      prefill.map(({ tokens, firstTokenMs, tokensPerSecond }) => [
        String(tokens),
        `${(firstTokenMs / 1000).toFixed(2)} s`,
        `${tokensPerSecond.toFixed(1)} tokens/s`,
      ])
    ),
    ...table(
      ['position', 'decode', 'attention', 'reads'],
      decode.map(({ position, tokensPerSecond, attentionShare, bytesPerSecond }, index) => [
        String(position),
        `${tokensPerSecond.toFixed(1)} tokens/s`,
        index === 0 ? '' : `${(100 * attentionShare).toFixed(0)} %`,
        `${bytes(bytesPerSecond)}/s`,
      ])
    ),
    `  these threads read the weights at ${bytes(readBandwidth)}/s`,
    `  memory: ${bytes(memory.peak)} at the most; weights ${bytes(memory.weights)}, KV cache ${bytes(memory.kv)}`,
    `  logits: ${logitsHash}`,
  ]
}

function table(titles: string[], rows: string[][]): string[] {
  return [titles, ...rows].map((cells) => `  ${cells.map((cell, i) => cell.padStart(i === 0 ? 8 : 16)).join('')}`)
}
