// qwasm quantize: writes a model as a GGUF file.
import { fileSink } from '../gguf/node-file.js'
import type { LoadOptions, Model, SaveProgress } from '../types.js'
import { UsageError, type Values } from './options.js'

const DTYPES = { q8: 'q8', q4: 'q4', f16: 'exact' } as const

/** What is loaded for the file that --dtype asks for: float16 comes from weights as they are stored. */
export function quantizedAs({ dtype = 'q8' }: Values): NonNullable<LoadOptions['dtype']> {
  const found = Object.hasOwn(DTYPES, dtype) ? DTYPES[dtype as keyof typeof DTYPES] : undefined
  if (!found) throw new UsageError(`--dtype must be ${Object.keys(DTYPES).join(', ')} for quantize, not '${dtype}'.`)
  return found
}

export interface QuantizeSteps {
  load(options: LoadOptions): Promise<Model>
  onProgress(progress: SaveProgress): void
}

/** Writes the file and gives its bytes. SIGINT and SIGTERM end it with an AbortError, and nothing stays of the file. */
export async function quantize(values: Values, { load, onProgress }: QuantizeSteps): Promise<{ path: string; bytes: number }> {
  const { out: path, force = false } = values
  if (path === undefined) throw new UsageError('The file to write is missing: qwasm quantize MODEL OUT.gguf.')
  const dtype = quantizedAs(values)
  const controller = new AbortController()
  const { signal } = controller
  const told = () => controller.abort()
  process.on('SIGINT', told).on('SIGTERM', told)
  try {
    const sink = await fileSink(path, force) // before the load, which may take long
    const model = await load({ dtype, signal }).catch(async (error) => {
      await sink.abort(error)
      throw error
    })
    try {
      return { path, bytes: await model.saveGguf(sink, { onProgress, signal }) }
    } finally {
      await model.dispose()
    }
  } finally {
    process.off('SIGINT', told).off('SIGTERM', told)
  }
}
