// Sources as the caller's thread describes them to the worker.
import { QwasmError } from '../errors.js'
import { show } from '../options.js'
import type { SourceSpec } from '../worker/protocol.js'

/** A folder's URL; relative ones count from `base`. */
export function urlSpec(source: string | URL, base?: string): SourceSpec {
  let url: URL
  try {
    url = new URL(source, base)
  } catch {
    throw new QwasmError('invalid_argument', `The model's source ${show(String(source))} is not the URL of a folder.`)
  }
  if (url.pathname.endsWith('.gguf')) {
    throw new QwasmError('unsupported', `${url.href}: GGUF files are not supported; give the folder of a Hugging Face model.`)
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return { kind: 'url', url: url.href }
}

export function isFileList(source: unknown): source is ArrayLike<File> {
  if (typeof source !== 'object' || source === null || !('length' in source)) return false
  return Array.from(source as ArrayLike<unknown>).every((entry) => entry instanceof Blob && 'name' in entry)
}

/** Files by the last part of their path. Where two bear one name, the one nearer to the chosen folder wins. */
export function fileListSpec(list: ArrayLike<File>): SourceSpec {
  const found = new Map<string, { depth: number; blob: Blob }>()
  for (const file of Array.from(list)) {
    const parts = (file.webkitRelativePath || file.name).split('/')
    const name = parts[parts.length - 1]!
    const known = found.get(name)
    // A slice is a plain Blob, which every worker can receive; Node.js 20 cannot send a File.
    if (!known || parts.length < known.depth) found.set(name, { depth: parts.length, blob: file.slice() })
  }
  if (found.size === 0) throw new QwasmError('invalid_argument', "The model's list of files is empty.")
  return { kind: 'files', files: [...found].map(([name, { blob }]) => ({ name, blob })) }
}
