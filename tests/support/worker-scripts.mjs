// Worker scripts for pages: the package's own, after a piece of code has run in the same thread. For `workerUrl`.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../js/support/models.mjs'

/** Writes a script per entry of name → code into a folder that is gone after the test file; to be mounted beside /dist/. */
export function writeWorkerScripts(codes) {
  const folder = temporaryFolder()
  for (const [name, code] of Object.entries(codes)) {
    // Imported one after the other, not awaited: a browser delivers messages as soon as a script has run to its first await.
    writeFileSync(join(folder, `${name}-first.js`), code)
    writeFileSync(join(folder, `${name}.js`), `import './${name}-first.js'\nimport '/dist/worker.browser.js'\n`)
  }
  return folder
}
