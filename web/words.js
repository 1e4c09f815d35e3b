// What the page says about numbers and failures, in words that a person can act on.

import { PROBLEMS, LOAD_ADVICE } from './advice.js'

const MEGABYTE = 1e6
const GIGABYTE = 1e9

export function bytesInWords(bytes) {
  if (bytes < MEGABYTE) return `${Math.ceil(bytes / 1000)} kB`
  if (bytes < GIGABYTE) return `${(bytes / MEGABYTE).toFixed(bytes < 100 * MEGABYTE ? 1 : 0)} MB`
  return `${(bytes / GIGABYTE).toFixed(bytes < 100 * GIGABYTE ? 2 : 0)} GB`
}

function secondsInWords(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.ceil(seconds))} s`
  return `${Math.round(seconds / 60)} min`
}

/** '35 ms' or '1.2 s', on one line. */
export function durationInWords(ms) {
  return ms < 1000 ? `${Math.ceil(ms)}\u00a0ms` : `${(ms / 1000).toFixed(1)}\u00a0s`
}

const PHASES = { download: 'Downloading', verify: 'Checking what is kept', prepare: 'Preparing' }

/** One line about a load in progress: what happens, bytes, speed, time left. */
export function progressInWords({ phase, loaded, total, rate, secondsLeft }, paused = false) {
  if (phase === 'wait') return 'Another tab is loading this model; this one goes on when it is done …'
  if (phase === 'ready') return 'Starting the model …'
  if (total === 0) return paused ? 'Paused' : 'Reading what the model is …'
  const parts = [paused ? 'Paused' : PHASES[phase], `${bytesInWords(loaded)} of ${bytesInWords(total)}`].filter(Boolean)
  if (rate && !paused) parts.push(`${bytesInWords(rate)}/s`)
  if (secondsLeft && !paused) parts.push(`${secondsInWords(secondsLeft)} left`)
  return parts.join(' · ')
}

/** The file that the latest bytes belong to; how much of it where there are several. */
export function fileInWords({ file, fileLoaded, fileTotal, total }) {
  if (file === '' || fileTotal === total) return file
  return `${file}: ${bytesInWords(fileLoaded)} of ${bytesInWords(fileTotal)}`
}

/** The rung of the ladder that the model runs on: 'relaxed SIMD, 2 threads'; below the highest with what is lacking. */
export function rungInWords({ variant, threads, why }) {
  const kind = variant.startsWith('relaxed') ? 'relaxed SIMD' : 'plain SIMD'
  const rung = `${kind}, ${threads === 1 ? '1 thread' : `${threads} threads`}`
  return variant === 'relaxed' ? rung : `${rung} · ${why}`
}

export function parametersInWords(parameters) {
  if (parameters >= 1e9) return `${(parameters / 1e9).toFixed(1)} billion parameters`
  return `${(parameters / 1e6).toFixed(parameters < 10e6 ? 1 : 0)} million parameters`
}

/** What a page says above its examples. */
export function welcomeInWords({ kind, name }, { parameters }, { chats }) {
  if (kind === 'demo') return `This is a tiny model (${parametersInWords(parameters)}), trained on sums, spelling, sorting, capitals and short stories. Try one:`
  const what = `${name} has ${parametersInWords(parameters)}.`
  return chats ? `${what} Ask it something:` : `${what} It came without a chat template, so it does not answer: it goes on from the text that you begin. Try one:`
}

const PRECISIONS = { exact: 'as published', q8: 'q8, 8.5 bits a weight', q4: 'q4, 4.5 bits a weight', stored: 'as in the file' }

/** All about the model in use, as pairs of name and value. */
export function aboutInWords({ source, parameters, dtype, weightBytes, contextLength, kv, kvBytesPerToken, variant, threads, why, loadMs, notes }) {
  return [
    ['From', source],
    ['Weights', `${parametersInWords(parameters)}, ${PRECISIONS[dtype] ?? dtype}: ${bytesInWords(weightBytes)} in memory`],
    ['Context', `${contextLength.toLocaleString('en')} tokens (${kv}: up to ${bytesInWords(contextLength * kvBytesPerToken)} more)`],
    ['Engine', `${variant}, ${threads === 1 ? '1 thread' : `${threads} threads`}`],
    ['Why this one', why],
    ['Loaded in', durationInWords(loadMs)],
    ...notes.map(note => ['Note', note]),
  ]
}

/** How long ago, roughly: 'just now', '5 minutes ago'. */
function agoInWords(time) {
  const minutes = Math.floor((Date.now() - time) / 60_000)
  if (minutes < 1) return 'just now'
  const [count, unit] = minutes < 60 ? [minutes, 'minute'] : minutes < 1440 ? [Math.floor(minutes / 60), 'hour'] : [Math.floor(minutes / 1440), 'day']
  return new Intl.RelativeTimeFormat('en').format(-count, unit)
}

/** One line about a model that is kept. */
export function keptInWords({ bytes, complete, prepared, lastUsed }) {
  const state = complete ? prepared.length > 0 && `${prepared.join(' and ')} ready` : 'not finished: goes on where it stands'
  return [bytesInWords(bytes), state, `used ${agoInWords(lastUsed)}`].filter(Boolean).join(' · ')
}

export function usageInWords({ models, bytes, available }) {
  if (models === 0 && available === null) return 'This browser gives no room to keep models in.'
  const kept = models === 0 ? 'Nothing is kept yet' : `${bytesInWords(bytes)} in ${models === 1 ? '1 model' : `${models} models`}`
  return available === null ? kept : `${kept} · ${bytesInWords(available)} free`
}

/** Tokens per second of a finished answer. */
export function measuresInWords({ decodeTokens, decodeMs, prefillMs, prefillTokens }) {
  const parts = [decodeTokens === 1 ? '1 token' : `${decodeTokens} tokens`]
  if (decodeMs > 0) parts.push(`${(decodeTokens / decodeMs * 1000).toFixed(0)} tokens/s`)
  if (prefillTokens > 0) parts.push(`${prefillTokens} prompt tokens in ${durationInWords(prefillMs)}`)
  return parts.join(' · ')
}

/** { title, advice, detail } for any failure. */
export function problemInWords(error) {
  const [title, advice] = PROBLEMS[error?.code] ?? ['Something went wrong', 'Try again. If it happens again, the line below says more.']
  return { title, advice, detail: error?.message ?? String(error) }
}

/** The same for a failed load of a chosen model; `kept` is the name of the one that stays in use, if any. */
export function loadProblemInWords(error, choice, kept = null) {
  const words = problemInWords(error)
  const refused = asksForToken(error, choice) ? 'refused' : error?.status === 429 ? 'busy' : error?.code
  const [title, advice] = LOAD_ADVICE[choice.kind]?.[refused] ?? LOAD_ADVICE.any[refused] ?? [words.title, words.advice]
  return { ...words, title, advice: kept ? `${advice} ${kept} stays in use.` : advice }
}

/** Whether a hub wants to know who asks. */
export function asksForToken(error, { kind }) {
  return kind === 'hub' && [401, 403].includes(error?.status)
}

/** `keeps`: whether this browser has room for what was downloaded. */
export function cancelledInWords({ kind, name }, keeps) {
  const advice = kind === 'files' || !keeps ? '' : 'What has arrived is kept: it goes on from here next time.'
  return { title: `Loading ${kind === 'demo' ? 'the model' : name} was cancelled`, advice }
}

/** Whether only loading the model again can help. */
export function needsReload(error) {
  return ['dead', 'disposed', 'not_finite', 'out_of_memory'].includes(error?.code)
}
