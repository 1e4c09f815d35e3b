// Files and folders that are dropped anywhere on the page, with a hint while they hover over it.
import { filesFromDrop } from './dist/browser.js'
import { byId } from './elements.js'

const bringsFiles = event => event.dataTransfer?.types.includes('Files')

/** Calls `take` with the promise of the dropped files. */
export function connectDrop(take) {
  const hint = byId('drop-hint')
  let inside = 0 // elements that the pointer entered and did not leave: leaving one for its child enters the child first
  const show = shown => {
    if (hint.matches(':popover-open') !== shown) hint.togglePopover(shown)
    if (!shown) inside = 0
  }
  addEventListener('dragenter', event => {
    if (!bringsFiles(event)) return
    inside++
    show(true)
  })
  addEventListener('dragleave', event => {
    if (bringsFiles(event) && --inside <= 0) show(false)
  })
  addEventListener('dragover', event => {
    if (!bringsFiles(event)) return
    event.preventDefault() // or the browser would open what is dropped in place of the page
    event.dataTransfer.dropEffect = 'copy'
  })
  addEventListener('drop', event => {
    if (!bringsFiles(event)) return
    event.preventDefault()
    show(false)
    take(filesFromDrop(event.dataTransfer))
  })
}
