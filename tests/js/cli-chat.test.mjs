// `qwasm chat` as a conversation: through a pseudo-terminal as people have it, through the loop's own streams, and piped.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadModel } from '../../dist/node.js'
import { root } from '../support/golden.mjs'
import { demo, endlessDemo, temporaryFolder } from './support/models.mjs'
import { importSource } from './support/source.mjs'

const { ChatLoop } = await importSource('cli/chat-loop.ts')
const folder = temporaryFolder()

let model, endless
const endlessFolder = endlessDemo()
before(async () => {
  model = await loadModel(demo, { dtype: 'exact' })
  endless = await loadModel(endlessFolder, { dtype: 'exact' })
})
after(async () => {
  await model?.dispose()
  await endless?.dispose()
})

/** A conversation: type() sends keys, shown() waits for a text on the screen after what it found before, ended resolves at the end. */
function converse({ options = {}, ...more } = {}) {
  const input = new PassThrough()
  const output = new PassThrough({ highWaterMark: 1e6 })
  const screen = { text: '', read: 0 }
  output.on('data', (data) => (screen.text += data))
  const settings = { model, options: { temperature: 0, thinking: false, ...options }, input, output, errors: output, terminal: true, color: true, ...more }
  const ended = new ChatLoop(settings).run()
  const shown = async (wanted) => {
    for (let tries = 0; ; tries++) {
      const start = screen.text.indexOf(wanted, screen.read)
      if (start >= 0) return void (screen.read = start + wanted.length)
      assert.ok(tries < 1000, `There is no '${wanted}' in ${JSON.stringify(screen.text.slice(screen.read))}`)
      await sleep(5)
    }
  }
  /** Waits until an answer has begun. */
  const begun = async () => {
    while (screen.text.length < screen.read + 10) await sleep(5)
  }
  return { input, screen, ended, shown, begun, type: (keys) => input.write(keys) }
}

const CTRL_C = '\x03'
const UP = '\x1b[A'

describe('a conversation', () => {
  it('answers, remembers, and forgets on /reset', async () => {
    const { type, shown, ended } = converse()
    const path = join(folder, 'remembers.json')
    const messages = async () => {
      type(`/save ${path}\r`)
      await shown(' messages.')
      return JSON.parse(readFileSync(path, 'utf8')).messages
    }
    await shown('/help')
    type('What is 47 + 85?\r')
    await shown('132\n')
    type('Spell the word cat.\r')
    await shown('c-a-t\n')
    assert.deepEqual((await messages()).map(({ role }) => role), ['user', 'assistant', 'user', 'assistant'])
    type('/reset\r')
    await shown('new conversation')
    assert.deepEqual(await messages(), [])
    type('/quit\r')
    await ended
  })

  it('asks the model what it would be asked at once', async () => {
    const { type, shown, input, ended } = converse({ system: 'Answer briefly.' })
    type('Hi\r')
    await shown('story.\n')
    type('What is 2 + 3?\r')
    await shown('= 5')
    const path = join(folder, 'asks.json')
    type(`/save ${path}\r`)
    await shown(' messages.')
    input.end()
    await ended
    const { messages } = JSON.parse(readFileSync(path, 'utf8'))
    const { content } = await model.chat(messages.slice(0, -1), { temperature: 0, thinking: false }).result()
    assert.deepEqual(messages.at(-1), { role: 'assistant', content })
    assert.equal(messages[0].content, 'Answer briefly.')
  })

  it('shows thinking dimmed, when asked for it', async () => {
    const { type, shown } = converse()
    type('/think\r')
    await shown('thinks before')
    type('What is 7 + 5?\r')
    await shown('\x1b[2m')
    await shown('\x1b[22m\n\n')
    await shown('12\n')
    type('/nothink\r')
    await shown('without thinking')
    type('What is 1 + 1?\r')
    await shown('= 2\n')
    type('/quit\r')
  })

  it('takes a paste of several lines as one message, and a line that goes on after a backslash', async () => {
    const { type, shown, ended } = converse()
    const path = join(folder, 'lines.json')
    type('\x1b[200~What is\r7 + 5?\x1b[201~')
    type('\r')
    await shown('12\n')
    type('Add 3\\\r')
    await shown('… ')
    type('and 4.\r')
    await shown('7\n')
    type(`/save ${path}\r/quit\r`)
    await ended
    const { messages } = JSON.parse(readFileSync(path, 'utf8'))
    assert.deepEqual([messages[0].content, messages[2].content], ['What is\n7 + 5?', 'Add 3\nand 4.'])
  })

  it('has what was typed before on the arrow keys', async () => {
    const { type, shown, screen } = converse()
    type('What is 7 + 5?\r')
    await shown('12\n')
    type(`${UP}\r`)
    await shown('12\n')
    assert.equal(screen.text.split('= 12').length, 3)
    type('/quit\r')
  })

  it('stops an answer at Ctrl-C, keeps what there is of it, and ends at a second', async () => {
    const { type, shown, begun, ended } = converse({ model: endless })
    const path = join(folder, 'stopped.json')
    type('Tell me a story.\r')
    await shown('Tell me a story.\r\n')
    await begun()
    type(CTRL_C)
    type(`/save ${path}\r`)
    await shown(' 2 messages.')
    const [, { content }] = JSON.parse(readFileSync(path, 'utf8')).messages
    assert.ok(content.length > 0 && content.length < 4000, `${content.length} characters`)
    type(CTRL_C)
    await shown('again')
    type(CTRL_C)
    await ended
  })

  it('ends at two Ctrl-Cs amid an answer', async () => {
    const { type, shown, ended } = converse({ model: endless })
    type('Tell me a story.\r')
    await shown('Tell me a story.\r\n')
    type(CTRL_C + CTRL_C)
    await ended
  })

  it('saves and loads', async () => {
    const path = join(folder, 'saved.json')
    const first = converse()
    first.type('What is 7 + 5?\r')
    await first.shown('12\n')
    first.type(`/save ${path}\r/quit\r`)
    await first.ended
    const second = converse()
    second.type(`/load ${path}\r`)
    await second.shown(' 2 messages.')
    second.type(`/save ${path}.again\r/quit\r`)
    await second.ended
    assert.equal(readFileSync(`${path}.again`, 'utf8'), readFileSync(path, 'utf8'))
  })

  it('says what is wrong, and goes on', async () => {
    const { type, shown, ended } = converse()
    const path = join(folder, 'broken.json')
    const load = async (text, words) => {
      writeFileSync(path, text)
      type(`/load ${path}\r`)
      await shown(words)
    }
    await load('{', 'is not JSON')
    await load('{}', 'holds no conversation')
    await load('{"messages": [{"role": "cook"}]}', "'cook'")
    for (const [line, words] of [
      ['/sing', 'no command /sing'],
      ['/save', '/save takes a FILE'],
      [`/load ${folder}/nowhere.json`, 'ENOENT'],
      ['x '.repeat(6000), 'tokens'],
      ['/help', '/nothink'],
      ['What is 7 + 5?', '12\n'],
    ]) {
      type(`${line}\r`)
      await shown(words)
    }
    type('/quit\r')
    await ended
  })
})

