// A line that shows how far a load or a file is, on terminals only.
import type { LoadProgress } from '../types.js'

type Shown = Pick<LoadProgress, 'loaded' | 'total' | 'rate' | 'secondsLeft'> & { phase: LoadProgress['phase'] | 'write' }

const WIDTH = 30

export function progressBar(out: NodeJS.WriteStream): { show(progress: Shown): void; clear(): void } {
  if (!out.isTTY) return { show: () => {}, clear: () => {} }
  return {
    show({ phase, loaded, total, rate, secondsLeft }) {
      if (phase === 'wait') return void out.write('\r\x1b[Kwaiting for another process that loads this model …')
      if (phase === 'headers') return void out.write('\r\x1b[Kreading headers …')
      const share = total === 0 ? 1 : loaded / total
      const bar = '█'.repeat(Math.round(WIDTH * share)).padEnd(WIDTH, '░')
      const speed = rate === null ? '' : `  ${megabytes(rate)}/s`
      const left = secondsLeft === null ? '' : `  ${Math.ceil(secondsLeft)} s left`
      out.write(`\r\x1b[K${bar} ${Math.floor(100 * share)} %  ${phase}  ${megabytes(loaded)} of ${megabytes(total)}${speed}${left}`)
    },
    clear: () => void out.write('\r\x1b[K'),
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
