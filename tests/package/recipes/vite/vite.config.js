// `vite build` needs none of this; `vite dev` sends the headers that give the page threads, as the site's server must.
export default {
  server: { headers: { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' } },
}
