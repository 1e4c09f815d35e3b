// The command line: commands, and one table of options from which parsing, help and checks come.
import { parseArgs } from 'node:util'
import type { HubOptions } from '../types.js'

export class UsageError extends Error {}

export const COMMANDS = {
  generate: 'goes on from a text as it is',
  chat: 'answers a message, by the model’s chat template; without a message holds a conversation',
  serve: 'answers over HTTP as OpenAI does, until Ctrl-C',
  embed: 'prints the embeddings of texts: of its arguments, or of the lines of standard input',
  rerank: 'orders texts, given in the same ways, by how well they answer --query',
  tokenize: 'prints the token ids of a text',
  inspect: 'prints what a model’s config and headers say: parameters, operations, memory',
  bench: 'measures this machine: loading, prompts, decoding at several positions, memory',
  quantize: 'writes a model as a GGUF file, which llama.cpp reads: quantize MODEL OUT.gguf',
  manifest: 'writes sizes and hashes of a local model’s files to qwasm-manifest.json, for --integrity',
  cache: 'lists the models that were downloaded and kept',
}

export type Command = keyof typeof COMMANDS

interface Option {
  type: 'string' | 'number' | 'flag' | 'list'
  value?: string
  help: string
  /** The commands that take it; all where it is left out. */
  of?: Command[]
}

const RUN: Command[] = ['generate', 'chat']
const READ: Command[] = ['embed', 'rerank']
const ENGINE: Command[] = [...RUN, ...READ, 'serve', 'bench']
const LOADING: Command[] = [...RUN, ...READ, 'serve', 'tokenize', 'inspect', 'quantize']
const TAKES_FOLDER: Command[] = ['inspect', 'bench', 'manifest', 'quantize']

const OPTIONS = {
  model: {
    type: 'string',
    value: 'MODEL',
    help: 'a local folder, a hub’s id such as Qwen/Qwen3-0.6B, or a URL; a file of weights stands for its folder',
  },
  revision: { type: 'string', value: 'NAME', help: 'branch, tag or commit of a model on a hub, default main' },
  endpoint: { type: 'string', value: 'URL', help: 'the hub, default HF_ENDPOINT or https://huggingface.co; a token comes from HF_TOKEN' },
  prompt: {
    type: 'string',
    value: 'TEXT',
    help: 'the text; without it standard input is read, and chat converses on a terminal',
    of: ['generate', 'chat', 'tokenize'],
  },
  query: { type: 'string', value: 'TEXT', help: 'what the texts are to answer', of: ['rerank'] },
  instruction: { type: 'string', value: 'TEXT', help: 'the task, in a sentence; for embed, where the texts are queries', of: READ },
  dimensions: { type: 'number', value: 'N', help: 'the first N values of an embedding, default all', of: ['embed'] },
  interactive: { type: 'flag', help: 'converses without a terminal too: each line of standard input is a message', of: ['chat'] },
  system: { type: 'string', value: 'TEXT', help: 'a system message before it', of: ['chat'] },
  thinking: { type: 'flag', help: 'asks the template for thinking', of: ['chat'] },
  'no-thinking': { type: 'flag', help: 'asks the template for no thinking', of: ['chat'] },
  'max-tokens': { type: 'number', value: 'N', help: 'tokens to generate at most', of: RUN },
  temperature: { type: 'number', value: 'T', help: '0 is greedy', of: RUN },
  'top-k': { type: 'number', value: 'K', help: 'keeps the K likeliest tokens; 0 is off', of: RUN },
  'top-p': { type: 'number', value: 'P', help: 'keeps the likeliest tokens that add up to P; 1 is off', of: RUN },
  'min-p': { type: 'number', value: 'P', help: 'drops tokens less likely than this share of the likeliest; 0 is off', of: RUN },
  'repetition-penalty': { type: 'number', value: 'R', help: '1 is off', of: RUN },
  seed: { type: 'number', value: 'S', help: 'the same seed gives the same tokens', of: RUN },
  stop: { type: 'list', value: 'TEXT', help: 'ends the answer there; may be given several times', of: RUN },
  dtype: {
    type: 'string',
    value: 'NAME',
    help: 'exact (as stored, in float32), stored (a quantized file’s values), q8, q4 (smaller, faster) or auto; for bench several, with commas; for quantize q8, q4 or f16',
    of: [...ENGINE, 'quantize'],
  },
  kv: { type: 'string', value: 'NAME', help: 'keys and values of past tokens: auto, f32, f16 or q8; for bench several, with commas', of: ENGINE },
  threads: { type: 'number', value: 'N', help: 'default: half of the machine’s', of: ENGINE },
  variant: {
    type: 'string',
    value: 'NAME',
    help: 'forces a module: relaxed, simd, relaxed-single or simd-single; for bench several, with commas',
    of: ENGINE,
  },
  out: { type: 'string', value: 'FILE', help: 'the file to write', of: ['quantize'] },
  force: { type: 'flag', help: 'replaces a file that is there', of: ['quantize'] },
  quick: { type: 'flag', help: 'fewer and shorter measurements', of: ['bench'] },
  context: {
    type: 'number',
    value: 'N',
    help: 'tokens of prompt and answer together; for inspect, tokens to count at',
    of: [...RUN, ...READ, 'serve', 'inspect'],
  },
  bandwidth: {
    type: 'number',
    value: 'GB/S',
    help: 'memory bandwidth for the bound of decode time, default 20',
    of: ['inspect'],
  },
  cache: {
    type: 'string',
    value: 'MODE',
    help: 'how downloads are kept: default, no-store, reload, force-cache or only-if-cached',
    of: LOADING,
  },
  integrity: { type: 'string', value: 'HASH', help: 'refuses files that the manifest with this hash does not name', of: LOADING },
  host: { type: 'string', value: 'NAME', help: 'where to listen, default 127.0.0.1: this machine alone', of: ['serve'] },
  port: { type: 'number', value: 'N', help: 'default 8000; 0 takes a free one', of: ['serve'] },
  'api-key': { type: 'string', value: 'KEY', help: 'what callers must send as their bearer token; QWASM_API_KEY stays out of lists of processes', of: ['serve'] },
  name: { type: 'string', value: 'NAME', help: 'what requests call the model, default from --model', of: ['serve'] },
  cors: { type: 'string', value: 'ORIGIN', help: 'lets pages of that origin use it, or of all: *', of: ['serve'] },
  'max-parallel': { type: 'number', value: 'N', help: 'requests that run at the same time, default 4', of: ['serve'] },
  'max-queue': { type: 'number', value: 'N', help: 'requests that may wait, default 64; further ones get status 429', of: ['serve'] },
  'body-limit': { type: 'number', value: 'BYTES', help: 'of a request, default 4 MiB', of: ['serve'] },
  remove: { type: 'string', value: 'SOURCE', help: 'removes a kept model, or all', of: ['cache'] },
  json: { type: 'flag', help: 'prints one JSON object' },
  help: { type: 'flag', help: 'prints this' },
  version: { type: 'flag', help: 'prints the version' },
} satisfies Record<string, Option>

