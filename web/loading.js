// The load that is going on: how far it is, and the buttons that pause and cancel it.
import { loadModel, LoadController } from './dist/browser.js'
import { announce, byId } from './elements.js'
import { fileInWords, progressInWords } from './words.js'

const START = { phase: 'headers', file: '', fileLoaded: 0, fileTotal: 0, loaded: 0, total: 0, rate: null, secondsLeft: null }

let running = null // the load that is shown: { controller, progress }

function show({ controller, progress }) {
  const bar = byId('loading-bar')
  if (progress.total > 0) {
    bar.max = progress.total
    bar.value = progress.loaded
  } else {
    bar.removeAttribute('value')
  }
  byId('loading-text').textContent = progressInWords(progress, controller.paused)
  byId('loading-file').textContent = fileInWords(progress)
  byId('pause').textContent = controller.paused ? 'Resume' : 'Pause'
}

/** Shows a load's progress until it ends. `beside` a model that can be used meanwhile, it takes little room. */
function begin(choice, beside) {
  const load = { controller: new LoadController(), progress: START }
  running = load
  byId('loading').classList.toggle('beside', beside)
  byId('loading-title').textContent = `Loading ${choice.kind === 'demo' ? 'the model' : choice.name}`
  byId('pause').hidden = choice.kind === 'files' // there is no network to spare
  byId('loading').hidden = false
  show(load)
  if (beside) byId('loading').scrollIntoView({ block: 'nearest' })
  announce(byId('loading-title').textContent)
  return load
}

/** Loads a model as loadModel() does; a load that is going on is cancelled for it. */
export async function loadShown(choice, options, beside) {
  cancelLoading()
  const load = begin(choice, beside)
  const onProgress = progress => {
    load.progress = progress
    if (running === load) show(load)
  }
  try {
    return await loadModel(choice.source, { ...options, controller: load.controller, onProgress })
  } finally {
    if (running === load) {
      running = null
      if (byId('loading').contains(document.activeElement)) byId('question').focus() // or hiding the button would lose the focus
      byId('loading').hidden = true
    }
  }
}

export const isLoading = () => running !== null

export function cancelLoading() {
  running?.controller.abort()
}

function pauseOrResume() {
  if (!running) return
  const { controller } = running
  if (controller.paused) controller.resume()
  else controller.pause()
  announce(controller.paused ? 'Paused' : 'Going on')
  show(running)
}

export function connectLoading() {
  byId('pause').addEventListener('click', pauseOrResume)
  byId('cancel').addEventListener('click', cancelLoading)
}
