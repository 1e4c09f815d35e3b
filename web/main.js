// The demo page: loads the embedded model or another one, then chats with it.
import { caches } from './dist/browser.js'
import { showAbout } from './about.js'
import { abilitiesOf, Chat } from './chat.js'
import { askedByLink, choiceOf, DEMO, isOfThisSite, keptSource, linkOf } from './choice.js'
import { connectDrop } from './drop.js'
import { announce, button, byId, element } from './elements.js'
import { cancelLoading, connectLoading, isLoading, loadShown } from './loading.js'
import { connectModels, openModels, takeDropped } from './models.js'
import { connectProblem, hideProblem, showProblem } from './problem.js'
import { connectSave, resetSave } from './save.js'
import { asksForToken, cancelledInWords, loadProblemInWords, welcomeInWords } from './words.js'

const DEMO_EXAMPLES = [
  'What is 347 + 85?', 'What is 508 - 199?', 'Reverse the word banana.', 'Sort the numbers 42, 7, 19.', 'Spell the word piano.',
  'What is the capital of Japan?', 'Tell me a story about a fox named Mia.', '法国的首都是哪里？',
]
const CHAT_EXAMPLES = ['Explain in two sentences why the sky is blue.', 'Write a haiku about rain.', 'What is 347 + 85?', '用一句话介绍北京。']
const TEXT_EXAMPLES = ['Once upon a time', 'The capital of France is', 'To make a good cup of tea,']

const question = byId('question'), send = byId('send'), stop = byId('stop')

let model = null
let choice = null // what `model` was loaded by
let loads = 0
const chat = new Chat({ changed: updateControls, reload })

function updateControls() {
  const busy = chat.answering
  // Hiding the button that has the focus would lose it.
  if (busy === stop.hidden && (document.activeElement === send || document.activeElement === stop)) question.focus()
  stop.hidden = !busy
  send.hidden = busy
  send.disabled = model === null
  for (const example of byId('examples').querySelectorAll('button')) example.disabled = !chat.ready
  byId('welcome').hidden = model === null || chat.messages.length > 0
}

// ---- loading

/** Options of loadModel(). A model as tiny as the demo is fast in exact mode too. */
function optionsOf({ kind, dtype, token }) {
  return { dtype: kind === 'demo' && dtype === 'auto' ? 'exact' : dtype, ...(token && { token }) }
}

/** Loads a model beside the one in use, which stays where that fails or is cancelled. */
async function open(next) {
  const turn = ++loads
  hideProblem()
  try {
    const loaded = await loadShown(next, optionsOf(next), model !== null)
    await adopt(loaded, next)
  } catch (error) {
    if (turn === loads) showFailure(error, next) // else another load took its place
  }
}

async function adopt(loaded, next) {
  const abilities = await refuseWithoutText(loaded)
  // The likeliest token each time: a model as small as the demo is at its best so, and the same question gets the same answer.
  await chat.use(loaded, abilities, next.kind === 'demo' ? { temperature: 0 } : {})
  const former = { model, choice }
  model = loaded
  choice = next
  await former.model?.dispose()
  if (former.choice && former.choice.source !== next.source && chat.messages.length > 0) chat.note(`From here on: ${next.name}`)
  history.replaceState(null, '', linkOf(next))
  showModel(abilities)
}

async function refuseWithoutText(loaded) {
  if (loaded.info.hasTokenizer) return abilitiesOf(loaded)
  await loaded.dispose()
  throw Object.assign(new Error('There is neither tokenizer.json nor vocab.json with merges.txt.'), { code: 'no_tokenizer' })
}

function showModel(abilities) {
  const { info } = model
  byId('model-name').textContent = choice.name
  byId('thinking').closest('label').hidden = !abilities.thinks
  byId('welcome-text').textContent = welcomeInWords(choice, info, abilities)
  question.placeholder = abilities.chats ? (choice.kind === 'demo' ? 'Ask something small' : 'Ask something') : 'Begin a text'
  const examples = !abilities.chats ? TEXT_EXAMPLES : choice.kind === 'demo' ? DEMO_EXAMPLES : CHAT_EXAMPLES
  byId('examples').replaceChildren(...examples.map(text => {
    const item = element('li')
    item.append(button('', text, () => chat.ask(text)))
    return item
  }))
  showAbout(info)
  resetSave()
  announce(choice.kind === 'demo' ? 'The model is ready' : `${choice.name} is ready`)
  updateControls()
  if (document.activeElement === document.body) question.focus()
}

function showFailure(error, next) {
  const again = () => open(next)
  if (error?.name === 'AbortError') return showCancelled(next, again)
  const words = loadProblemInWords(error, next, model && choice.name)
  if (asksForToken(error, next)) {
    const act = () => openModels({ text: next.source, dtype: next.dtype, askToken: true })
    return showProblem(words, { label: 'Enter a token', act })
  }
  if (error?.code === 'out_of_memory' && model) {
    return showProblem(words, { label: `Put ${choice.name} away, then load`, act: () => freeAndOpen(next) })
  }
  if (['invalid_argument', 'unsupported', 'no_tokenizer'].includes(error?.code)) {
    return showProblem(words, { label: 'Choose another model', act: () => openModels() })
  }
  showProblem(words, { label: 'Load again', act: again })
}

async function showCancelled(next, again) {
  const { available } = await caches.usage()
  if (isLoading()) return // something else was chosen meanwhile
  showProblem(cancelledInWords(next, available !== null), { label: 'Go on loading', act: again, calm: true })
}

/** Puts the model in use away, for there is no memory for two. */
async function freeAndOpen(next) {
  const old = model
  model = null
  await chat.use(null)
  await old?.dispose().catch(() => {})
  await open(next)
}

/** Loads once more after the engine died; the conversation stays. */
async function reload() {
  await freeAndOpen(choice)
  if (model && chat.messages.at(-1)?.role === 'user') await chat.answer()
}

/** What the page begins with: what its address asks for, where that costs no large download; else the embedded model. */
async function openFirst() {
  const asked = askedByLink()
  if (asked.text === '') return open({ ...DEMO, dtype: asked.dtype })
  let first = null
  try {
    first = choiceOf(asked.text, asked.dtype)
  } catch {
    // The panel shows the text, and says what is wrong with it when it is asked to load that.
  }
  if (first && (isOfThisSite(first) || await isKept(first))) return open(first)
  openModels(asked)
  return open(DEMO)
}

async function isKept(wanted) {
  return (await caches.list()).some(({ source, complete }) => complete && source === keptSource(wanted))
}

async function openDropped(dropped) {
  try {
    takeDropped(await dropped)
  } catch (error) {
    showProblem(loadProblemInWords(error, { kind: 'files' }))
  }
}

// ---- controls

function submitQuestion() {
  if (!chat.ready || question.value.trim() === '') return
  const text = question.value
  question.value = ''
  fitQuestion()
  chat.ask(text)
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
    if (event.key === 'Escape' && !byId('models').open) chat.stop()
  })
  stop.addEventListener('click', () => chat.stop())
  byId('new-chat').addEventListener('click', () => {
    chat.clear()
    if (!model && !isLoading()) open(choice ?? DEMO)
  })
}

connectControls()
connectProblem()
connectLoading()
connectModels({ choose: open, current: () => choice })
connectDrop(openDropped)
connectSave(() => ({ model, name: choice?.name }))
openFirst()
