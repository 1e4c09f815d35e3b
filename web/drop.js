// Files and folders that are dropped anywhere on the page, with a hint while they hover over it.
import { filesFromDrop } from './dist/browser.js'
import { byId } from './elements.js'

// While a drag hovers, browsers say so every 50 to 550 ms, wherever it is. Silence says surely that it left or was given up; dragleave does
// not, for it comes between elements too, and Chromium leaves it out where a drag is cancelled.
const SILENCE_MS = 800

const bringsFiles = event => event.dataTransfer?.types.includes('Files')

/** Calls `take` with the promise of the dropped files. */
export function connectDrop(take) {
  const hint = byId('drop-hint')
  let silence = 0
  const show = shown => {
    clearTimeout(silence)
    if (shown) silence = setTimeout(show, SILENCE_MS, false)
    if (hint.matches(':popover-open') !== shown) hint.togglePopover(shown)
  }
  for (const type of ['dragenter', 'dragover']) {
    addEventListener(type, event => {
      if (!bringsFiles(event)) return
      event.preventDefault() // or the browser would open what is dropped in place of the page
      event.dataTransfer.dropEffect = 'copy'
      show(true)
    })
  }
  addEventListener('drop', event => {
    if (!bringsFiles(event)) return
    event.preventDefault()
    show(false)
    take(filesFromDrop(event.dataTransfer))
  })
}
