// What a measurement was taken on: processor, Node.js, and the memory of this process.
import { readFileSync } from 'node:fs'
import { arch, availableParallelism, cpus, platform } from 'node:os'

export interface Machine {
  cpu: string
  /** Instruction sets that decide how fast kernels can be, as far as the system names them. */
  flags: string[]
  hardwareThreads: number
  system: string
  node: string
  v8: string
}

const FLAGS =
  'ssse3 sse4_1 avx f16c fma avx2 avx_vnni avx512f avx512bw avx512vl avx512_vnni avx512_vbmi avx512_bf16 amx_int8 asimd asimdhp asimddp i8mm sve'.split(' ')

export function describeMachine(): Machine {
  const known = new Set(/^(?:flags|Features)\s*: (.*)$/m.exec(readIfThere('/proc/cpuinfo'))?.[1]?.split(' '))
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    flags: FLAGS.filter((flag) => known.has(flag)),
    hardwareThreads: availableParallelism(),
    system: `${platform()} ${arch()}`,
    node: process.versions.node,
    v8: process.versions.v8,
  }
}

/** The most memory that this process had resident, in bytes. */
export function peakMemory(): number {
  // The figure of getrusage, Node.js's own, may begin with that of the process that started this one.
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readIfThere('/proc/self/status'))?.[1]
  return 1024 * Number(peak ?? process.resourceUsage().maxRSS)
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
