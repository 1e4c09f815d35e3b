// Chromium beside the demo page's server, for all tests of a file.
import { after, before } from 'node:test'
import { launchChromium } from './browsers.mjs'
import { startSite, watchedPage } from './site.mjs'

/** { browser, site }, there from before the first test to after the last. `prepare` belongs to the same hook: those of a file run side by side. */
export function useChromium(siteOptions, prepare = () => {}) {
  const used = {}
  before(async () => {
    used.browser = await launchChromium()
    used.site = await startSite(siteOptions)
    await prepare(used)
  })
  after(async () => {
    await used.browser?.close()
    await used.site?.close()
  })
  return used
}

/** The same with a `page`, the site's blank one. */
export function useBlankPage(siteOptions) {
  return useChromium(siteOptions, async used => {
    used.page = await watchedPage(used.browser)
    await used.page.goto(`${used.site.url}blank/`)
  })
}
