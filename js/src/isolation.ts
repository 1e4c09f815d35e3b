// Gives a page threads on a static host whose headers cannot be set: one file that is the page's script and the service worker it registers.
// The service worker adds the headers of cross-origin isolation to documents and worker scripts; a browser then offers SharedArrayBuffer.
// A script of the old kind: <script src="isolation.js"></script>, first in <head>, with the file in the page's folder or one above it.

/** What a service worker's global has beyond a page's; TypeScript's DOM library knows pages only. */
interface ServiceWorkerScope {
  skipWaiting(): Promise<void>
  addEventListener(type: 'install', listener: () => void): void
  addEventListener(type: 'fetch', listener: (event: FetchEvent) => void): void
}

interface FetchEvent {
  request: Request
  respondWith(response: Promise<Response>): void
}

const HEADERS = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp', // not 'credentialless', which Safari does not know
}
const RELOADED = 'qwasm-isolation-reloaded'

if (typeof document === 'undefined') serve(self as unknown as ServiceWorkerScope)
else isolatePage().catch((error: Error) => console.warn(`The page gets no threads: ${error.message}`))

function serve(worker: ServiceWorkerScope): void {
  worker.addEventListener('install', () => void worker.skipWaiting()) // a new version takes over at the next navigation
  worker.addEventListener('fetch', (event) => {
    const { mode, destination } = event.request
    // All else (model files, ranges, other hosts, POSTs of scripts) needs no header of ours and goes its way without a detour.
    if (mode === 'navigate' || destination === 'worker' || destination === 'sharedworker') event.respondWith(answer(event.request))
  })
}

async function answer(request: Request): Promise<Response> {
  const response = await fetch(request)
  // Redirects that the browser follows itself, and answers that it may not look into, cannot be copied.
  if (response.status === 0) return response
  const headers = new Headers(response.headers)
  for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value)
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers })
}

/** Registers this file as a service worker, and reloads the page once it is there: only a navigation can get the headers. */
async function isolatePage(): Promise<void> {
  if (window.crossOriginIsolated) return sessionStorage.removeItem(RELOADED)
  // A frame is isolated by the page around it; without a secure address there are no service workers.
  if (window.top !== window || !('serviceWorker' in navigator)) return
  const script = document.currentScript ?? document.querySelector('script[src$="isolation.js"]')
  await navigator.serviceWorker.register((script as HTMLScriptElement | null)?.src ?? 'isolation.js')
  await navigator.serviceWorker.ready
  // A second reload without isolation in between would change nothing, and the next neither.
  if (sessionStorage.getItem(RELOADED) !== null) return
  sessionStorage.setItem(RELOADED, 'yes')
  location.reload()
}
