#!/usr/bin/env node
// The command line: qwasm generate | chat | serve | embed | rerank | tokenize | inspect | bench | quantize | manifest | cache.
import { existsSync } from 'node:fs'
import { text as readAll } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { caches, inspect, loadModel, loadTokenizer, QwasmError } from '../node.js'
import type { ChatOptions, GenerateOptions, LoadOptions, Model, SaveProgress, Timings, TokenizerOptions } from '../types.js'
import { benchTable } from './bench-table.js'
import { bench } from './bench.js'
import { cacheTable, removeFromCache } from './cache.js'
import { ChatLoop } from './chat-loop.js'
import { inspectTable } from './inspect-table.js'
import { writeManifest } from './manifest.js'
import { helpText, hubOptions, parseCommandLine, UsageError, type Values } from './options.js'
import { progressBar } from './progress-bar.js'
import { quantize } from './quantize.js'
import { embed, rerank, textsOf } from './read.js'
import { serve, serverSettings } from './serve.js'

declare const QWASM_VERSION: string

async function main(args: string[]): Promise<void> {
  const { command, values } = parseCommandLine(args)
  if (values.version) return print(`${QWASM_VERSION}\n`)
  if (values.help) return print(helpText())
  if (!command) throw new UsageError('A command is missing; see qwasm --help.')
  if (command === 'inspect') return runInspect(values)
  if (command === 'tokenize') return runTokenize(values)
  if (command === 'bench') return runBench(values)
  if (command === 'quantize') return runQuantize(values)
  if (command === 'manifest') return runManifest(values)
  if (command === 'cache') return runCache(values)
  if (command === 'serve') return runServe(values)
  if (command === 'embed' || command === 'rerank') return runRead(command, values)
  if (command === 'chat' && converses(values)) return runChatLoop(values)
  return runModel(command, values)
}

async function runInspect(values: Values): Promise<void> {
  const options = { ...sourceOptions(values), ...defined({ context: values.context, bandwidth: values.bandwidth }) }
  const report = await inspect(modelOf(values), options)
  print(values.json ? `${JSON.stringify(report)}\n` : inspectTable(report))
}

async function runTokenize(values: Values): Promise<void> {
  const prompt = await promptOf(values)
  const tokenizer = await loadTokenizer(modelOf(values), sourceOptions(values))
  try {
    const ids = await tokenizer.tokenize(prompt)
    print(values.json ? `${JSON.stringify({ text: prompt, ids })}\n` : `${ids.join(' ')}\n`)
  } finally {
    await tokenizer.dispose()
  }
}

async function runBench(values: Values): Promise<void> {
  const report = await bench(modelOf(values), values, note)
  print(values.json ? `${JSON.stringify(report)}\n` : benchTable(report))
  if (report.runs.length === 0 || !report.logitsAgree) process.exitCode = 1
}

async function runQuantize(values: Values): Promise<void> {
  const bar = progressBar(process.stderr)
  const onProgress = ({ written: loaded, total }: SaveProgress) => bar.show({ phase: 'write', loaded, total, rate: null, secondsLeft: null })
  const load = (options: LoadOptions) => loadModel(modelOf(values), { ...sourceOptions(values), ...options, onProgress: bar.show })
  try {
    const written = await quantize(values, { load, onProgress }).finally(bar.clear)
    print(values.json ? `${JSON.stringify(written)}\n` : `${written.path}: ${(written.bytes / 1e6).toFixed(1)} MB\n`)
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'AbortError')) throw error
    note('qwasm: stopped; nothing was written.')
    process.exitCode = 130
  }
}

async function runManifest(values: Values): Promise<void> {
  const written = await writeManifest(modelOf(values))
  note(`${written.path}: ${written.files.length} files`)
  print(values.json ? `${JSON.stringify(written)}\n` : `${written.integrity}\n`)
}

async function runCache(values: Values): Promise<void> {
  const freed = values.remove === undefined ? 0 : await removeFromCache(values.remove)
  if (values.remove !== undefined) note(`${(freed / 1e6).toFixed(1)} MB were freed.`)
  const models = await caches.list()
  print(values.json ? `${JSON.stringify(models)}\n` : cacheTable(models))
}

async function runServe(values: Values): Promise<void> {
  const settings = serverSettings(values)
  const model = await load(values, { maxParallel: settings.maxParallel })
  try {
    await serve(model, settings, note)
  } finally {
    await model.dispose()
  }
}

async function runRead(command: 'embed' | 'rerank', values: Values): Promise<void> {
  const texts = await textsOf(command, values, () => readAll(process.stdin))
  const model = await load(values)
  try {
    print(await { embed, rerank }[command](model, texts, values))
  } finally {
    await model.dispose()
  }
}

/** Without a message, a terminal means a conversation; what is piped in is one message, unless --interactive says otherwise. */
function converses({ prompt, interactive, json }: Values): boolean {
  if (interactive && (prompt !== undefined || json)) throw new UsageError('--interactive takes neither --prompt nor --json.')
  return interactive === true || (prompt === undefined && !json && process.stdin.isTTY)
}

