// What must be reached, and the tables that show it.

/** The least ratio of two rates, by dtype. `ours` and `theirs` are names of contestants. */
const REQUIRED = [
  { ours: 'qwasm-node24', theirs: 'llama.cpp', rate: 'decode', least: { q4: 0.9, q8: 1.1 } },
  { ours: 'qwasm-chromium', theirs: 'llama.cpp', rate: 'decode', least: { q4: 0.9, q8: 1.1 } },
  { ours: 'qwasm-node24', theirs: 'llama.cpp', rate: 'prefill', least: { q4: 0.65, q8: 0.42 } },
  { ours: 'qwasm-chromium', theirs: 'llama.cpp', rate: 'prefill', least: { q4: 0.65, q8: 0.42 } },
  { ours: 'qwasm-plain', theirs: 'llama.cpp', rate: 'decode', least: { q4: 0.5, q8: 1.05 } },
  { ours: 'qwasm-plain', theirs: 'llama.cpp', rate: 'prefill', least: { q4: 0.2, q8: 0.2 } },
  { ours: 'qwasm-node24', theirs: 'node-llama-cpp', rate: 'decode', least: { q4: 1.8, q8: 1.6 } },
  { ours: 'qwasm-chromium', theirs: 'wllama', rate: 'decode', least: { q4: 14, q8: 5.5 } },
  { ours: 'qwasm-chromium', theirs: 'wllama', rate: 'prefill', least: { q4: 25, q8: 9 } },
]
// With 'stored', a small model out of a GGUF file (SmolLM2-135M-Instruct, Q4_1).
const REQUIRED_STORED = [
  { ours: 'qwasm-node24', theirs: 'llama.cpp', rate: 'decode', least: { stored: 0.5 } },
  { ours: 'qwasm-chromium', theirs: 'llama.cpp', rate: 'decode', least: { stored: 0.5 } },
  { ours: 'qwasm-chromium', theirs: 'wllama', rate: 'decode', least: { stored: 4 } },
]
export const BUSY_LEAST = { q4: 0.5, q8: 0.5 }
export const THREADS_LEAST = { q4: 1.7, q8: 1.5 }

/** Every required ratio of which both sides were measured: { what, dtype, found, least }. */
export function ratios(results) {
  return [...REQUIRED, ...REQUIRED_STORED].flatMap(({ ours, theirs, rate, least }) =>
    Object.keys(results).filter(dtype => least[dtype]).flatMap(dtype => {
      const [mine, other] = [ours, theirs].map(name => results[dtype][name]?.[rate])
      return mine && other ? [{ what: `${rate}, ${ours} / ${theirs}`, dtype, found: mine / other, least: least[dtype] }] : []
    }))
}

/** Lines of text in columns, or a Markdown table; the first row has the titles. */
export function table([titles, ...rows], markdown) {
  if (markdown) {
    const line = cells => `| ${cells.join(' | ')} |`
    return [line(titles), line(titles.map((_, i) => (i === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n')
  }
  const widths = titles.map((_, i) => Math.max(...[titles, ...rows].map(cells => cells[i].length)))
  const line = cells => cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  ')
  return [titles, ...rows].map(line).join('\n')
}

/** Rates of all contestants, in the order of `contestants`. */
export function rateTable(results, contestants, markdown) {
  const dtypes = Object.keys(results)
  const columns = dtypes.flatMap(dtype => ['prefill', 'decode'].map(rate => [dtype, rate]))
  const rows = Object.entries(contestants).flatMap(([name, { title }]) => {
    const measured = dtypes.map(dtype => results[dtype][name]).find(Boolean)
    if (!measured) return []
    const label = measured.detail ? `${title} (${measured.detail})` : title
    return [[label, ...columns.map(([dtype, rate]) => results[dtype][name]?.[rate]?.toFixed(1) ?? '–')]]
  })
  return table([['tokens/s', ...columns.map(([dtype, rate]) => `${dtype} ${rate}`)], ...rows], markdown)
}

export function ratioTable(found, markdown) {
  const rows = found.map(({ what, dtype, found, least }) => [
    what, dtype, found.toFixed(2), least.toFixed(2), found >= least ? 'ok' : 'MISSED',
  ])
  return table([['ratio', 'dtype', 'found', 'required', ''], ...rows], markdown)
}
