// A conversation on a terminal: messages in, answers out as they come, and commands that begin with a slash.
import { readFile, writeFile } from 'node:fs/promises'
import { createInterface, type Interface } from 'node:readline'
import { Writable, type Readable } from 'node:stream'
import type { ChatOptions, ChatStream, Message, Model } from '../types.js'

export interface ChatLoopOptions {
  model: Model
  options: ChatOptions
  system?: string | undefined
  input: Readable
  /** Where answers go; and on a terminal all else too. */
  output: Writable & { columns?: number }
  errors: Writable
  /** Whether a person sits there: prompts, keys, thinking. Else each line is a message, and answers alone are written. */
  terminal: boolean
  /** Whether thinking may be dimmed. */
  color: boolean
}

interface Command {
  help: string
  /** What must follow it. */
  takes?: string
  run(argument: string): Promise<void> | void
}

const PROMPT = '> '
const GOES_ON = '… '
/** Asks the terminal to tell where a paste begins and ends. */
const PASTE = { on: '\x1b[?2004h', off: '\x1b[?2004l' }
const DIM = { on: '\x1b[2m', off: '\x1b[22m' }

export class ChatLoop {
  readonly #given: ChatLoopOptions
  readonly #readline: Interface
  readonly #waiting: string[] = []
  #wake = () => {}
  #messages: Message[]
  #thinking: boolean | undefined
  /** Lines of a message that goes on: of a paste, or ended with a backslash. */
  #lines: string[] = []
  #pasting = false
  #answer: ChatStream | undefined
  /** Ctrl-C was pressed, and nothing was sent since. */
  #interrupted = false
  #ended = false