async function runChatLoop(values: Values): Promise<void> {
  const thinking = thinkingOf(values)
  const model = await load(values)
  try {
    const terminal = process.stdin.isTTY && process.stdout.isTTY
    const color = terminal && !process.env['NO_COLOR']
    const options = { ...generateOptions(values), ...defined({ thinking }) }
    const { stdin: input, stdout: output, stderr: errors } = process
    await new ChatLoop({ model, options, system: values.system, input, output, errors, terminal, color }).run()
  } finally {
    await model.dispose()
  }
}

function generateOptions(values: Values): GenerateOptions {
  return defined({
    maxTokens: values['max-tokens'],
    temperature: values.temperature,
    topK: values['top-k'],
    topP: values['top-p'],
    minP: values['min-p'],
    repetitionPenalty: values['repetition-penalty'],
    seed: values.seed,
    stop: values.stop,
  })
}

/** The options of loading that all commands share. */
function sourceOptions(values: Values): TokenizerOptions {
  const { cache, integrity } = values
  return { ...(defined({ cache, integrity }) as TokenizerOptions), ...hubOptions(values) }
}

async function runModel(command: 'generate' | 'chat', values: Values): Promise<void> {
  const thinking = thinkingOf(values)
  const prompt = await promptOf(values)
  const model = await load(values)
  try {
    const run = command === 'chat' ? chat : generate
    const result = await run(model, prompt, { ...generateOptions(values), ...defined({ thinking }) }, values)
    const { variant, threads } = model.info
    if (values.json) print(`${JSON.stringify({ ...result, variant, threads })}\n`)
    else note(summary(result.timings, model))
  } finally {
    await model.dispose()
  }
}

async function generate(model: Model, prompt: string, options: GenerateOptions, values: Values) {
  const stream = model.generate(prompt, options)
  if (!values.json) for await (const piece of stream) print(piece)
  const result = await stream.result()
  if (!values.json) print('\n')
  return result
}

/** The answer goes to standard output, the thinking before it to standard error. */
async function chat(model: Model, prompt: string, options: ChatOptions, values: Values) {
  const system = values.system === undefined ? [] : [{ role: 'system' as const, content: values.system }]
  const stream = model.chat([...system, { role: 'user', content: prompt }], options)
  let thought = false
  if (!values.json) {
    for await (const { reasoning, content } of stream) {
      if (reasoning !== undefined) process.stderr.write(reasoning)
      if (content !== undefined && thought) process.stderr.write('\n\n')
      if (content !== undefined) print(content)
      thought = reasoning !== undefined
    }
  }
  const result = await stream.result()
  if (!values.json) print('\n')
  return result
}

async function load(values: Values, more: LoadOptions = {}): Promise<Model> {
  const bar = progressBar(process.stderr)
  const { dtype, kv, threads, variant, context: contextLength } = values
  const options = { ...more, ...(defined({ dtype, kv, threads, variant, contextLength }) as LoadOptions) }
  try {
    return await loadModel(modelOf(values), { ...sourceOptions(values), ...options, onProgress: bar.show })
  } finally {
    bar.clear()
  }
}

/** --model, or in the repository its own demo model. */
function modelOf(values: Values): string {
  if (values.model !== undefined) return values.model
  const demo = fileURLToPath(new URL('../models/demo', import.meta.url))
  if (existsSync(demo)) return demo
  throw new UsageError('--model is missing: a local folder, a hub’s id or a URL.')
}

async function promptOf(values: Values): Promise<string> {
  if (values.prompt !== undefined) return values.prompt
  if (process.stdin.isTTY) throw new UsageError('--prompt TEXT is missing.')
  return readAll(process.stdin)
}

function thinkingOf(values: Values): boolean | undefined {
  if (values.thinking && values['no-thinking']) throw new UsageError('--thinking and --no-thinking exclude each other.')
  return values.thinking ? true : values['no-thinking'] ? false : undefined
}

function summary(timings: Timings, model: Model): string {
  const { loadMs, prefillTokens, prefillMs, decodeTokens, decodeMs } = timings
  const rate = (tokens: number, ms: number) =>
    `${tokens} tokens in ${seconds(ms)} (${((1000 * tokens) / Math.max(ms, 1)).toFixed(1)}/s)`
  const rung = `${model.info.variant}, ${model.info.threads} thread${model.info.threads === 1 ? '' : 's'}`
  return `loaded in ${seconds(loadMs)}; prompt ${rate(prefillTokens, prefillMs)}; answer ${rate(decodeTokens, decodeMs)}; ${rung}`
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`
}

/** The object without its undefined fields. */
function defined<T extends object>(object: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
}

function print(text: string): void {
  process.stdout.write(text)
}

function note(line: string): void {
  process.stderr.write(`${line}\n`)
}

// A reader such as `head` that has enough is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

try {
  await main(process.argv.slice(2))
} catch (error) {
  const known = error instanceof QwasmError || error instanceof UsageError
  note(`qwasm: ${known ? error.message : String(error instanceof Error ? error.stack : error)}`)
  process.exitCode = error instanceof UsageError || (error instanceof QwasmError && error.code === 'invalid_argument') ? 2 : 1
}
