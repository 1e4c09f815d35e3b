// The parameters that are known, each with its domain; what they mean stands in request.ts.
import { show } from '../show.js'
import { invalid } from './errors.js'

/** What was expected, where the value is not that. */
type Check = (value: unknown) => string | undefined

export type Table = Readonly<Record<string, Check>>

const is =
  (good: (value: unknown) => boolean, expected: string): Check =>
  (value) =>
    good(value) ? undefined : expected

const whole = (low: number, high = Number.MAX_SAFE_INTEGER): Check =>
  is(
    (v) => Number.isSafeInteger(v) && (v as number) >= low && (v as number) <= high,
    high === Number.MAX_SAFE_INTEGER ? `a whole number of at least ${low}` : `a whole number from ${low} to ${high}`
  )
const between = (low: number, high: number): Check =>
  is((v) => typeof v === 'number' && v >= low && v <= high, `a number from ${low} to ${high}`)
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): boolean => typeof value === 'string'
const object = is(isObject, 'an object')
const boolean = is((v) => typeof v === 'boolean', 'true or false')
const text = is(isText, 'a string')
const array = is(Array.isArray, 'an array')
const anything: Check = () => undefined
/** A parameter whose other values would change the answer in a way that is not to be had here. */
const only = (good: (value: unknown) => boolean, values: string): Check => is(good, `${values}; nothing else is supported`)

/** Answers to one prompt at most. */
const MOST_SAMPLES = 128

const SAMPLING: Table = {
  model: text,
  max_tokens: whole(1),
  temperature: between(0, 2),
  top_p: between(0, 1),
  n: whole(1, MOST_SAMPLES),
  seed: whole(0, Number.MAX_SAFE_INTEGER - MOST_SAMPLES),
  stop: is(
    (v) => (Array.isArray(v) ? v : [v]).every((s) => typeof s === 'string' && s !== ''),
    'a string that is not empty, or an array of such strings'
  ),
  presence_penalty: between(-2, 2),
  frequency_penalty: between(-2, 2),
  logit_bias: is(
    (v) => isObject(v) && Object.entries(v).every(([id, bias]) => /^\d{1,10}$/.test(id) && between(-100, 100)(bias) === undefined),
    'an object whose names are token ids and whose values are numbers from -100 to 100'
  ),
  stream: boolean,
  stream_options: object,
  top_k: whole(0),
  min_p: between(0, 1),
  repetition_penalty: is((v) => typeof v === 'number' && v > 0 && Number.isFinite(v), 'a number above 0'),
  user: anything,
  store: anything,
  metadata: anything,
  service_tier: anything,
  safety_identifier: anything,
  prompt_cache_key: anything,
  prompt_cache_retention: anything,
}

export const CHAT: Table = {
  ...SAMPLING,
  messages: array,
  max_completion_tokens: whole(1),
  logprobs: boolean,
  top_logprobs: whole(0, 20),
  response_format: object,
  tools: array,
  tool_choice: is((v) => isText(v) || isObject(v), "'auto', 'none', 'required' or an object that names a function"),
  parallel_tool_calls: boolean,
  reasoning_effort: text,
  enable_thinking: boolean,
  thinking_budget: whole(0),
  chat_template_kwargs: object,
  modalities: only((v) => Array.isArray(v) && v.every((m) => m === 'text'), "['text']"),
  verbosity: only((v) => v === 'medium', "'medium'"),
  prediction: anything, // would only make the same answer come sooner
}

export const COMPLETION: Table = {
  ...SAMPLING,
  prompt: anything,
  logprobs: whole(0, 20),
  echo: only((v) => v === false, 'false'),
  best_of: anything,
  suffix: only((v) => v === '', 'an empty string'),
}

export const EMBEDDING: Table = {
  model: text,
  input: anything,
  dimensions: whole(1),
  encoding_format: is((v) => v === 'float' || v === 'base64', "'float' or 'base64'"),
  user: anything,
}

/** OpenAI's parameters of the past, and what took their place. */
const FORMER: Readonly<Record<string, string>> = { functions: 'tools', function_call: 'tool_choice' }

/** The parameters that say something, all of them known and within their domains. Null is as good as not given. */
export function readParameters<Params extends object>(given: unknown, table: Table): Params {
  if (!isObject(given)) throw invalid(null, `The request must be an object of parameters, not ${show(given)}.`)
  const read: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null) continue
    const check = Object.hasOwn(table, name) ? table[name] : undefined
    if (!check) {
      const hint = Object.hasOwn(FORMER, name) ? ` Use ${FORMER[name]}.` : ''
      throw invalid(name, `The parameter ${name} is not supported.${hint}`, 'unknown_parameter')
    }
    const expected = check(value)
    if (expected !== undefined) throw invalid(name, `The parameter ${name} must be ${expected}, not ${show(value)}.`)
    read[name] = value
  }
  return read as Params
}
