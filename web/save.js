// The button that saves the model in use as a GGUF file: piece by piece onto the disk where the browser can write there, else by way of memory.
import { announce, byId } from './elements.js'
import { bytesInWords, problemInWords } from './words.js'

const FILE_DTYPES = { exact: 'f16' } // what an exact model's file holds

const save = byId('save'), state = byId('save-state')

let current // gives { model, name } of the model in use
let running = null // the AbortController of the saving that goes on
let warned = false // a person was told what the file takes in memory

function show(label, text = '') {
  save.textContent = label
  state.textContent = text
}

function fileName() {
  const { model, name } = current()
  const { dtype } = model.info
  return `${name.split('/').at(-1).replace(/[^\w.-]+/g, '-')}-${FILE_DTYPES[dtype] ?? dtype}.gguf`
}

/** Onto the disk, where the person says: a stream, and what to do in the end; null where the person changed their mind. */
async function diskSink(suggestedName) {
  const types = [{ description: 'GGUF model', accept: { 'application/octet-stream': ['.gguf'] } }]
  const handle = await showSaveFilePicker({ suggestedName, types }).catch(error => {
    if (error.name !== 'AbortError') throw error
    return null
  })
  if (handle === null) return null
  const isNew = (await handle.getFile()).size === 0
  // A file that is replaced stays as it was until the new one is whole; a new one would stay empty.
  return { stream: await handle.createWritable(), finish: () => {}, fail: () => isNew && handle.remove?.().catch(() => {}) }
}

/** Into a Blob, which the browser then downloads. */
function memorySink(name) {
  const parts = []
  const finish = () => {
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob(parts))
    link.download = name
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000) // the download has begun by then
  }
  return { stream: new WritableStream({ write: piece => void parts.push(new Blob([piece])) }), finish, fail: () => {} }
}

async function saveModel() {
  const { model } = current()
  if (!model) return // put away while another one is loaded
  const onDisk = 'showSaveFilePicker' in window
  if (!onDisk && !warned) {
    warned = true
    return show('Save all the same', `This browser collects the file in memory first: about ${bytesInWords(model.info.weightBytes)}.`)
  }
  const controller = running = new AbortController()
  const name = fileName()
  let sink = null
  try {
    sink = await (onDisk ? diskSink(name) : memorySink(name))
    if (sink === null) return show('Save as GGUF')
    show('Cancel saving')
    const onProgress = ({ written, total }) => (state.textContent = `${bytesInWords(written)} of ${bytesInWords(total)}`)
    const bytes = await model.saveGguf(sink.stream, { signal: controller.signal, onProgress })
    sink.finish()
    show('Save as GGUF', `${name} is saved: ${bytesInWords(bytes)}.`)
    announce(state.textContent)
  } catch (error) {
    await sink?.fail()
    const { title, detail } = problemInWords(error)
    show('Save as GGUF', error.name === 'AbortError' ? 'Not saved.' : `Not saved. ${title}: ${detail}`)
  } finally {
    running = null
    warned = false
  }
}

/** A model has taken its place: what was said of the former one is over. */
export function resetSave() {
  if (running) return
  warned = false
  show('Save as GGUF')
}

/** `inUse` gives the model in use and its name. */
export function connectSave(inUse) {
  current = inUse
  save.addEventListener('click', () => (running ? running.abort() : saveModel()))
}
