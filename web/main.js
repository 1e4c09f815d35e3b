// The demo page: loads the embedded model, then chats with it.
import { loadModel } from './dist/browser.js'
import { Conversation } from './conversation.js'
import { measuresInWords, needsReload, parametersInWords, problemInWords, progressInWords, rungInWords } from './words.js'

const EXAMPLES = [
  'What is 347 + 85?', 'What is 508 - 199?', 'Reverse the word banana.', 'Sort the numbers 42, 7, 19.', 'Spell the word piano.',
  'What is the capital of Japan?', 'Tell me a story about a fox named Mia.', '法国的首都是哪里？',
]

const byId = id => document.getElementById(id)
const loading = byId('loading'), welcome = byId('welcome'), problem = byId('problem')
const question = byId('question'), send = byId('send'), stop = byId('stop'), thinking = byId('thinking')
const conversation = new Conversation(byId('conversation'))

let model = null
let messages = []
let stream = null // the answer that is being written
let failed = null // the part of an answer that an error ended
let lastQuestion = null
let retryAction = null

function announce(text) {
  byId('announcer').textContent = text
}

function showProblem(error, retry, buttonText) {
  const { title, advice, detail } = problemInWords(error)
  byId('problem-title').textContent = title
  byId('problem-text').textContent = advice
  byId('problem-detail').textContent = detail
  byId('retry').textContent = buttonText
  retryAction = retry
  problem.hidden = false
  conversation.follow()
}

function hideProblem() {
  problem.hidden = true
  retryAction = null
}

function updateControls() {
  const busy = stream !== null
  // Hiding the button that has the focus would lose it.
  if (busy === stop.hidden && (document.activeElement === send || document.activeElement === stop)) question.focus()
  stop.hidden = !busy
  send.hidden = busy
  send.disabled = model === null
  for (const button of byId('examples').querySelectorAll('button')) button.disabled = model === null || busy
  welcome.hidden = model === null || messages.length > 0
}

// ---- loading

function showProgress(progress) {
  const bar = byId('loading-bar')
  if (progress.total > 0) {
    bar.max = progress.total
    bar.value = progress.loaded
  } else {
    bar.removeAttribute('value')
  }
  byId('loading-text').textContent = progressInWords(progress)
}

async function load() {
  hideProblem()
  loading.hidden = false
  showProgress({ phase: 'headers', loaded: 0, total: 0 })
  announce('Loading the model')
  try {
    // A model as tiny as this one is fast in exact mode too.
    model = await loadModel(new URL('models/demo/', location.href), { dtype: 'exact', onProgress: showProgress })
  } catch (error) {
    showProblem(error, load, 'Load again')
    return
  } finally {
    loading.hidden = true
  }
  byId('rung').textContent = `Runs on ${rungInWords(model.info)}`
  byId('welcome-text').textContent = `This is a tiny model (${parametersInWords(model.info.parameters)}), trained on sums, spelling, sorting, capitals and short stories. Try one:`
  announce('The model is ready')
  updateControls()
  if (document.activeElement === document.body) question.focus()
}

/** Loads once more after the engine died; the conversation stays. */
async function reload() {
  const old = model
  model = null
  updateControls()
  await old?.dispose().catch(() => {})
  await load()
  if (model && messages.at(-1)?.role === 'user') await answer()
}

// ---- chatting

/** Shows the pieces of the running stream as they come. */
async function write(reply) {
  const start = performance.now()
  let pieces = 0
  for await (const delta of stream) {
    if (delta.reasoning) reply.think(delta.reasoning)
    if (delta.content) reply.say(delta.content)
    pieces++
    const seconds = (performance.now() - start) / 1000
    if (seconds > 0.3) reply.measure(`${(pieces / seconds).toFixed(0)} tokens/s`)
  }
  return stream.result()
}

/** What the button beside a failed answer does, and its name. */
function remedy(error) {
  if (needsReload(error)) return [reload, 'Load the model again']
  return error?.code === 'context_overflow' ? [newChat, 'New chat'] : [answer, 'Try again']
}

const ENDINGS = { abort: 'stopped', length: 'the end of the context' }

async function answer() {
  hideProblem()
  failed?.remove()
  failed = null
  const asked = messages
  const reply = conversation.answer()
  try {
    // The likeliest token each time: a model as small as this one is at its best so, and the same question gets the same answer.
    stream = model.chat(messages, { thinking: thinking.checked, temperature: 0 })
    updateControls()
    announce('Answering')
    const result = await write(reply)
    reply.finish([ENDINGS[result.finishReason], measuresInWords(result.timings)].filter(Boolean).join(' · '))
    asked.push({ role: 'assistant', content: result.content })
    announce(result.content || 'No answer')
  } catch (error) {
    reply.finish('')
    failed = reply
    if (asked === messages) showProblem(error, ...remedy(error))
  } finally {
    stream = null
    updateControls()
  }
}

async function ask(text) {
  if (!model || stream || text.trim() === '') return
  if (messages.at(-1)?.role === 'user') { // a question that failed is replaced by the new one
    messages.pop()
    lastQuestion.remove()
  }
  messages.push({ role: 'user', content: text.trim() })
  lastQuestion = conversation.ask(text.trim())
  await answer()
}

function newChat() {
  stream?.stop()
  messages = []
  conversation.clear()
  hideProblem()
  updateControls()
  question.focus()
  if (!model && loading.hidden) load()
}

// ---- controls

function submitQuestion() {
  if (!model || stream || question.value.trim() === '') return
  const text = question.value
  question.value = ''
  fitQuestion()
  ask(text)
}

/** Grows the field with its text, where the browser does not do so by itself. */
function fitQuestion() {
  if (CSS.supports('field-sizing', 'content')) return
  question.style.height = 'auto'
  question.style.height = `${question.scrollHeight + 2}px`
}

function connectControls() {
  byId('composer').addEventListener('submit', event => {
    event.preventDefault()
    submitQuestion()
  })
  question.addEventListener('input', fitQuestion)
  question.addEventListener('keydown', event => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    submitQuestion()
  })
  addEventListener('keydown', event => {
    if (event.key === 'Escape') stream?.stop()
  })
  stop.addEventListener('click', () => stream?.stop())
  byId('new-chat').addEventListener('click', newChat)
  byId('retry').addEventListener('click', () => retryAction?.())
  for (const example of EXAMPLES) {
    const button = document.createElement('button')
    button.type = 'button'
    button.textContent = example
    button.addEventListener('click', () => ask(example))
    const item = document.createElement('li')
    item.append(button)
    byId('examples').append(item)
  }
}

connectControls()
load()