type Name = keyof typeof OPTIONS
type ValueOf<O extends Option> = O['type'] extends 'number'
  ? number
  : O['type'] extends 'flag'
    ? boolean
    : O['type'] extends 'list'
      ? string[]
      : string
/** `texts`: what stands behind a command that takes texts there. */
export type Values = { [N in Name]?: ValueOf<(typeof OPTIONS)[N]> } & { texts?: string[] }

const table: Record<string, Option> = OPTIONS

/** The command and its options; a UsageError on what cannot be understood. */
export function parseCommandLine(args: string[]): { command: Command | undefined; values: Values } {
  const known = Object.entries(table).map(([name, { type }]) => [
    name,
    { type: type === 'flag' ? 'boolean' : 'string', multiple: type === 'list' } as const,
  ])
  let parsed
  try {
    parsed = parseArgs({ args, options: Object.fromEntries(known), allowPositionals: true, strict: true })
  } catch (error) {
    throw new UsageError((error as Error).message.split('. ')[0]!.replace(/\.?$/, '.'))
  }
  const [command, ...rest] = parsed.positionals
  if (command !== undefined && !Object.hasOwn(COMMANDS, command)) {
    throw new UsageError(`There is no command '${command}'; there are ${Object.keys(COMMANDS).join(', ')}.`)
  }
  const values: Record<string, unknown> = {}
  if (command && TAKES_FOLDER.includes(command as Command)) values['model'] = rest.shift()
  if (command && READ.includes(command as Command)) values['texts'] = rest.splice(0)
  if (command === 'quantize') values['out'] = rest.shift()
  if (rest.length > 0) throw new UsageError(`'${rest[0]}' is no option; texts are given with --prompt.`)
  for (const [name, value] of Object.entries(parsed.values)) values[name] = convert(name, value, command as Command | undefined)
  for (const name of ['model', 'out']) if (values[name] === undefined) delete values[name]
  return { command: command as Command | undefined, values: values as Values }
}

function convert(name: string, value: unknown, command: Command | undefined): unknown {
  const { type, of } = table[name]!
  if (command && of && !of.includes(command)) throw new UsageError(`--${name} is no option of ${command}.`)
  if (type !== 'number') return value
  const number = Number(value)
  if (value === '' || Number.isNaN(number)) throw new UsageError(`--${name} must be a number, not '${value as string}'.`)
  return number
}

/** The options that tell where on a hub a model is. */
export function hubOptions({ revision, endpoint }: Values): HubOptions {
  return { ...(revision !== undefined && { revision }), ...(endpoint !== undefined && { endpoint }) }
}

export function helpText(): string {
  const commands = Object.entries(COMMANDS).map(([name, help]) => `  ${name.padEnd(10)} ${help}`)
  const options = Object.entries(table).map(([name, { value, help, of }]) => {
    const left = `--${name}${value ? ` ${value}` : ''}`
    return `  ${left.padEnd(24)} ${help}${of ? ` (${of.join(', ')})` : ''}`
  })
  return [`usage: qwasm COMMAND [options]`, '', ...commands, '', ...options, ''].join('\n')
}
