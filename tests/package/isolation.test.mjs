// The service worker that isolates pages on hosts without headers: in each browser, and where it must leave things alone.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import { launchChromium, launchFirefox, launchWebKit } from '../support/browsers.mjs'
import { root } from '../support/golden.mjs'

const PAGE = '<!doctype html><title>A static host</title><script src="isolation.js"></script><p>here</p>'
const SCRIPT = readFileSync(join(root, 'dist/isolation.js'), 'utf8')

/** A host that adds `headers`, if any: the page, another with it in a frame, the script, a worker with a worker of its own, and an echo. */
async function startHost({ headers = {} } = {}) {
  const requests = []
  const routes = {
    '/': () => ['text/html', PAGE],
    '/framing': () => ['text/html', '<!doctype html><iframe src="/"></iframe>'],
    '/isolation.js': () => ['text/javascript', host.script],
    '/worker.js': () => ['text/javascript', "new Worker('inner.js').onmessage = ({ data }) => postMessage([self.crossOriginIsolated, data])"],
    '/inner.js': () => ['text/javascript', 'postMessage(self.crossOriginIsolated)'],
    '/echo': (request) => ['text/plain', `${request.method} ${request.headers.range ?? 'all'}`],
  }
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    if (request.url === '/moved') return response.writeHead(302, { Location: '/' }).end()
    const route = routes[request.url]
    if (!route) return response.writeHead(404, headers).end()
    const [type, body] = route(request)
    response.writeHead(200, { 'Content-Type': type, ...headers }).end(body)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => new Promise((resolve) => {
    server.close(resolve)
    server.closeAllConnections()
  })
  const navigations = () => requests.filter((request) => request === 'GET /').length
  const host = { url: `http://127.0.0.1:${server.address().port}/`, script: SCRIPT, navigations, close }
  return host
}

const BROWSERS = {
  async Chromium() {
    const browser = await launchChromium()
    const page = await browser.newPage()
    return { goto: (url) => page.goto(url), evaluate: (code) => page.evaluate(asFunction(code)), close: () => browser.close() }
  },
  async Firefox() {
    const browser = await launchFirefox()
    const page = await browser.newPage()
    return { goto: (url) => page.goto(url), evaluate: (code) => page.evaluate(asFunction(code)), close: () => browser.close() }
  },
  async WebKit() {
    const page = await launchWebKit()
    return { goto: (url) => page.goto(url), evaluate: (code) => page.evaluate(code), close: () => page.close() }
  },
}
const asFunction = (code) => `(() => { ${code} })()`

/** Asks until the page says yes; a page that reloads meanwhile answers with an error. */
async function until(browser, code) {
  for (const end = Date.now() + 20_000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 100))) {
    const value = await browser.evaluate(code).catch(() => undefined)
    if (value) return value
  }
  throw new Error(`Still not so after 20 s: ${code}`)
}

for (const [name, launch] of Object.entries(BROWSERS)) {
  describe(`isolation.js in ${name}`, () => {
    let browser, host
    before(async () => {
      host = await startHost()
      browser = await launch()
    })
    after(async () => {
      await browser?.close()
      await host?.close()
    })

    it('reloads the page once, and it is isolated', async () => {
      await browser.goto(host.url)
      await until(browser, 'return self.crossOriginIsolated && document.readyState === "complete"')
      assert.equal(host.navigations(), 2)
    })

    it('isolates workers and their workers', async () => {
      await browser.evaluate('new Worker("worker.js").onmessage = ({ data }) => { self.answer = data }')
      assert.deepEqual(await until(browser, 'return self.answer'), [true, true])
    })

    it('leaves other requests as they are', async () => {
      await browser.evaluate(`Promise.all([
        fetch('echo', { headers: { Range: 'bytes=2-3' } }), fetch('echo', { method: 'POST', body: 'x' }), fetch('missing'), fetch('worker.js'),
      ]).then(async (all) => {
        const [range, post, missing, script] = all
        self.echoes = [await range.text(), await post.text(), missing.status, all.some(({ headers }) => headers.has('cross-origin-embedder-policy'))]
      })`)
      assert.deepEqual(await until(browser, 'return self.echoes'), ['GET bytes=2-3', 'POST all', 404, false])
    })

    it('does nothing on the next visit, and follows redirects', async () => {
      const before = host.navigations()
      await browser.goto(`${host.url}moved`)
      await until(browser, 'return self.crossOriginIsolated && location.pathname === "/" && document.readyState === "complete"')
      await new Promise((resolve) => setTimeout(resolve, 300))
      assert.equal(host.navigations(), before + 1)
    })
  })
}

describe('isolation.js', () => {
  let browser, host, page
  before(async () => {
    browser = await launchChromium()
  })
  after(() => browser?.close())
  afterEach(() => host.close())

  /** Opens a page of a host in a profile of its own. */
  async function open(path, options) {
    host = await startHost(options)
    page = await (await browser.newContext()).newPage()
    await page.goto(host.url + path)
  }

  /** Waits about three times as long as a registration and a reload take. */
  const settled = () => page.waitForTimeout(1000)

  it('does nothing where the host itself isolates', async () => {
    await open('', { headers: { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' } })
    await settled()
    assert.deepEqual(await page.evaluate(async () => [crossOriginIsolated, (await navigator.serviceWorker.getRegistrations()).length]), [true, 0])
    assert.equal(host.navigations(), 1)
  })

  it('does nothing in a frame, whose page decides', async () => {
    await open('framing')
    await settled()
    assert.equal(await page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length), 0)
    assert.equal(host.navigations(), 1)
  })

  it('reloads once only where the service worker is passed by, as developer tools can', async () => {
    host = await startHost()
    page = await browser.newPage()
    const tools = await page.context().newCDPSession(page)
    await tools.send('Network.enable')
    await tools.send('Network.setBypassServiceWorker', { bypass: true })
    await page.goto(host.url)
    await settled()
    assert.equal(host.navigations(), 2)
    assert.equal(await page.evaluate(() => crossOriginIsolated), false)
  })

  it('lets a new version of itself take over without a reload', async () => {
    await open('')
    await page.waitForFunction(() => crossOriginIsolated)
    const before = host.navigations()
    host.script = `${SCRIPT}\nself.addEventListener('message', ({ source }) => source.postMessage('new'))`
    const answer = await page.evaluate(async () => {
      const changed = new Promise((resolve) => navigator.serviceWorker.addEventListener('controllerchange', resolve, { once: true }))
      await (await navigator.serviceWorker.ready).update()
      await changed
      const answered = new Promise((resolve) => navigator.serviceWorker.addEventListener('message', ({ data }) => resolve(data), { once: true }))
      navigator.serviceWorker.startMessages()
      navigator.serviceWorker.controller.postMessage('which are you?')
      return answered
    })
    assert.equal(answer, 'new')
    assert.equal(host.navigations(), before)
  })
})
