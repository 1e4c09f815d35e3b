// What is kept between calls: prefixes of several sequences, sessions of one's own, sessions as bytes, long conversations.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { demo, small, temporaryFolder } from './support/models.mjs'

const greedy = { temperature: 0, ignoreEos: true }
const numbers = (count, step) => Array.from({ length: count }, (_, i) => (i * step + 5) % 380)
const user = (content) => ({ role: 'user', content })
const assistant = (content) => ({ role: 'assistant', content })
const load = (options) => loadModel(demo, { dtype: 'q8', ...options })

let model
before(async () => (model = await load()))
after(() => model.dispose())
const cold = async (prompt, options) => {
  const fresh = await load()
  const { ids } = await fresh.generate(prompt, options).result()
  await fresh.dispose()
  return ids
}

describe('a prompt', () => {
  const next = (ids) => model.generate(ids, { ...greedy, maxTokens: 12 }).result()

  it('finds its beginning in whichever of several sequences has it: a chat keeps its own beside a side task', async () => {
    const chat = numbers(300, 7)
    const side = numbers(200, 11)
    await next(chat)
    await next(side)
    const second = await next([...chat, 1, 2, 3])
    assert.equal(second.timings.cachedTokens, 300)
    const other = await next([...side, 4])
    assert.equal(other.timings.cachedTokens, 200)
    const third = await next([...chat, 1, 2, 3, ...second.ids, 9])
    assert.equal(third.timings.cachedTokens, 303 + second.ids.length - 1, 'all but the last token drawn, which was not run')
    assert.deepEqual(third.ids, await cold([...chat, 1, 2, 3, ...second.ids, 9], { ...greedy, maxTokens: 12 }))
  })

  it('takes what it has in common with one that goes on: both are right', async () => {
    const base = numbers(250, 17)
    await next(base)
    const branches = [1, 2, 3, 4].map((id) => [...base.slice(0, 100), id])
    const results = await Promise.all(branches.map(next))
    for (const [i, { ids, timings }] of results.entries()) {
      assert.equal(timings.cachedTokens, 100)
      assert.deepEqual(ids, await cold(branches[i], { ...greedy, maxTokens: 12 }))
    }
    assert.equal((await next([...base, 8])).timings.cachedTokens, 250, 'and the first is still there')
  })

  it('is forgotten once others have filled the room', async () => {
    const narrow = await load({ contextLength: 300, maxParallel: 1 })
    const run = async (ids) => (await narrow.generate(ids, { ...greedy, maxTokens: 1 }).result()).timings.cachedTokens
    await run(numbers(200, 3))
    for (const step of [5, 7, 9]) await run(numbers(250, step))
    assert.ok((await run([...numbers(200, 3), 1])) < 100)
    await narrow.dispose()
  })

  it('of 1,000 tokens that are there runs what is new alone, and the tokens are those of a cold one', async () => {
    const prompt = numbers(1000, 19)
    const turn = [...prompt, ...numbers(20, 23)]
    await next(prompt)
    const { ids, timings } = await next(turn)
    assert.deepEqual([timings.cachedTokens, timings.prefillTokens], [1000, 20])
    assert.deepEqual(ids, await cold(turn, { ...greedy, maxTokens: 12 }))
  })
})

