// Chromium on a blank page beside the package, for all tests of a file.
import { after, before } from 'node:test'
import { launchChromium } from './browsers.mjs'
import { startSite, watchedPage } from './site.mjs'

/** { browser, site, page }, there from before the first test to after the last. */
export function useBlankPage(siteOptions) {
  const used = {}
  before(async () => {
    used.browser = await launchChromium()
    used.site = await startSite(siteOptions)
    used.page = await watchedPage(used.browser)
    await used.page.goto(`${used.site.url}blank/`)
  })
  after(async () => {
    await used.browser?.close()
    await used.site?.close()
  })
  return used
}
