// Starts real browsers for tests and ends every process that was started.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

function programPath(name, variable, usual) {
  const path = process.env[variable] ?? usual
  if (!existsSync(path)) throw new Error(`${name} is not at ${path}: install it, or set ${variable} to where it is.`)
  return path
}

const chromiumPath = () => programPath('Chromium', 'QWASM_CHROMIUM', '/usr/bin/chromium')
const CHROMIUM_ARGUMENTS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync',
]

/** Chromium through Playwright: a Browser. `more`: switches beside the usual ones. */
export function launchChromium(...more) {
  return chromium.launch({ executablePath: chromiumPath(), args: [...CHROMIUM_ARGUMENTS, ...more] })
}

/** Chromium with a profile of its own, which stays: Playwright's BrowserContext. */
export function launchChromiumOn(profile) {
  return chromium.launchPersistentContext(profile, { executablePath: chromiumPath(), args: CHROMIUM_ARGUMENTS })
}

/** Kills every process of the Chromium that runs on a profile, at once. */
export async function killChromiumOf(profile) {
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      if (command.includes(`--user-data-dir=${profile}`)) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // it ended by itself meanwhile
    }
  }
}

/** Chromium with an unpacked extension, whose folder is given, and a profile of its own: Playwright's BrowserContext. */
export function launchChromiumWith({ extension, profile }) {
  const only = [`--disable-extensions-except=${extension}`, `--load-extension=${extension}`]
  // Playwright's own way of being headless has no extensions.
  return chromium.launchPersistentContext(profile, {
    executablePath: chromiumPath(),
    headless: false,
    ignoreDefaultArgs: ['--disable-extensions'],
    args: [...CHROMIUM_ARGUMENTS, '--headless=new', ...only],
  })
}

/** Firefox through WebDriver BiDi: Puppeteer's Browser. */
export async function launchFirefox() {
  const { default: puppeteer } = await import('puppeteer-core')
  return puppeteer.launch({ browser: 'firefox', executablePath: programPath('Firefox', 'QWASM_FIREFOX', '/usr/bin/firefox-esr'), headless: true })
}

function freePort() {
  return new Promise(resolve => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** Starts a program as the head of its own process group, so that `end` reaches its children too. */
function start(command, args, { env = {}, stdio = 'ignore' } = {}) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio, detached: true })
  child.on('error', () => {})
  const ended = new Promise(resolve => child.on('close', resolve))
  const end = async () => {
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      // The whole group is gone already.
    }
    await ended
  }
  return { child, end }
}

/** An X server on a display that is free: { display, end }. */
async function startXvfb() {
  const xvfb = start('Xvfb', ['-displayfd', '3', '-screen', '0', '1024x768x24', '-nolisten', 'tcp'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
  const number = await new Promise((resolve, reject) => {
    xvfb.child.stdio[3].once('data', data => resolve(String(data).trim()))
    xvfb.child.once('error', reject)
    xvfb.child.once('close', () => reject(new Error('Xvfb ended before it named its display')))
  })
  return { display: `:${number}`, end: xvfb.end }
}

function miniBrowserPath() {
  for (const folder of existsSync('/usr/lib') ? readdirSync('/usr/lib') : []) {
    const path = join('/usr/lib', folder, 'webkit2gtk-4.1/MiniBrowser')
    if (existsSync(path)) return path
  }
  throw new Error('WebKit’s MiniBrowser is not under /usr/lib: install webkit2gtk-driver.')
}

class WebKitPage {
  constructor(base, ends) {
    this.base = base
    this.ends = ends
  }

  async call(method, path, body) {
    const answer = await fetch(this.base + path, { method, body: body && JSON.stringify(body), signal: AbortSignal.timeout(60_000) })
    const { value } = await answer.json()
    if (!answer.ok) throw new Error(`WebKit: ${value?.error}: ${value?.message}`)
    return value
  }

  goto(url) {
    return this.call('POST', '/url', { url })
  }

  /** Runs the body of a function in the page. */
  evaluate(script, ...args) {
    return this.call('POST', '/execute/sync', { script, args })
  }

  /** Waits until the body of a function gives something true. */
  async waitFor(script, timeout = 60_000) {
    for (const end = Date.now() + timeout; Date.now() < end; await new Promise(resolve => setTimeout(resolve, 100))) {
      const value = await this.evaluate(script)
      if (value) return value
    }
    throw new Error(`WebKit: still not true after ${timeout} ms: ${script}`)
  }

  async close() {
    await this.call('DELETE', '').catch(() => {})
    for (const end of this.ends) await end()
  }
}

/** WebKitGTK's MiniBrowser through plain WebDriver, on an X server of its own. */
export async function launchWebKit() {
  const binary = miniBrowserPath()
  const xvfb = await startXvfb()
  const port = await freePort()
  const driver = start(programPath('WebKitWebDriver', 'QWASM_WEBKIT_DRIVER', '/usr/bin/WebKitWebDriver'), [`--port=${port}`], {
    env: { DISPLAY: xvfb.display, WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1' },
  })
  const page = new WebKitPage(`http://127.0.0.1:${port}/session`, [driver.end, xvfb.end])
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        const capabilities = { alwaysMatch: { 'webkitgtk:browserOptions': { binary, args: ['--automation'] } } }
        const { sessionId } = await page.call('POST', '', { capabilities })
        page.base += `/${sessionId}`
        return page
      } catch (error) {
        if (attempt >= 50 || error.cause?.code !== 'ECONNREFUSED') throw error
        await new Promise(resolve => setTimeout(resolve, 100)) // the driver is still starting
      }
    }
  } catch (error) {
    for (const end of page.ends) await end()
    throw error
  }
}