describe('a session of its own', () => {
  it('answers as the model does, and keeps its sequence whatever else runs', async () => {
    const prompt = numbers(120, 29)
    const session = await model.session()
    const { ids } = await session.generate(prompt, { ...greedy, maxTokens: 20 }).result()
    assert.deepEqual(ids, await cold(prompt, { ...greedy, maxTokens: 20 }))
    for (let step = 31; step < 60; step++) await model.generate(numbers(90, step), { ...greedy, maxTokens: 1 }).result()
    const { timings } = await session.generate([...prompt, ...ids, 3], { ...greedy, maxTokens: 2 }).result()
    assert.equal(timings.cachedTokens, 139)
    await session.dispose()
  })

  it('chats', async () => {
    const session = await model.session()
    const { content, timings } = await session.chat([user('What is 47 + 85?')], { temperature: 0 }).result()
    assert.match(content, /132/)
    assert.equal(timings.decodeTokens > 0, true)
    await session.dispose()
  })

  it('runs its calls one after the other, which holds up no others', async () => {
    const session = await model.session()
    const order = []
    const call = (of, name, maxTokens) =>
      of.generate('Once', { ...greedy, maxTokens }).result().then(() => order.push(name))
    await Promise.all([call(session, 'first', 60), call(session, 'second', 1), call(model, 'other', 2)])
    assert.deepEqual(order, ['other', 'first', 'second'])
    await session.dispose()
  })

  it('takes no call once it is disposed; those that ran end well', async () => {
    const session = await model.session()
    const running = session.generate('Once', { ...greedy, maxTokens: 20 }).result()
    await Promise.all([session.dispose(), session.dispose()])
    assert.equal((await running).ids.length, 20)
    await assert.rejects(session.generate('Once').result(), { code: 'disposed' })
    await assert.rejects(session.save(), { code: 'disposed' })
  })
})

describe('a saved session', () => {
  const prompt = numbers(270, 37)
  const more = (ids) => [...prompt, ...ids, 7, 8]
  let saved, ids, expected
  before(async () => {
    const session = await model.session()
    ids = (await session.generate(prompt, { ...greedy, maxTokens: 15 }).result()).ids
    saved = await session.save()
    expected = (await session.generate(more(ids), { ...greedy, maxTokens: 25 }).result()).ids
    await session.dispose()
  })

  it('goes on in another process with the same tokens', () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'session'), saved)
    const script = `
      import { readFileSync } from 'node:fs'
      import { loadModel } from ${JSON.stringify(new URL('../../dist/node.js', import.meta.url).href)}
      const model = await loadModel(${JSON.stringify(demo)}, { dtype: 'q8', threads: 1, contextLength: 1000 })
      const session = await model.session()
      await session.restore(readFileSync(${JSON.stringify(join(folder, 'session'))}))
      const { ids, timings } = await session.generate(${JSON.stringify(more(ids))}, { temperature: 0, ignoreEos: true, maxTokens: 25 }).result()
      console.log(JSON.stringify({ ids, cached: timings.cachedTokens }))
      await model.dispose()`
    const told = JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }))
    assert.deepEqual(told.ids, expected)
    assert.equal(told.cached, prompt.length + ids.length - 1)
  })

  it('takes the room of its tokens only', async () => {
    const perToken = model.info.kvBytesPerToken
    assert.ok(saved.length < (prompt.length + ids.length + 4) * perToken + 4000, `${saved.length} bytes`)
    const session = await model.session()
    assert.ok((await session.save()).length < 1000, 'an empty one')
    await session.restore(await session.save())
    await session.dispose()
  })

  it('of another model is refused with both names', async () => {
    for (const [source, options] of [
      [small, { dtype: 'q8' }],
      [demo, { dtype: 'q4' }],
      [demo, { dtype: 'q8', kv: 'q8' }],
    ]) {
      const other = await loadModel(source, options)
      const session = await other.session()
      await assert.rejects(session.restore(saved), (error) => {
        assert.equal(error.code, 'invalid_argument')
        const { identity } = other.info
        return error.message.includes(model.info.identity) && error.message.includes(identity) && error.message.includes('demo (')
      })
      await other.dispose()
    }
  })

  it('that needs a longer context is refused with both numbers', async () => {
    const narrow = await load({ contextLength: 200 })
    const session = await narrow.session()
    await assert.rejects(session.restore(saved), { code: 'context_overflow', message: /284.*200/ })
    await narrow.dispose()
  })

  it('that is cut anywhere, or damaged in any part, is refused, and the session is as it was', async () => {
    const session = await model.session()
    const own = numbers(40, 41)
    await session.generate(own, { ...greedy, maxTokens: 1 }).result()
    const header = 24 + new DataView(saved.buffer).getUint32(8, true)
    const cuts = [0, 1, 7, 8, 11, 15, 23, 24, 25, header - 1, header, header + 7, header + 8, header + 9, saved.length >> 1, saved.length - 1]
    for (const length of cuts) await assert.rejects(session.restore(saved.slice(0, length)), { code: 'invalid_file' }, `${length} bytes`)
    await assert.rejects(session.restore(new Uint8Array([...saved, 0])), { code: 'invalid_file' })
    for (const at of [0, 8, 16, 24, header - 2, header, header + 8, saved.length >> 1, saved.length - 1]) {
      const damaged = saved.slice()
      damaged[at] ^= 1
      await assert.rejects(session.restore(damaged), { code: 'invalid_file' }, `byte ${at}`)
    }
    for (const bytes of ['text', null, [1, 2]]) await assert.rejects(session.restore(bytes), { code: 'invalid_argument' })
    const { timings } = await session.generate([...own, 1], { ...greedy, maxTokens: 1 }).result()
    assert.equal(timings.cachedTokens, 40)
    await session.restore(saved)
    assert.deepEqual((await session.generate(more(ids), { ...greedy, maxTokens: 25 }).result()).ids, expected)
    await session.dispose()
  })
})

