// Files and folders that a person gave: a file input's list, a folder's handle, what was dropped on the page.
import { QwasmError } from '../errors.js'
import type { SourceSpec } from '../worker/protocol.js'
import { isGguf, onlyGguf, weightsFile, weightsRole } from './weights-file.js'

const MOST_FOLDERS_DEEP = 4 // as deep as the Hugging Face cache puts a model into its folder
const MOST_FILES = 2000 // enough for any model; a home folder that was taken by mistake has more

/** The spec of files, a single one or a folder's handle; undefined for anything else. */
export async function givenSpec(source: unknown): Promise<SourceSpec | undefined> {
  if (isFile(source)) return fileListSpec([source])
  if (isFileList(source)) return fileListSpec(source)
  if (!isDirectory(source)) return undefined
  return { ...fileListSpec(await filesUnder([ofHandle(source)])), place: `the folder '${source.name}'` }
}

/**
 * The files of a drop, those in dropped folders too, for `loadModel`. Call it in the event's handler, before anything is awaited:
 * when the handler gives way, the browser takes the dropped items back.
 */
export async function filesFromDrop(dataTransfer: DataTransfer): Promise<File[]> {
  const dropped = Array.from(dataTransfer.items, (item): Given | undefined => {
    const entry = item.kind === 'file' ? item.webkitGetAsEntry?.() : null
    if (entry) return ofEntry(entry)
    const file = item.getAsFile()
    return file ? { name: file.name, file: async () => file } : undefined
  })
  return filesUnder(dropped.filter((entry) => entry !== undefined))
}

/**
 * Files by the last part of their path. Where two bear one name, the one nearer to the chosen folder wins; hidden ones do not count.
 * A lone file of weights may have any name.
 */
export function fileListSpec(list: ArrayLike<File>): SourceSpec & { kind: 'files' } {
  const found = new Map<string, { path: string[]; file: File; twin?: string }>()
  for (const file of Array.from(list)) {
    const path = (file.webkitRelativePath || file.name).split('/')
    if (path.some((part) => part.startsWith('.'))) continue
    const name = path[path.length - 1]!
    const known = found.get(name)
    if (!known || path.length < known.path.length) found.set(name, { path, file })
    else if (path.length === known.path.length) known.twin = path.join('/')
  }
  if (found.size === 0) throw new QwasmError('invalid_argument', "The model's list of files is empty.")
  const config = found.get('config.json')
  if (config?.twin) {
    const both = `${config.path.join('/')} and ${config.twin}`
    throw new QwasmError('invalid_argument', `The files are those of several models, with ${both}; give the files of one.`)
  }
  // A slice is a plain Blob, which every worker can receive; Node.js 20 cannot send a File.
  const files = [...found].map(([name, { file }]) => ({ name, blob: file.slice(), lastModified: file.lastModified }))
  nameWeights(files)
  const place = `${files.length} given file${files.length === 1 ? '' : 's'}`
  const gguf = onlyGguf([...found.keys()], `the ${place}`)
  return { kind: 'files', files, place, ...(gguf && { weights: gguf }) }
}

function nameWeights(files: { name: string }[]): void {
  const names = new Set(files.map(({ name }) => weightsFile(name)).filter((name) => name !== undefined && !isGguf(name)))
  const [only] = names
  const file = files.find(({ name }) => name === only)
  if (names.size === 1 && file) file.name = weightsRole(file.name)
}

const isFile = (value: unknown): value is File => value instanceof Blob && 'name' in value

function isFileList(source: unknown): source is ArrayLike<File> {
  if (typeof source !== 'object' || source === null || !('length' in source)) return false
  return Array.from(source as ArrayLike<unknown>).every(isFile)
}

function isDirectory(source: unknown): source is FileSystemDirectoryHandle {
  return typeof source === 'object' && source !== null && 'kind' in source && source.kind === 'directory' && 'values' in source
}

/** A file or folder, by whichever of the browsers' two interfaces it came. */
interface Given {
  name: string
  file?: () => Promise<File>
  children?: () => AsyncIterable<Given>
}

function ofHandle(handle: FileSystemDirectoryHandle | FileSystemFileHandle): Given {
  if (handle.kind === 'file') return { name: handle.name, file: () => handle.getFile() }
  return {
    name: handle.name,
    async *children() {
      for await (const child of handle.values()) yield ofHandle(child)
    },
  }
}

function ofEntry(entry: FileSystemEntry): Given {
  const { name } = entry
  if (entry.isFile) {
    return { name, file: () => new Promise((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject)) }
  }
  return {
    name,
    async *children() {
      const reader = (entry as FileSystemDirectoryEntry).createReader()
      for (;;) {
        // At most 100 at a time in Chromium; none is the end.
        const batch = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject))
        if (batch.length === 0) return
        yield* batch.map(ofEntry)
      }
    },
  }
}

/** All files in and under what was given, the nearest first, each with its path in `webkitRelativePath`. */
async function filesUnder(given: Given[]): Promise<File[]> {
  const files: File[] = []
  let level = given.map((entry) => ({ entry, path: entry.name }))
  for (let depth = 0; depth <= MOST_FOLDERS_DEEP && level.length > 0; depth++) {
    const next: typeof level = []
    for (const { entry, path } of level) {
      try {
        if (entry.file) files.push(withPath(await entry.file(), path))
        else await addChildren(entry, path, next)
      } catch (cause) {
        if (cause instanceof QwasmError) throw cause
        throw new QwasmError('io', `${path} cannot be read: ${(cause as Error).message}`, { cause })
      }
    }
    level = next
  }
  return files
}

const withPath = (file: File, path: string): File =>
  Object.defineProperty(file, 'webkitRelativePath', { value: path, configurable: true })

async function addChildren(folder: Given, path: string, next: { entry: Given; path: string }[]): Promise<void> {
  for await (const entry of folder.children!()) {
    if (entry.name.startsWith('.')) continue
    next.push({ entry, path: `${path}/${entry.name}` })
    if (next.length > MOST_FILES) {
      const message = `The folder ${path} holds more than ${MOST_FILES} files; give the folder of the model alone.`
      throw new QwasmError('invalid_argument', message)
    }
  }
}
