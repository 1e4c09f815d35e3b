// webpack finds the worker and the modules by itself; the page, index.html, is copied beside them.
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))
export default {
  mode: 'production',
  context: folder,
  entry: './main.js',
  output: { path: `${folder}dist` },
  performance: { maxAssetSize: 500_000 }, // a module has about 380 KB, of which webpack would warn; a page fetches one of the four
}