describe('tokenCount', () => {
  it('is the length of the prompt that chat runs', async () => {
    const messages = [user('What is 47 + 85?')]
    for (const options of [{}, { thinking: false }, { addGenerationPrompt: false }])
      assert.equal(await model.tokenCount(messages, options), (await model.encodeChat(messages, options)).length)
    await assert.rejects(model.tokenCount([]), { code: 'invalid_argument' })
    await assert.rejects(model.tokenCount(messages, { think: true }), { code: 'invalid_argument', message: /tokenCount.*think/ })
  })
})

describe('a conversation that is too long', () => {
  let narrow
  before(async () => (narrow = await load({ contextLength: 200 })))
  after(() => narrow.dispose())
  const system = { role: 'system', content: 'You are short.' }
  const turns = (count) => Array.from({ length: count }, (_, i) => [user(`What is ${i} + 1?`), assistant(`It is ${i + 1}.`)]).flat()
  const chat = (messages, options) => narrow.chat(messages, { temperature: 0, maxTokens: 10, ...options }).result()

  it('is an error with both numbers', async () => {
    const messages = [...turns(40), user('What is 3 + 4?')]
    const count = await narrow.tokenCount(messages)
    await assert.rejects(chat(messages), (error) => {
      assert.equal(error.code, 'context_overflow')
      return error.message.includes(String(count)) && error.message.includes('200')
    })
  })

  it('slides where that is asked: the oldest turns go, system and last question stay', async () => {
    const last = user('What is 3 + 4?')
    for (const head of [[], [system]]) {
      const messages = [...head, ...turns(40), last]
      const result = await chat(messages, { overflow: 'slide' })
      assert.ok(result.droppedMessages > 0 && result.droppedMessages % 2 === 0)
      const kept = [...head, ...messages.slice(head.length + result.droppedMessages)]
      assert.deepEqual(result.promptIds, await narrow.encodeChat(kept))
      assert.ok(result.promptIds.length <= 190)
      const oneMore = [...head, ...messages.slice(head.length + result.droppedMessages - 2)]
      assert.ok((await narrow.tokenCount(oneMore)) > 190, 'no more than must')
    }
  })

  it('that fits loses nothing', async () => {
    const result = await chat([system, ...turns(2), user('What is 3 + 4?')], { overflow: 'slide' })
    assert.equal(result.droppedMessages, 0)
  })

  it('whose last turn alone is too much is an error', async () => {
    const huge = user('What is 3 + 4? '.repeat(60))
    await assert.rejects(chat([system, ...turns(3), huge], { overflow: 'slide' }), { code: 'context_overflow' })
    await assert.rejects(chat([huge], { overflow: 'slide' }), { code: 'context_overflow' })
    await assert.rejects(chat([], { overflow: 'slide' }), { code: 'invalid_argument' })
  })
})
