// The worker's script under Node.js.
import { readFile } from 'node:fs/promises'
import { parentPort } from 'node:worker_threads'
import { openNodeStore } from '../cache/node-store.js'
import { FilesSource } from '../loader/files.js'
import { openFolder } from '../loader/node-folder.js'
import { openUrl } from '../loader/open.js'
import { startHost } from './host.js'

const port = parentPort!

startHost({
  stays: false,
  post: (message, transfer = []) => port.postMessage(message, transfer),
  onMessage: (receive) => port.on('message', receive),
  // Not by a message channel: Node.js takes up to 1,000 messages of one port before it looks at another.
  pause: () => new Promise((resolve) => setImmediate(resolve)),
  openStore: () => openNodeStore(),
  openSource: (spec, gate) => {
    if (spec.kind === 'url') return openUrl(spec, gate)
    if (spec.kind === 'files') return new FilesSource(spec.files)
    return openFolder(spec.path)
  },
  compile: async (url) => WebAssembly.compile(await readFile(new URL(url))),
})
