// The report of `inspect` as a table for people.

type Fields = Record<string, unknown>

export function inspectTable(report: Fields): string {
  const part = (name: string): Fields => (report[name] ?? {}) as Fields
  const attention = part('attention')
  const operations = part('operations_per_token')
  const memory = part('memory')
  const bound = part('decode_lower_bound')
  const sections: [string, [string, string][]][] = [
    [
      `${String(report['architecture'])} (${String(report['model_type'])})`,
      [
        ['layers', count(report['layers'])],
        ['hidden size', count(report['hidden_size'])],
        ['vocabulary', count(report['vocab_size'])],
        ['longest context', `${count(report['max_position_embeddings'])} tokens`],
        ['attention', attentionLine(attention)],
        ['positions', positionsLine(attention, report['layers'])],
        ['embeddings', report['tied_embeddings'] ? 'tied to the head' : 'apart from the head'],
        ...expertsLine(report['experts']),
        ...storedLine(report['stored']),
        ['runs here', report['runnable'] ? 'yes' : 'no'],
      ],
    ],
    ['parameters', rows(part('parameters'), count)],
    [`operations per token at ${count(operations['context'])} tokens`, rows(without(operations, 'context'), count)],
    ['weights in memory', rows(memory['weights'], bytes)],
    ['KV cache per token', rows(memory['kv_per_token'], bytes)],
    [`KV cache at ${count(operations['context'])} tokens`, rows(memory['kv_at_context'], bytes)],
    [
      `a token takes at least, at ${(Number(bound['bandwidth']) / 1e9).toLocaleString('en')} GB/s`,
      rows(bound['milliseconds'], (ms) => `${Number(ms).toFixed(2)} ms (${(1000 / Number(ms)).toFixed(1)} tokens/s)`),
    ],
  ]
  return sections.map(([title, lines]) => section(title, lines)).join('\n')
}

function section(title: string, lines: [string, string][]): string {
  return `${title}\n${lines.map(([name, value]) => `  ${name.padEnd(18)} ${value}\n`).join('')}`
}

// Names in the order in which people look for them; the report itself has none.
const ORDER = [
  'total',
  'active',
  'read_per_token',
  'embedding',
  'attention',
  'matrices',
  'mlp',
  'experts',
  'router',
  'norms',
  'lm_head',
  'f32',
  'bf16',
  'f16',
  'q8',
  'q4',
]

function rows(fields: unknown, show: (value: unknown) => string): [string, string][] {
  return Object.entries((fields ?? {}) as Fields)
    .filter(([, value]) => value !== 0)
    .sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b))
    .map(([name, value]) => [name.replaceAll('_', ' '), show(value)])
}

function without(fields: Fields, name: string): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name))
}

function attentionLine(attention: Fields): string {
  const { kind, query_heads: queries, key_value_heads: keys, ratio, head_dim: size, qk_norm: normed, qkv_bias: biased } = attention
  const heads = `${count(queries)} query heads over ${count(keys)} key-value heads (${count(ratio)}:1), ${count(size)} wide`
  return `${String(kind)}: ${heads}${normed ? ', normed' : ''}${biased ? ', with biases' : ''}`
}

function positionsLine({ rope_type: type, rope_theta: theta, rope_layers: some }: Fields, layers: unknown): string {
  const where = some === layers ? '' : `, in ${count(some)} of ${count(layers)} layers`
  return `rope ${String(type)}, theta ${count(theta)}${where}`
}

function expertsLine(experts: unknown): [string, string][] {
  if (!experts) return []
  const { count: all, per_token: some, intermediate_size: size, layers } = experts as Fields
  return [['experts', `${count(all)} in ${count(layers)} layers, ${count(some)} per token, ${count(size)} wide`]]
}

function storedLine(stored: unknown): [string, string][] {
  if (!stored) return [['stored', 'no tensor headers']]
  const { dtypes, bytes: size } = stored as Fields
  return [['stored', `${bytes(size)} as ${(dtypes as string[]).join(', ')}`]]
}

function count(value: unknown): string {
  return Number(value).toLocaleString('en')
}

export function bytes(value: unknown): string {
  const size = Number(value)
  const [unit, scale] = size >= 1e9 ? ['GB', 1e9] : size >= 1e6 ? ['MB', 1e6] : size >= 1e4 ? ['KB', 1e3] : ['bytes', 1]
  return `${(size / Number(scale)).toLocaleString('en', { maximumFractionDigits: 2 })} ${unit}`
}
