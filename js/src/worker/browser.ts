// The worker's script in browsers.
import { openOpfs } from '../cache/opfs.js'
import { QwasmError } from '../errors.js'
import { FilesSource } from '../loader/files.js'
import { openUrl } from '../loader/open.js'
import { startHost } from './host.js'
import { holdLife } from './life.js'
import type { FromWorker } from './protocol.js'

// A message to itself comes after those that wait and costs nothing; a timer would cost milliseconds.
const { port1, port2 } = new MessageChannel()
const waiting: (() => void)[] = []
port1.onmessage = () => waiting.shift()?.()

holdLife(self.name, () => self.postMessage({ kind: 'holding' } satisfies FromWorker))
startHost({
  stays: true,
  post: (message, transfer = []) => self.postMessage(message, { transfer }),
  onMessage: (receive) => self.addEventListener('message', (event) => receive(event.data)),
  pause: () =>
    new Promise((resolve) => {
      waiting.push(resolve)
      port2.postMessage(0)
    }),
  openStore: openOpfs,
  openSource: (spec, gate) => {
    if (spec.kind === 'url') return openUrl(spec, gate)
    if (spec.kind === 'files') return new FilesSource(spec.files)
    throw new QwasmError('unsupported', `A browser cannot open the local folder ${spec.path}.`)
  },
  compile,
})

async function compile(url: string): Promise<WebAssembly.Module> {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`the server answered ${response.status}`)
  // Some servers name another type, and streaming accepts no other.
  const streams = response.headers.get('content-type')?.split(';')[0]?.trim() === 'application/wasm'
  return streams ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer())
}
