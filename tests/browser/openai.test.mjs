// OpenAI's interface in a page: to a model of the page itself, and to `qwasm serve` from a page of another origin.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { demo } from '../js/support/models.mjs'
import { importSource } from '../js/support/source.mjs'
import { useBlankPage } from '../support/chromium.mjs'

const { ApiServer, DEFAULT_SETTINGS } = await importSource('server/server.ts')

const chromium = useBlankPage({ policy: null }) // the page's own policy lets it read from https only
let model
const request = { messages: [{ role: 'user', content: 'What is 47 + 85?' }], temperature: 0, reasoning_effort: 'none', stream: true }

before(async () => {
  model = await loadModel(demo, { dtype: 'exact' })
})
after(async () => {
  await model?.dispose()
})

describe('OpenAI’s interface in Chromium', () => {
  it('streams from a model of the page what the model says under Node.js', async () => {
    const chunks = await chromium.page.evaluate(async (request) => {
      const { loadModel } = await import('/dist/browser.js')
      const { createOpenAI } = await import('/dist/openai.js')
      const model = await loadModel('/models/demo/', { dtype: 'exact' })
      const chunks = []
      for await (const chunk of await createOpenAI(model).chat.completions.create(request)) chunks.push(chunk)
      await model.dispose()
      return chunks
    }, request)
    const own = await model.chat(request.messages, { temperature: 0, thinking: false }).result()
    assert.equal(chunks.map(({ choices }) => choices[0].delta.content ?? '').join(''), own.content)
    assert.equal(chunks.at(-1).choices[0].finish_reason, 'stop')
    assert.equal(chunks[0].model, 'demo')
  })

  it('is reached over HTTP by pages of the origin that the server was told of, and by no others', async () => {
    const ask = async (cors) => {
      const server = new ApiServer(model, { ...DEFAULT_SETTINGS, port: 0, cors, apiKey: 'secret' })
      const base = await server.listen()
      const headers = { 'Content-Type': 'application/json', Authorization: 'Bearer secret' }
      const init = { method: 'POST', headers, body: JSON.stringify(request) }
      const answer = await chromium.page.evaluate(([url, init]) => fetch(url, init).then((r) => r.text(), String), [`${base}/chat/completions`, init])
      await server.stop(0)
      return answer
    }
    assert.match(await ask(new URL(chromium.site.url).origin), /\n\ndata: \[DONE\]\n\n$/)
    assert.match(await ask('https://other.example'), /TypeError/)
  })
})
