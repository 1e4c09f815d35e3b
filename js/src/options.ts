// Checks what callers pass in: every option has its domain in a table here; a wrong one gets a sentence, an unknown name too.
import { QwasmError } from './errors.js'
import { LoadController } from './load-controller.js'
import { show } from './show.js'
import { VARIANTS } from './variants.js'

type Check = (value: unknown) => string | undefined // what was expected, where the value is not that

const is =
  (good: (value: unknown) => boolean, expected: string): Check =>
  (value) =>
    good(value) ? undefined : expected

const finite = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const whole = (value: unknown): value is number => Number.isSafeInteger(value)
const plainObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

const boolean = is((v) => typeof v === 'boolean', 'true or false')
const text = is((v) => typeof v === 'string', 'a string')
const someText = is((v) => typeof v === 'string' && v !== '', 'a string that is not empty')
const positive = is((v) => whole(v) && v >= 1, 'a whole number of at least 1')
const signal = is((v) => typeof AbortSignal !== 'undefined' && v instanceof AbortSignal, 'an AbortSignal')
const url = is((v) => typeof v === 'string' || v instanceof URL, 'a URL')
const callback = is((v) => typeof v === 'function', 'a function')
const object = is(plainObject, 'an object')
const penalty = is((v) => finite(v) && Math.abs(v) <= 2, 'a number from -2 to 2')
const oneOf = (...words: string[]): Check => is((v) => words.includes(v as string), words.map((w) => `'${w}'`).join(' or '))

const parallel = is((v) => whole(v) && v >= 1 && v <= 16, 'a whole number from 1 to 16')

const SOURCE = {
  revision: is(isRevision, 'the name of a branch or tag, or a commit'),
  token: is(isToken, 'a string of visible ASCII characters'),
  endpoint: url,
  onProgress: callback,
  signal,
  wasmUrl: url,
  workerUrl: url,
  cache: oneOf('default', 'no-store', 'reload', 'force-cache', 'only-if-cached'),
  integrity: is(
    (v) => plainObject(v) || (typeof v === 'string' && /^sha256-[A-Za-z0-9+/]{43}=$/.test(v)),
    "a manifest, or its hash, 'sha256-' and 44 characters of base64"
  ),
  controller: is((v) => v instanceof LoadController, 'a LoadController'),
  maxRequests: parallel,
}

const TEMPLATE = {
  tools: is((v) => Array.isArray(v) && v.every(plainObject), 'an array of objects'),
  thinking: boolean,
  templateVariables: object,
}

const GENERATE = {
  maxTokens: positive,
  temperature: is((v) => finite(v) && v >= 0, 'a number of at least 0'),
  topK: is((v) => whole(v) && v >= 0, 'a whole number of at least 0'),
  topP: is((v) => finite(v) && v >= 0 && v <= 1, 'a number from 0 to 1'),
  minP: is((v) => finite(v) && v >= 0 && v <= 1, 'a number from 0 to 1'),
  repetitionPenalty: is((v) => finite(v) && v > 0, 'a number above 0'),
  presencePenalty: penalty,
  frequencyPenalty: penalty,
  logitBias: is(isLogitBias, 'an object of token ids and numbers from -100 to 100'),
  logprobs: is((v) => whole(v) && v >= 0 && v <= 20, 'a whole number from 0 to 20'),
  n: is((v) => whole(v) && v >= 1 && v <= 128, 'a whole number from 1 to 128'),
  seed: is((v) => whole(v) && v >= 0, 'a whole number from 0 to 2^53 - 1'),
  stop: is(
    (v) => (Array.isArray(v) ? v : [v]).every((s) => typeof s === 'string' && s !== ''),
    'a string that is not empty, or an array of such strings'
  ),
  ignoreEos: boolean,
  responseFormat: is(isResponseFormat, "{ type: 'text' or 'json_object' }, or 'json_schema' with schema, 'regex' with pattern, 'grammar' with grammar"),
  signal,
}

const CHAT = {
  ...GENERATE,
  ...TEMPLATE,
  thinkingBudget: is((v) => whole(v) && v >= 0, 'a whole number of at least 0'),
  overflow: oneOf('error', 'slide'),
  toolChoice: is(isToolChoice, "'auto', 'none', 'required' or { name: '…' }"),
}

const TABLES = {
  loadModel: {
    ...SOURCE,
    dtype: oneOf('auto', 'exact', 'q8', 'q4', 'stored'),
    contextLength: is((v) => whole(v) && v >= 1 && v <= 2 ** 24, 'a whole number from 1 to 16777216'),
    kv: oneOf('auto', 'f32', 'f16', 'q8'),
    threads: positive,
    variant: oneOf(...VARIANTS),
    maxParallel: parallel,
  },
  loadTokenizer: SOURCE,
  inspect: { ...SOURCE, context: positive, bandwidth: is((v) => finite(v) && v > 0, 'a number above 0') },
  tokenize: { special: boolean, addSpecialTokens: boolean },
  detokenize: { skipSpecial: boolean },
  renderChat: { ...TEMPLATE, addGenerationPrompt: boolean },
  encodeChat: { ...TEMPLATE, addGenerationPrompt: boolean },
  tokenCount: { ...TEMPLATE, addGenerationPrompt: boolean },
  generate: GENERATE,
  chat: CHAT,
  embed: { dimensions: positive, normalize: boolean, instruction: someText, signal },
  rerank: { instruction: someText, signal },
  saveGguf: { name: text, onProgress: callback, signal },
  logits: {
    signal,
    positions: is((v) => v === 'all' || v === 'last' || Array.isArray(v), "'all', 'last' or an array of positions"),
  },
} satisfies Record<string, Record<string, Check>>

