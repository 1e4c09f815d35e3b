// What the page says about numbers and failures, in words that a person can act on.

const MEGABYTE = 1e6

export function bytesInWords(bytes) {
  return bytes < MEGABYTE ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / MEGABYTE).toFixed(bytes < 100 * MEGABYTE ? 1 : 0)} MB`
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
export function progressInWords({ phase, loaded, total, rate, secondsLeft }) {
  if (phase === 'wait') return 'Another tab is loading this model; this one goes on when it is done …'
  if (phase === 'headers' || total === 0) return 'Reading what the model is …'
  const parts = [PHASES[phase], `${bytesInWords(loaded)} of ${bytesInWords(total)}`].filter(Boolean)
  if (rate) parts.push(`${bytesInWords(rate)}/s`)
  if (secondsLeft) parts.push(`${secondsInWords(secondsLeft)} left`)
  return parts.join(' · ')
}

/** The rung of the ladder that the model runs on: 'relaxed SIMD, 2 threads'; below the highest with what is lacking. */
export function rungInWords({ variant, threads, why }) {
  const kind = variant.startsWith('relaxed') ? 'relaxed SIMD' : 'plain SIMD'
  const rung = `${kind}, ${threads === 1 ? '1 thread' : `${threads} threads`}`
  return variant === 'relaxed' ? rung : `${rung} · ${why}`
}

export function parametersInWords(parameters) {
  return `${(parameters / 1e6).toFixed(parameters < 10e6 ? 1 : 0)} million parameters`
}

/** Tokens per second of a finished answer. */
export function measuresInWords({ decodeTokens, decodeMs, prefillMs, prefillTokens }) {
  const parts = [decodeTokens === 1 ? '1 token' : `${decodeTokens} tokens`]
  if (decodeMs > 0) parts.push(`${(decodeTokens / decodeMs * 1000).toFixed(0)} tokens/s`)
  if (prefillTokens > 0) parts.push(`${prefillTokens} prompt tokens in ${durationInWords(prefillMs)}`)
  return parts.join(' · ')
}

const ADVICE = {
  missing: ['A file of the model is missing', 'The server does not have all files of the model. If this is your server, check its models folder, then try again.'],
  http: ['The model could not be fetched', 'The server answered with something else than the model. Try again in a moment.'],
  network: ['The connection was lost', 'Check that you are online and that the server is running, then try again.'],
  invalid_file: ['The model’s files are damaged', 'They may have been cut off on their way. Try again; if it stays so, the files on the server are broken.'],
  integrity: ['The model is not the one that was promised', 'Its files differ from what this page expects, so they are not used. Tell whoever runs this site.'],
  unsupported: ['This model is of a kind that does not run here', 'Another model may do.'],
  out_of_memory: ['There is not enough memory', 'Close other tabs, then try again.'],
  context_overflow: ['This conversation is full', 'The model cannot hold more text. Start a new chat, or write a shorter message.'],
  not_finite: ['The model computed nonsense', 'Its files are probably damaged. Load them again.'],
  environment: ['This browser cannot run the model', 'It needs WebAssembly with SIMD: a current Chrome, Edge, Firefox or Safari has it.'],
  version_mismatch: ['Two versions of this page got mixed', 'Reload the page without the browser’s cache (Ctrl+Shift+R, on a Mac Command+Shift+R).'],
  dead: ['The model stopped working', 'It has to be loaded again.'],
  disposed: ['The model was put away', 'It has to be loaded again.'],
}

/** { title, advice, detail } for any failure. */
export function problemInWords(error) {
  const [title, advice] = ADVICE[error?.code] ?? ['Something went wrong', 'Try again. If it happens again, the line below says more.']
  return { title, advice, detail: error?.message ?? String(error) }
}

/** Whether only loading the model again can help. */
export function needsReload(error) {
  return ['dead', 'disposed', 'not_finite', 'out_of_memory'].includes(error?.code)
}
