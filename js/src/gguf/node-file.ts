// A file under Node.js that is there whole or not at all: it grows beside its place under another name.
import { constants } from 'node:fs'
import { access, open, rename, stat, unlink } from 'node:fs/promises'
import { QwasmError } from '../errors.js'

/** A stream into the file `path`; `replace` lets it take the place of one that is there. What was written is removed where it fails or is aborted. */
export async function fileSink(path: string, replace: boolean): Promise<WritableStream<Uint8Array>> {
  const there = await stat(path).catch(() => undefined)
  if (there && !there.isFile()) throw new QwasmError('io', `${path} is there already, and is no file.`)
  if (there && !replace) throw new QwasmError('io', `${path} is there already; --force replaces it.`)
  if (there) await access(path, constants.W_OK).catch((cause: Error) => refuse(path, cause))
  const part = `${path}.${process.pid}.part`
  const file = await open(part, 'wx').catch((cause: Error) => refuse(path, cause))
  const discard = async () => {
    await file.close().catch(() => {})
    await unlink(part).catch(() => {})
  }
  /** A stream that fails by itself is not aborted, so whoever writes to it cleans up. */
  const orDiscard = async (work: () => Promise<void>) => {
    try {
      await work()
    } catch (error) {
      await discard()
      throw error
    }
  }
  return new WritableStream({
    write: (bytes) =>
      orDiscard(async () => {
        for (let done = 0; done < bytes.length;) done += (await file.write(bytes, done)).bytesWritten
      }),
    close: () =>
      orDiscard(async () => {
        await file.sync()
        await file.close()
        await rename(part, path)
      }),
    abort: discard,
  })
}

function refuse(path: string, cause: Error): never {
  throw new QwasmError('io', `${path} cannot be written: ${cause.message}`, { cause })
}
