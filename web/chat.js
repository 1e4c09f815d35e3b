// The chat: messages, the answer that is being written, and what to do when one fails.
import { Conversation } from './conversation.js'
import { announce, byId } from './elements.js'
import { hideProblem, showProblem } from './problem.js'
import { measuresInWords, needsReload, problemInWords } from './words.js'

const ENDINGS = { abort: 'stopped', length: 'the end of the context' }

/** What a model can do in a chat, found by asking its template: { chats, thinks }. */
export async function abilitiesOf(model) {
  if (!model.info.chatTemplates.includes('default')) return { chats: false, thinks: false }
  const render = thinking => model.renderChat([{ role: 'user', content: 'Hello' }], { thinking })
  try {
    return { chats: true, thinks: await render(true) !== await render(false) }
  } catch {
    return { chats: true, thinks: false } // the first answer's error says what is wrong with the template
  }
}

export class Chat {
  messages = []
  #conversation = new Conversation(byId('conversation'))
  #model = null
  #abilities
  #sampling
  #stream = null // the answer that is being written
  #writing = Promise.resolve()
  #failed = null // the part of an answer that an error ended
  #lastQuestion = null
  #changed
  #reload

  /** `changed` is called when what the controls may do has changed, `reload` where only loading the model again helps. */
  constructor({ changed, reload }) {
    this.#changed = changed
    this.#reload = reload
  }

  get answering() {
    return this.#stream !== null
  }

  get ready() {
    return this.#model !== null && !this.answering
  }

  /** Goes on with another model, or with none. */
  async use(model, abilities = null, sampling = {}) {
    this.stop()
    await this.#writing
    this.#model = model
    this.#abilities = abilities
    this.#sampling = sampling
    this.#changed()
  }

  /** A line between messages. */
  note(text) {
    this.#conversation.note(text)
  }

  stop() {
    this.#stream?.stop()
  }

  async ask(given) {
    const text = this.#abilities?.chats ? given.trim() : given
    if (!this.ready || text.trim() === '') return
    if (this.messages.at(-1)?.role === 'user') { // a question that failed is replaced by the new one
      this.messages.pop()
      this.#lastQuestion.remove()
    }
    this.messages.push({ role: 'user', content: text })
    this.#lastQuestion = this.#conversation.ask(text)
    await this.answer()
  }

  clear() {
    this.stop()
    this.messages = []
    this.#conversation.clear()
    hideProblem()
    this.#changed()
    byId('question').focus()
  }

  /** Answers the last question, once more where that failed. */
  answer() {
    this.#writing = this.#answer()
    return this.#writing
  }

  #start() {
    const { chats, thinks } = this.#abilities
    if (!chats) return this.#model.generate(this.messages.at(-1).content, this.#sampling)
    return this.#model.chat(this.messages, { ...this.#sampling, ...(thinks && { thinking: byId('thinking').checked }) })
  }

  async #answer() {
    hideProblem()
    this.#failed?.remove()
    this.#failed = null
    const asked = this.messages
    const reply = this.#conversation.answer()
    try {
      this.#stream = this.#start()
      this.#changed()
      announce('Answering')
      const result = await this.#write(reply)
      reply.finish([ENDINGS[result.finishReason], measuresInWords(result.timings)].filter(Boolean).join(' · '))
      const content = result.content ?? result.text
      asked.push({ role: 'assistant', content })
      announce(content || 'No answer')
    } catch (error) {
      reply.finish('')
      this.#failed = reply
      if (asked === this.messages) showProblem(problemInWords(error), this.#remedy(error))
    } finally {
      this.#stream = null
      this.#changed()
    }
  }

  /** Shows the pieces of the running stream as they come: those of a chat, or plain text. */
  async #write(reply) {
    const start = performance.now()
    let pieces = 0
    for await (const piece of this.#stream) {
      const { reasoning, content } = typeof piece === 'string' ? { content: piece } : piece
      if (reasoning) reply.think(reasoning)
      if (content) reply.say(content)
      pieces++
      const seconds = (performance.now() - start) / 1000
      if (seconds > 0.3) reply.measure(`${(pieces / seconds).toFixed(0)} tokens/s`)
    }
    return this.#stream.result()
  }

  /** What the button beside a failed answer does, and its name. */
  #remedy(error) {
    if (needsReload(error)) return { label: 'Load the model again', act: this.#reload }
    if (error?.code === 'context_overflow') return { label: 'New chat', act: () => this.clear() }
    return { label: 'Try again', act: () => this.answer() }
  }
}
