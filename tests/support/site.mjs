// The demo page's server for tests: with a blank page and the golden models beside the page, and with a watch over what goes wrong.
import { request } from 'node:http'
import { join } from 'node:path'
import { PAGE_MOUNTS, startServer } from '../../scripts/serve.mjs'
import { root } from './golden.mjs'

/** Starts the server; `mounts` adds to or replaces the page's own folders and may be changed while it runs. */
export async function startSite({ mounts = {}, ...options } = {}) {
  const all = { ...PAGE_MOUNTS, '/blank/': join(root, 'tests/support/blank'), '/tests/golden/': join(root, 'tests/golden'), ...mounts }
  return { ...await startServer({ mounts: all, ...options }), mounts: all }
}

/** Lets another server answer for all that lies under a prefix of the site's, so that a page's policy takes it for the site's own. */
export function putBehind(site, prefix, url) {
  const [own] = site.server.listeners('request')
  site.server.off('request', own).on('request', (asked, response) => {
    if (!asked.url.startsWith(prefix)) return own(asked, response)
    const passed = request(new URL(asked.url.slice(prefix.length), url), { method: asked.method, headers: asked.headers }, answer => {
      // The site's headers, without which an isolated page takes nothing.
      response.writeHead(answer.statusCode, { ...answer.headers, 'Cross-Origin-Resource-Policy': 'same-origin' })
      answer.on('error', () => response.destroy())
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    response.on('close', () => passed.destroy())
    passed.end()
  })
}

/** A new Chromium page whose console errors, uncaught errors and policy violations are gathered in `page.complaints`. */
export async function watchedPage(browser, options) {
  const page = await browser.newPage(options)
  page.complaints = []
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') page.complaints.push(`${message.text()} (${message.location().url})`)
  })
  page.on('pageerror', error => page.complaints.push(String(error)))
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', event => console.error(`policy violated: ${event.effectiveDirective} ${event.blockedURI}`))
  })
  return page
}
