// The panel in which a person chooses a model: by name or address, from this device, or of those that are kept in this browser.
import { caches } from './dist/browser.js'
import { choiceOf, choiceOfFiles, DEMO, SMALL } from './choice.js'
import { announce, button, byId, element } from './elements.js'
import { bytesInWords, keptInWords, problemInWords, usageInWords } from './words.js'

const panel = byId('models'), source = byId('source'), token = byId('token'), dtype = byId('dtype'), folder = byId('folder')

let take // what to do with a choice
let inUse // gives the choice that is in use

function complain(sentence) {
  byId('source-problem').textContent = sentence
  byId('source-problem').hidden = sentence === ''
  source.setAttribute('aria-invalid', String(sentence !== ''))
}

function showToken(shown) {
  byId('token-field').hidden = !shown
  token.value = ''
}

function closeWith(choice) {
  panel.close()
  take(choice)
}

function loadByName() {
  let choice
  try {
    choice = choiceOf(source.value, dtype.value)
  } catch (error) {
    complain(error.message)
    source.focus()
    return
  }
  // The token stays in this load's options and nowhere else.
  closeWith(token.value ? { ...choice, token: token.value.trim() } : choice)
}

// ---- models that are kept

/** A button that must be pressed twice. */
function removal(model, name) {
  const remove = button('quiet', 'Remove', async () => {
    if (!remove.classList.contains('sure')) {
      remove.classList.add('sure')
      remove.textContent = `Free ${bytesInWords(model.bytes)}?`
      return
    }
    remove.disabled = true
    try {
      const freed = await caches.remove(model.id)
      announce(`${name} was removed, ${bytesInWords(freed)} are free again`)
    } catch (error) {
      byId('kept-problem').textContent = error.code === 'wrong_state' ? `${name} is being loaded or kept just now. Try again in a moment.` : problemInWords(error).detail
    }
    await showKept()
    ;(byId('kept').querySelector('button') ?? source).focus()
  })
  remove.addEventListener('blur', () => {
    remove.classList.remove('sure')
    remove.textContent = 'Remove'
  })
  remove.setAttribute('aria-label', `Remove ${name}`)
  return remove
}

function keptItem(model) {
  const choice = choiceOf(model.source, dtype.value)
  const { name } = choice
  const used = inUse()?.source === choice.source
  const about = element('div', 'about')
  about.append(element('strong', '', name), element('p', 'hint', [used && 'in use', keptInWords(model)].filter(Boolean).join(' · ')))
  if (choice.kind === 'address') about.append(element('p', 'hint place', model.source))
  const load = button('quiet', 'Load', () => closeWith({ ...choice, dtype: dtype.value }))
  load.setAttribute('aria-label', `Load ${name}`)
  const buttons = element('div', 'row')
  buttons.append(load, removal(model, name))
  const item = element('li')
  item.append(about, buttons)
  return item
}

async function showKept() {
  const [models, usage] = await Promise.all([caches.list(), caches.usage()])
  byId('kept').replaceChildren(...models.map(keptItem))
  byId('kept-usage').textContent = usageInWords(usage)
}

/** Shows the button for the real small model, if this site has it. */
async function offerSmallModel() {
  const answer = await fetch(SMALL.source, { method: 'HEAD' }).catch(() => null)
  byId('load-small').hidden = !answer?.ok
}

// ---- opening

/** Opens the panel; `asked` fills it: { text, dtype, askToken }. */
export function openModels(asked = {}) {
  complain('')
  byId('kept-problem').textContent = byId('kept-usage').textContent = ''
  if (asked.text !== undefined) source.value = asked.text
  if (asked.dtype !== undefined) dtype.value = asked.dtype
  showToken(asked.askToken === true)
  offerSmallModel()
  if (!panel.open) panel.showModal()
  if (asked.askToken) token.focus()
  else if (asked.text) byId('load').focus()
  else if (matchMedia('(pointer: fine)').matches) source.focus() // on a phone the keyboard would hide the rest
  return showKept()
}

/** `choose` is called with what was chosen; `current` gives the choice in use. */
export function connectModels({ choose, current }) {
  take = choose
  inUse = current
  byId('open-models').addEventListener('click', () => openModels())
  byId('close-models').addEventListener('click', () => panel.close())
  panel.addEventListener('close', () => showToken(false))
  panel.addEventListener('click', event => {
    if (event.target === panel) panel.close() // the backdrop: what is inside lies in elements of its own
  })
  byId('by-name').addEventListener('submit', event => {
    event.preventDefault()
    loadByName()
  })
  source.addEventListener('input', () => {
    complain('')
    showToken(false)
  })
  byId('choose-folder').addEventListener('click', () => folder.click())
  folder.addEventListener('change', () => {
    const files = [...folder.files]
    folder.value = '' // the same folder may be chosen again
    if (files.length > 0) closeWith(choiceOfFiles(files, dtype.value))
  })
  byId('load-small').addEventListener('click', () => closeWith({ ...SMALL, dtype: dtype.value }))
  byId('load-demo').addEventListener('click', () => closeWith({ ...DEMO, dtype: dtype.value }))
}

/** Takes files that were dropped, as if they had been chosen here. */
export function takeDropped(files) {
  panel.close()
  if (files.length > 0) take(choiceOfFiles(files, dtype.value))
}
