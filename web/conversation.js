// The conversation on the page: questions, answers that grow, thinking in a fold of its own. Model text only ever becomes text nodes.
import { element } from './elements.js'
import { durationInWords } from './words.js'

/** The fold that holds an answer's thinking; open while the model thinks, unless the reader decides. */
class Thoughts {
  constructor() {
    this.start = performance.now()
    this.summary = element('summary', '', 'Thinking …')
    this.text = element('div', 'text current')
    this.node = element('details', 'thoughts')
    this.node.append(this.summary, this.text)
    this.node.open = true
    this.summary.addEventListener('click', () => (this.touched = true))
  }

  append(piece) {
    this.text.append(piece)
  }

  close() {
    if (this.closed) return
    this.closed = true
    this.text.classList.remove('current')
    this.summary.textContent = `Thought for ${durationInWords(performance.now() - this.start)}`
    if (!this.touched) this.node.open = false
  }
}

/** One answer that is being written. */
class Answer {
  constructor(conversation) {
    this.conversation = conversation
    this.node = element('li', 'message assistant streaming')
    this.node.setAttribute('aria-label', 'Answer')
    this.content = element('div', 'text current')
    this.measures = element('p', 'measures')
    this.node.append(this.content)
    conversation.append(this.node)
  }

  think(piece) {
    if (!this.thoughts) {
      this.thoughts = new Thoughts()
      this.node.prepend(this.thoughts.node)
      this.content.classList.remove('current')
    }
    this.thoughts.append(piece)
    this.conversation.follow()
  }

  say(piece) {
    this.thoughts?.close()
    this.content.classList.add('current')
    this.content.append(piece)
    this.conversation.follow()
  }

  measure(text) {
    if (!this.measures.isConnected) this.node.append(this.measures)
    this.measures.textContent = text
  }

  /** Ends the answer; `note` says how fast it was, or that it was stopped. */
  finish(note) {
    this.thoughts?.close()
    this.node.classList.remove('streaming')
    if (note) this.measure(note)
    this.conversation.follow()
  }

  remove() {
    this.node.remove()
  }
}

export class Conversation {
  constructor(list) {
    this.list = list
    this.following = true
    // Scrolling up lets go of the end, so that reading is not pulled away; coming back to the end takes hold again.
    addEventListener('scroll', () => (this.following = innerHeight + scrollY > document.documentElement.scrollHeight - 80), { passive: true })
  }

  append(node) {
    this.list.append(node)
    this.follow()
  }

  ask(text) {
    this.following = true
    const node = element('li', 'message user text', text)
    node.setAttribute('aria-label', 'You')
    this.append(node)
    return node
  }

  answer() {
    return new Answer(this)
  }

  note(text) {
    this.append(element('li', 'note', text))
  }

  follow() {
    if (this.following) scrollTo(0, document.documentElement.scrollHeight)
  }

  clear() {
    this.list.replaceChildren()
  }
}