describe('qwasm chat', () => {
  const cli = [join(root, 'dist/cli.js'), 'chat', '--temperature', '0', '--no-thinking', '--dtype', 'exact']

  /** Runs a command; `talk` gets its input and a function that waits for a text in its output. */
  async function run(command, args, talk) {
    const child = spawn(command, args, { stdio: 'pipe', timeout: 30_000 })
    let text = ''
    child.stdout.on('data', (data) => (text += data))
    child.stderr.on('data', (data) => (text += data))
    const ended = once(child, 'close').then(([code]) => code)
    const shown = async (words) => {
      while (!text.includes(words)) assert.equal(await Promise.race([once(child.stdout, 'data').then(() => 'data'), ended]), 'data', text)
    }
    await talk(child.stdin, shown)
    return { code: await ended, text: () => text }
  }

  it('converses on a terminal', async () => {
    const program = '/usr/bin/script' // of util-linux: runs a command in a pseudo-terminal
    assert.ok(existsSync(program), `${program} is missing: install bsdutils, which is a part of every Debian`)
    const log = join(folder, 'terminal.log')
    const { code, text } = await run(program, ['-qec', [process.execPath, ...cli].join(' '), log], async (stdin, shown) => {
      await shown('/help')
      stdin.write('What is 47 + 85?\r')
      await shown('= 132\r\n\x1b[1G') // the answer, and the beginning of the next prompt
      stdin.write(CTRL_C)
      await shown('again')
      stdin.write(CTRL_C)
    })
    assert.equal(code, 0)
    assert.ok(text().includes('\x1b[?2004h') && text().includes('\x1b[?2004l'))
  })

  it('takes each line as a message where it is told to, and gives the answers alone', async () => {
    const { code, text } = await run(process.execPath, [...cli, '--interactive'], async (stdin) => stdin.end('What is 7 + 5?\n\nWhat is 1 + 1?\n'))
    assert.equal(code, 0)
    assert.equal(text(), '7 + 5 = 12\n1 + 1 = 2\n')
  })

  it('takes all that is piped in as one message otherwise', async () => {
    const { text } = await run(process.execPath, cli, async (stdin) => stdin.end('What is\n7 + 5?'))
    const { content } = await model.chat([{ role: 'user', content: 'What is\n7 + 5?' }], { temperature: 0, thinking: false }).result()
    assert.ok(text().startsWith(`${content}\n`))
  })

  it('refuses a conversation with a message or as JSON', async () => {
    for (const more of [['--prompt', 'Hi'], ['--json']]) {
      const { code, text } = await run(process.execPath, [...cli, '--interactive', ...more], async (stdin) => stdin.end())
      assert.deepEqual([code, /--interactive/.test(text())], [2, true])
    }
  })
})
