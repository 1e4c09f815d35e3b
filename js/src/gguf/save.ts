// A model on its way into a GGUF file: pieces from the worker into a stream, as fast as the stream takes them.
import type { Connection } from '../connection.js'
import { abortError, QwasmError } from '../errors.js'
import { checkOptions } from '../options.js'
import { show } from '../show.js'
import type { ModelInfo, SaveOptions } from '../types.js'

/** Writes the file and ends the stream; a failure aborts it. Gives the file's bytes. */
export async function saveGguf(connection: Connection, info: ModelInfo, sink: WritableStream<Uint8Array>, given?: SaveOptions): Promise<number> {
  const { name = nameOf(info), onProgress, signal } = checkOptions('saveGguf', given)
  if (!(sink instanceof WritableStream) || sink.locked) {
    const found = sink instanceof WritableStream ? 'one that another writer holds' : show(sink)
    throw new QwasmError('invalid_argument', `saveGguf: the sink must be a WritableStream of bytes, not ${found}.`)
  }
  let file: number | undefined
  let total = 0
  let written = 0
  const pieces = new ReadableStream<Uint8Array>(
    {
      start: async () => void ({ file, bytes: total } = await connection.call('openGguf', { name }).result),
      pull: async (controller) => {
        onProgress?.({ written, total })
        const piece = await connection.call('readGguf', { file: file! }).result
        if (piece.length === 0) return controller.close()
        written += piece.length
        controller.enqueue(piece)
      },
    },
    { highWaterMark: 1 } // the next piece is made while one is written
  )
  try {
    await pieces.pipeTo(sink, { ...(signal && { signal }) })
  } catch (cause) {
    if (signal?.aborted) throw abortError(signal)
    if (cause instanceof QwasmError) throw cause
    throw new QwasmError('io', `The GGUF file could not be written: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  } finally {
    if (file !== undefined) connection.call('closeGguf', { file }).result.catch(() => {}) // a worker that ended has nothing to close
  }
  return total
}

/** The last part of where a model came from: of 'https://example.org/models/Qwen3-0.6B/' and of the hub's 'Qwen/Qwen3-0.6B' the same. */
function nameOf({ source }: ModelInfo): string {
  return source.split(/[/\\]/).filter(Boolean).at(-1) ?? ''
}
