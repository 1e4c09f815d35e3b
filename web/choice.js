// What a person can choose as a model: the embedded one, a hub's id, an address, files of this device. And what each is called.

const HUB = 'https://huggingface.co/'
const HUB_ID = /^[A-Za-z0-9_-][\w.-]*\/[A-Za-z0-9_-][\w.-]*$/
const WITHOUT_SCHEME = /^[\w-]+(\.[\w-]+)+(:\d+)?\//
const DEMO_URL = new URL('models/demo/', location.href).href

export const DTYPES = ['auto', 'q8', 'q4', 'exact']

/** A model and how to load it: `source` and `dtype` are those of loadModel(). */
export const DEMO = { kind: 'demo', source: DEMO_URL, name: 'Demo model', dtype: 'auto' }

/** A real small model, which this site has where its tests were set up: SmolLM2-135M-Instruct. */
export const SMALL = { kind: 'address', source: new URL('models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf', location.href).href, name: 'SmolLM2-135M-Instruct', dtype: 'auto' }

/** The choice that a text means; throws an Error with a sentence for the person where it means none. */
export function choiceOf(text, dtype = 'auto') {
  const given = text.trim()
  if (given === '') throw new Error('Write the name of a model, or its address.')
  if (HUB_ID.test(given)) return { kind: 'hub', source: given, name: given, dtype }
  const url = urlOf(given)
  if (url.href === DEMO_URL) return { ...DEMO, dtype }
  if (url.protocol !== 'https:' && url.origin !== location.origin) throw new Error('This page loads models from its own site and from addresses with https:// only.')
  const [, id, revision, file] = /^([^/]+\/[^/]+)(?:\/(?:resolve|tree)\/([^/]+)(\/.*)?)?\/?$/.exec(url.href.startsWith(HUB) ? url.href.slice(HUB.length) : '') ?? []
  if (id && !file?.slice(1)) {
    if (revision === undefined || revision === 'main') return { kind: 'hub', source: id, name: id, dtype }
    return { kind: 'hub', source: url.href, name: `${id} at ${decodeURIComponent(revision)}`, dtype }
  }
  return { kind: url.origin + '/' === HUB ? 'hub' : 'address', source: url.href, name: lastPart(url.pathname) || url.host, dtype }
}

/** The choice of files, from a file input or a drop. */
export function choiceOfFiles(files, dtype = 'auto') {
  const [folder, ...inside] = files[0].webkitRelativePath.split('/')
  const weights = files.find(({ name }) => /\.(safetensors|gguf)$/i.test(name)) ?? files[0]
  return { kind: 'files', source: files, name: inside.length > 0 ? folder : weights.name, dtype }
}

/** Where the cache says that a choice came from; null for what is never kept. */
export function keptSource({ kind, source }) {
  if (kind === 'files') return null
  if (HUB_ID.test(source)) return `${HUB}${source}/resolve/main/`
  const { origin, pathname } = new URL(source)
  return origin + pathname + (/\/$|\.(safetensors|gguf)$/i.test(pathname) ? '' : '/')
}

/** Whether loading it takes nothing from another server. */
export const isOfThisSite = ({ kind, source }) => kind === 'demo' || (kind === 'address' && new URL(source).origin === location.origin)

/** The choice as this page's address tells it, for reloads and links. Files cannot be told, and what follows an address's '?' may be a key. */
export function linkOf({ kind, source, dtype }) {
  const link = new URL(location.href)
  link.search = ''
  const told = kind !== 'files' && !source.includes('?')
  if (told && kind !== 'demo') link.searchParams.set('model', source)
  if (told && dtype !== 'auto') link.searchParams.set('dtype', dtype)
  // These two are read better as they are, and mean the same.
  link.search = link.search.replaceAll('%2F', '/').replaceAll('%3A', ':')
  return link.href
}

/** What this page's own address asks for: { text, dtype }. */
export function askedByLink() {
  const asked = new URLSearchParams(location.search)
  const dtype = asked.get('dtype') ?? 'auto'
  return { text: asked.get('model') ?? '', dtype: DTYPES.includes(dtype) ? dtype : 'auto' }
}

function urlOf(text) {
  const address = WITHOUT_SCHEME.test(text) ? `https://${text}` : text
  if (/^[a-z]+:\/\/|^\.{0,2}\//i.test(address) && URL.canParse(address, location.href)) return new URL(address, location.href)
  throw new Error('This is neither a name such as Qwen/Qwen3-0.6B nor an address such as https://example.org/models/qwen3/.')
}

function lastPart(path) {
  const part = path.split('/').filter(Boolean).at(-1) ?? ''
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
