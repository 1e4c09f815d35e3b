// A running generation as an async iterable: pieces wait here for whoever iterates.
import type { Stream } from './types.js'

/** A call that runs. */
export interface Started<Result> {
  result: Promise<Result>
  stop: () => void
}

/** Makes the stream of a call. `start` gets the function that takes pieces; when it throws, the stream is rejected with that error. */
export function makeStream<Piece, Result>(start: (piece: (piece: Piece) => void) => Started<Result>): Stream<Piece, Result> {
  const waiting: Piece[] = []
  const wakers: (() => void)[] = []
  let ended = false

  const wake = () => {
    for (const waker of wakers.splice(0)) waker()
  }
  const piece = (value: Piece) => {
    waiting.push(value)
    wake()
  }
  let started: Started<Result>
  try {
    started = start(piece)
  } catch (error) {
    started = { result: Promise.reject(error), stop: () => {} }
  }
  const end = () => {
    ended = true
    wake()
  }
  started.result.then(end, end) // also keeps a stream that nobody asks for its result from being an unhandled rejection

  const next = async (): Promise<IteratorResult<Piece, undefined>> => {
    while (waiting.length === 0 && !ended) await new Promise<void>((resolve) => wakers.push(resolve))
    if (waiting.length > 0) return { done: false, value: waiting.shift()! }
    await started.result // rejects the iterator with what ended the generation
    return { done: true, value: undefined }
  }
  return {
    result: () => started.result,
    stop: started.stop,
    [Symbol.asyncIterator]: () => ({
      next,
      async return() {
        started.stop()
        return { done: true, value: undefined }
      },
    }),
  }
}
