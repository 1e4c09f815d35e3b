// The card that says what went wrong, or what else a person should know, with one button that helps.
import { byId } from './elements.js'

let action = null

/** Shows { title, advice, detail }; `calm` where nothing is wrong. The button does `act`; without it there is none. */
export function showProblem({ title, advice, detail = '' }, { label = '', act = null, calm = false } = {}) {
  const card = byId('problem')
  byId('problem-title').textContent = title
  byId('problem-text').textContent = advice
  byId('problem-detail').textContent = detail
  byId('retry').textContent = label
  byId('retry').hidden = act === null
  action = act
  card.classList.toggle('calm', calm)
  card.hidden = false
  card.scrollIntoView({ block: 'nearest' })
}

export function hideProblem() {
  if (byId('problem').contains(document.activeElement)) byId('question').focus() // or hiding the button would lose the focus
  byId('problem').hidden = true
  action = null
}

export function connectProblem() {
  byId('retry').addEventListener('click', () => action?.())
}
