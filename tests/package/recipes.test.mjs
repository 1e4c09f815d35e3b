// Each recipe, built from the package's tarball as its reader would build it, and run where it is meant to run: it answers as Node.js does.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { launchChromium, launchChromiumWith } from '../support/browsers.mjs'
import { root } from '../support/golden.mjs'
import { startSite, watchedPage } from '../support/site.mjs'
import { makeProject } from './support/project.mjs'

const run = promisify(execFile)
const demo = join(root, 'models/demo')
let project, expected

before(async () => {
  project = makeProject()
  expected = await inNode('node/main.mjs')
})
after(() => project?.remove())

function recipe(name) {
  return join(project.folder, name)
}

async function inNode(script) {
  return JSON.parse((await run(process.execPath, [recipe(script), demo])).stdout)
}

/** What a recipe's page shows in its <output>. */
async function answerOf(page) {
  await page.waitForFunction(() => document.querySelector('output')?.value)
  return JSON.parse(await page.evaluate(() => document.querySelector('output').value))
}

function assertAnswersWithThreads(answer) {
  assert.deepEqual(answer.ids, expected.ids)
  assert.match(answer.content, /132/)
  assert.equal(answer.variant, 'relaxed', answer.why)
  assert.ok(answer.threads >= 2)
}

describe('in Node.js', () => {
  it('an ES module imports it', () => {
    assert.match(expected.content, /132/)
    assert.ok(expected.threads >= 2)
  })

  it('a CommonJS module requires it', async () => {
    const answer = await inNode('commonjs/main.cjs')
    assert.deepEqual([answer.ids, answer.threads], [expected.ids, expected.threads])
  })
})

/** Options that have Vite say nothing but what it warns of, which is gathered. */
async function viteLogger() {
  const { createLogger } = await import('vite')
  const warnings = []
  const gather = (text) => warnings.push(text)
  return { warnings, logLevel: 'warn', customLogger: { ...createLogger('silent'), warn: gather, warnOnce: gather, error: gather } }
}

/** The builds: each gives the folder to serve as the site's root, and what the bundler warned of. */
const BUILDS = {
  async vite() {
    const { build } = await import('vite')
    const { warnings, ...quiet } = await viteLogger()
    await build({ root: recipe('vite'), ...quiet })
    return { folder: recipe('vite/dist'), warnings }
  },
  async webpack() {
    const { default: webpack } = await import('webpack')
    const { default: config } = await import(join(recipe('webpack'), 'webpack.config.js'))
    const stats = await promisify(webpack)(config)
    cpSync(recipe('webpack/index.html'), recipe('webpack/dist/index.html'))
    const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true })
    return { folder: recipe('webpack/dist'), warnings: [...errors, ...warnings].map(({ message }) => message) }
  },
  async esbuild() {
    const { stdout, stderr } = await run(process.execPath, [recipe('esbuild/build.mjs')])
    return { folder: recipe('esbuild/dist'), warnings: [stdout, stderr].filter(Boolean) }
  },
  async script() {
    cpSync(join(project.qwasm, 'dist'), recipe('script/qwasm'), { recursive: true })
    return { folder: recipe('script'), warnings: [] }
  },
}

describe('in Chromium, under a strict content security policy,', () => {
  let browser
  before(async () => {
    browser = await launchChromium()
  })
  after(() => browser?.close())

  /** Opens an address in a new page, hands the page to `work`, and closes it; nothing may have gone wrong in it. */
  async function onPage(url, work) {
    const page = await watchedPage(browser)
    try {
      await page.goto(url)
      await work(page)
      assert.deepEqual(page.complaints.filter((text) => !text.includes('favicon.ico')), [])
    } finally {
      await page.close()
    }
  }

  /** The same at the root of a site over `folder`. */
  async function onSite(folder, options, work) {
    const site = await startSite({ mounts: { '/': folder }, ...options })
    try {
      await onPage(site.url, work)
    } finally {
      await site.close()
    }
  }

  for (const [name, build] of Object.entries(BUILDS)) {
    it(`a page made with ${name === 'script' ? 'no bundler' : name} answers on threads, and nothing warns`, async () => {
      const { folder, warnings } = await build()
      assert.deepEqual(warnings, [])
      await onSite(folder, {}, async (page) => assertAnswersWithThreads(await answerOf(page)))
    })
  }

  it('a page answers on threads even where the server does not know what a .wasm file is', async () => {
    const site = await startSite({ mounts: { '/': recipe('script') } })
    let renamed = 0
    site.server.prependListener('request', (request, response) => {
      if (!request.url.endsWith('.wasm')) return
      const { writeHead } = response
      response.writeHead = (status, headers) => writeHead.call(response, status, { ...headers, 'Content-Type': 'application/octet-stream' })
      renamed++
    })
    try {
      await onPage(site.url, async (page) => assertAnswersWithThreads(await answerOf(page)))
      assert.equal(renamed, 1)
    } finally {
      await site.close()
    }
  })

  it('a page that Vite serves while it is written does the same', async () => {
    const { createServer } = await import('vite')
    const { warnings, ...quiet } = await viteLogger()
    const models = await startSite()
    const server = await createServer({ root: recipe('vite'), ...quiet, server: { host: '127.0.0.1', port: 0, proxy: { '/models': models.url } } })
    try {
      await server.listen()
      await onPage(server.resolvedUrls.local[0], async (page) => {
        assertAnswersWithThreads(await answerOf(page))
        page.complaints = page.complaints.filter((text) => !text.includes('/models/')) // the demo has no chat_template.jinja: 404 there
      })
      assert.deepEqual(warnings, [])
    } finally {
      await server.close()
      await models.close()
    }
  })

  it('what Vite and webpack made has renamed files only', () => {
    for (const folder of ['vite/dist/assets', 'webpack/dist']) {
      const modules = readdirSync(recipe(folder)).filter((name) => /\.(wasm|mjs)$/.test(name))
      assert.equal(modules.length, 8, folder)
      assert.ok(modules.every((name) => !/^qwasm-(relaxed|simd)(-single)?\.(wasm|mjs)$/.test(name)), modules.join())
    }
  })

  it('a page on a static host without headers answers on threads, by the service worker', async () => {
    cpSync(join(project.qwasm, 'dist'), recipe('static-host/qwasm'), { recursive: true })
    cpSync(join(project.qwasm, 'dist/isolation.js'), recipe('static-host/isolation.js'))
    await onSite(recipe('static-host'), { isolation: false }, async (page) => {
      await page.waitForFunction(() => crossOriginIsolated)
      assertAnswersWithThreads(await answerOf(page))
    })
  })
})

describe('in a Chrome extension', () => {
  it('its page answers on threads', async () => {
    const folder = recipe('extension')
    cpSync(join(project.qwasm, 'dist'), join(folder, 'qwasm'), { recursive: true })
    const site = await startSite({ isolation: false })
    const context = await launchChromiumWith({ extension: folder, profile: recipe('profile') })
    try {
      const page = await watchedPage(context)
      await page.goto(`chrome-extension://${extensionId(folder)}/page.html?model=${site.url}models/demo/`)
      assertAnswersWithThreads(await answerOf(page))
      assert.deepEqual(page.complaints, [])
    } finally {
      await context.close()
      await site.close()
    }
  })
})

/** The id that Chromium gives to an unpacked extension: a hash of its path, in letters. */
function extensionId(folder) {
  const digits = createHash('sha256').update(folder).digest('hex').slice(0, 32)
  return digits.replace(/./g, (digit) => String.fromCharCode(97 + parseInt(digit, 16)))
}