  constructor(given: ChatLoopOptions) {
    const { input, output, terminal, options } = given
    this.#given = given
    this.#messages = this.#beginning()
    this.#thinking = options.thinking
    this.#readline = createInterface({ input, ...(terminal && { output: this.#echo(output) }), terminal, prompt: PROMPT })
    this.#readline.on('line', (line) => this.#take(line))
    this.#readline.on('close', () => this.#end())
    this.#readline.on('SIGINT', () => this.#interrupt())
    if (terminal) input.on('keypress', this.#noticePaste)
  }

  /** Holds the conversation; resolves when the input ends, and with /quit or a second Ctrl-C. */
  async run(): Promise<void> {
    const { terminal, input, model } = this.#given
    if (terminal) this.#write(`${PASTE.on}${model.info.source}. /help tells the commands.\n`)
    try {
      for (let text = await this.#next(); text !== undefined; text = await this.#next()) await this.#handle(text)
    } finally {
      if (terminal) this.#write(`${PASTE.off}\n`)
      input.off('keypress', this.#noticePaste)
      this.#readline.close()
    }
  }

  readonly #commands: Readonly<Record<string, Command>> = {
    help: { help: 'tells the commands', run: () => this.#say(this.#helpText()) },
    reset: { help: 'begins a new conversation', run: () => this.#reset() },
    think: { help: 'asks for thinking', run: () => this.#think(true) },
    nothink: { help: 'asks for none', run: () => this.#think(false) },
    save: { takes: 'FILE', help: 'writes the conversation as JSON', run: (path) => this.#save(path) },
    load: { takes: 'FILE', help: 'goes on with one that was saved', run: (path) => this.#load(path) },
    quit: { help: 'ends, as Ctrl-D does', run: () => this.#end() },
  }

  /** What readline shows is kept out of a running answer; what is typed meanwhile is shown after it. */
  #echo(output: ChatLoopOptions['output']): Writable {
    const write = (chunk: unknown, _encoding: string, done: () => void) => {
      if (!this.#answer) output.write(chunk)
      done()
    }
    return Object.defineProperty(new Writable({ write, decodeStrings: false }), 'columns', { get: () => output.columns })
  }

  readonly #noticePaste = (_text: unknown, key?: { name?: string }) => {
    if (key?.name === 'paste-start') this.#pasting = true
    if (key?.name === 'paste-end') this.#pasting = false
  }

  #take(line: string): void {
    const goesOn = this.#given.terminal && (this.#pasting || line.endsWith('\\'))
    this.#lines.push(goesOn && !this.#pasting ? line.slice(0, -1) : line)
    if (goesOn) return this.#prompt(GOES_ON)
    this.#waiting.push(this.#lines.join('\n'))
    this.#lines = []
    this.#interrupted = false
    this.#wake()
  }

  /** The next message; undefined at the end. */
  async #next(): Promise<string | undefined> {
    if (this.#waiting.length === 0 && !this.#ended) {
      this.#prompt(PROMPT)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    return this.#waiting.shift()
  }

  #prompt(text: string): void {
    if (!this.#given.terminal || this.#ended || this.#pasting) return
    this.#readline.setPrompt(text)
    this.#readline.prompt(true)
  }

  /** The first Ctrl-C stops the answer, or gives up the line; the second ends the conversation. */
  #interrupt(): void {
    if (this.#interrupted) {
      this.#waiting.length = 0
      this.#answer?.stop()
      return this.#end()
    }
    this.#interrupted = true
    if (this.#answer) return this.#answer.stop()
    this.#lines = []
    this.#readline.write(null, { ctrl: true, name: 'e' }) // to the line's end, then back to its beginning
    this.#readline.write(null, { ctrl: true, name: 'u' })
    this.#say('\n(Ctrl-C again ends.)')
    this.#prompt(PROMPT)
  }

  #end(): void {
    this.#ended = true
    this.#wake()
  }

  async #handle(text: string): Promise<void> {
    if (text.trim() === '') return
    const [, name, argument = ''] = /^\/(\S*) *(.*)$/.exec(text) ?? []
    try {
      if (name === undefined) await this.#send(text)
      else await this.#command(name, argument.trim())
    } catch (error) {
      this.#say(error instanceof Error ? error.message : String(error))
    }
  }

  async #command(name: string, argument: string): Promise<void> {
    const command = Object.hasOwn(this.#commands, name) ? this.#commands[name] : undefined
    if (!command) return this.#say(`There is no command /${name}; /help tells those there are.`)
    if (command.takes && argument === '') return this.#say(`/${name} takes a ${command.takes}.`)
    await command.run(argument)
  }

  /** A message that gets no answer is taken back, so that the conversation stays one. */
  async #send(content: string): Promise<void> {
    const { model, options } = this.#given
    const messages: Message[] = [...this.#messages, { role: 'user', content }]
    const thinking = this.#thinking !== undefined && { thinking: this.#thinking }
    this.#answer = model.chat(messages, { ...options, ...thinking })
    try {
      await this.#show(this.#answer)
      const { content, reasoning } = await this.#answer.result()
      if (content === '') return
      this.#messages = [...messages, { role: 'assistant', content, ...(reasoning !== '' && { reasoning_content: reasoning }) }]
    } finally {
      this.#answer = undefined
    }
  }

  async #show(answer: ChatStream): Promise<void> {
    const { terminal, color } = this.#given
    const dim = color ? DIM : { on: '', off: '' }
    let thought = false
    for await (const { reasoning, content } of answer) {
      if (reasoning !== undefined && terminal) this.#write(dim.on + reasoning + dim.off)
      if (content !== undefined) this.#write((thought && terminal ? '\n\n' : '') + content)
      thought = reasoning !== undefined
    }
    this.#write('\n')
  }

  #beginning(): Message[] {
    const { system } = this.#given
    return system === undefined ? [] : [{ role: 'system', content: system }]
  }

  #reset(): void {
    this.#messages = this.#beginning()
    this.#say('A new conversation begins.')
  }

  #think(thinking: boolean): void {
    this.#thinking = thinking
    this.#say(thinking ? 'The model thinks before it answers.' : 'The model answers without thinking.')
  }

  async #save(path: string): Promise<void> {
    const saved = { model: this.#given.model.info.source, thinking: this.#thinking ?? null, messages: this.#messages }
    await writeFile(path, `${JSON.stringify(saved, null, 2)}\n`)
    this.#say(`${path}: ${this.#messages.length} messages.`)
  }

  async #load(path: string): Promise<void> {
    const text = await readFile(path, 'utf8')
    let saved: { messages?: unknown; thinking?: unknown } | null
    try {
      saved = JSON.parse(text)
    } catch {
      return this.#say(`${path} is not JSON.`)
    }
    if (!Array.isArray(saved?.messages)) return this.#say(`${path} holds no conversation: a list of messages is missing.`)
    await this.#given.model.renderChat(saved.messages) // throws where they are none
    this.#messages = saved.messages
    this.#thinking = typeof saved.thinking === 'boolean' ? saved.thinking : undefined
    this.#say(`${path}: ${this.#messages.length} messages.`)
  }

  #helpText(): string {
    const lines = Object.entries(this.#commands).map(([name, { takes = '', help }]) => `  ${`/${name} ${takes}`.padEnd(12)} ${help}`)
    return [...lines, '  A backslash at the end of a line lets the message go on; pasted lines are one message.', '  Ctrl-C stops an answer.'].join('\n')
  }

  #write(text: string): void {
    this.#given.output.write(text)
  }

  #say(line: string): void {
    const { terminal, output, errors } = this.#given
    const to = terminal ? output : errors
    to.write(`${line}\n`)
  }
}