function isToolChoice(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return ['auto', 'none', 'required'].includes(value as string)
  return Object.keys(value).join() === 'name' && typeof (value as { name: unknown }).name === 'string'
}

/** Options whose values no error may show. */
const SECRET = new Set(['token'])

/** Whether a text can name a state of a repository, and can be a part of URLs and paths. */
export function isRevision(value: unknown): value is string {
  if (typeof value !== 'string' || /[\s\0-\x1f~^:?*[\\]/.test(value)) return false
  return value.split('/').every((part) => !/^\.*$/.test(part))
}

export function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)
}

function isResponseFormat(value: unknown): boolean {
  if (!plainObject(value)) return false
  const { type, ...rest } = value as Record<string, unknown>
  const { schema, pattern, grammar } = rest
  const names = Object.keys(rest)
  if (type === 'text' || type === 'json_object') return names.length === 0
  if (names.length !== 1) return false
  if (type === 'json_schema') return plainObject(schema) || typeof schema === 'boolean'
  return (type === 'regex' && typeof pattern === 'string') || (type === 'grammar' && typeof grammar === 'string')
}

function isLogitBias(value: unknown): boolean {
  if (!plainObject(value)) return false
  const entries = Object.entries(value as object)
  return entries.every(([id, bias]) => /^(0|[1-9]\d{0,8})$/.test(id) && finite(bias) && Math.abs(bias) <= 100)
}

/** Throws on a wrong value or an unknown name; returns the options without those that are undefined. */
export function checkOptions<T extends object>(call: keyof typeof TABLES, options: T | undefined): T {
  if (options === undefined) return {} as T
  if (!plainObject(options))
    throw new QwasmError('invalid_argument', `${call}: the options must be an object, not ${show(options)}.`)
  const table: Record<string, Check> = TABLES[call]
  const checked: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(options)) {
    const check = Object.hasOwn(table, name) ? table[name] : undefined
    if (check === undefined) {
      throw new QwasmError(
        'invalid_argument',
        `${call}: there is no option '${name}'; there are ${Object.keys(table).join(', ')}.`
      )
    }
    if (value === undefined) continue
    const expected = check(value)
    if (expected !== undefined) {
      const found = SECRET.has(name) ? 'what was given' : show(value)
      throw new QwasmError('invalid_argument', `${call}: the option ${name} must be ${expected}, not ${found}.`)
    }
    checked[name] = value
  }
  return checked as T
}

export function checkText(call: string, value: unknown): string {
  const expected = text(value)
  if (expected !== undefined)
    throw new QwasmError('invalid_argument', `${call}: the text must be ${expected}, not ${show(value)}.`)
  return value as string
}

/** Ids as the core takes them. Their range against the vocabulary is the core's to check. */
export function checkIds(call: string, value: unknown): Int32Array {
  if (!Array.isArray(value) && !ArrayBuffer.isView(value)) {
    throw new QwasmError('invalid_argument', `${call}: the ids must be an array of whole numbers, not ${show(value)}.`)
  }
  const ids = value as unknown as ArrayLike<unknown>
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i]
    if (!whole(id) || id < 0 || id >= 2 ** 31) {
      throw new QwasmError(
        'invalid_argument',
        `${call}: ids[${i}] must be a token id, a whole number of at least 0, not ${show(id)}.`
      )
    }
  }
  return Int32Array.from(ids as ArrayLike<number>)
}

/** The entries of a list that has some, each of them as `check` gives it, which is told its place. */
function checkList<T>(call: string, name: string, values: unknown, check: (value: unknown, at: string) => T): T[] {
  if (Array.isArray(values) && values.length > 0) return values.map((value, i) => check(value, `${call}: ${name}[${i}]`))
  throw new QwasmError('invalid_argument', `${call}: ${name} must be an array with at least one text, not ${show(values)}.`)
}

function checkSomeText(value: unknown, at: string): string {
  const expected = someText(value)
  if (expected !== undefined) throw new QwasmError('invalid_argument', `${at} must be ${expected}, not ${show(value)}.`)
  return value as string
}

/** A query and what is ranked by it. */
export function checkRanking(query: unknown, documents: unknown): { query: string; documents: string[] } {
  return { query: checkSomeText(query, 'rerank: the query'), documents: checkList('rerank', 'documents', documents, checkSomeText) }
}

/** Texts, or token ids in their places. */
export function checkInputs(texts: unknown): (string | Int32Array)[] {
  return checkList('embed', 'texts', texts, (value, at) => {
    if (!Array.isArray(value) && !ArrayBuffer.isView(value)) return checkSomeText(value, at)
    const ids = checkIds(at, value)
    if (ids.length === 0) throw new QwasmError('invalid_argument', `${at} has no tokens.`)
    return ids
  })
}

/** Positions of a sequence of `count` tokens, as a sorted list would be read: each within it. */
export function checkPositions(positions: 'all' | 'last' | readonly number[], count: number): number[] {
  if (positions === 'all') return Array.from({ length: count }, (_, i) => i)
  if (positions === 'last') return [count - 1]
  for (const position of positions) {
    if (!whole(position) || position < 0 || position >= count) {
      throw new QwasmError(
        'invalid_argument',
        `logits: the position ${show(position)} is not one of the ${count} tokens' 0 to ${count - 1}.`
      )
    }
  }
  return [...positions]
}

/** Threads that run: half of the machine's, at least 2 where it has 2; what is asked is clamped to the pool. */
export function chooseThreads(asked: number | undefined, hardware: number): number {
  // 4 even on smaller machines, since hardwareConcurrency may be made up; 16 is where decoding stops to gain from threads.
  const pool = Math.min(16, Math.max(4, hardware))
  if (asked !== undefined) return Math.min(asked, pool)
  return Math.min(pool, hardware, Math.max(2, Math.floor(hardware / 2)))
}
