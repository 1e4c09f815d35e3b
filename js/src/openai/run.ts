// The calls of the model that one request comes to: run side by side, their pieces in the order in which they come.
import { abortError } from '../errors.js'
import type { GenerateResult, Stream } from '../types.js'
import { isAbort, toOpenAIError } from './errors.js'
import { usageOf, type Format } from './formats.js'
import type { Job } from './request.js'
import type { ChunkStream, RequestOptions, Usage } from './shapes.js'

/** Carries out a request: its whole answer, or its stream once there is a first piece of it. */
export async function respond<Piece, Result extends GenerateResult, Chunk, Whole>(
  job: Job<unknown>,
  format: Format<Piece, Result, Chunk, Whole>,
  streams: readonly Stream<Piece, Result>[],
  { signal, onUsage }: RequestOptions & { onUsage: (usage: Usage) => void }
): Promise<Whole | ChunkStream<Chunk>> {
  const run = new Run(streams, signal ?? undefined)
  // What was generated counts, whether or not somebody waited for it.
  void Promise.allSettled(streams.map((stream) => stream.result())).then((ends) => {
    const results = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
    if (results.length > 0) onUsage(usageOf(results, job.samples))
  })
  try {
    if (job.stream) return await startStream(run, chunksOf(run, job, format))
    const results = await run.results()
    return format.whole(results, usageOf(results, job.samples))
  } catch (error) {
    throw isAbort(error) ? error : toOpenAIError(error)
  }
}

/** Waits for the first chunk, so that a request that fails is rejected rather than answered by a stream that breaks. */
async function startStream<Chunk>(run: Run<unknown, GenerateResult>, chunks: AsyncGenerator<Chunk>): Promise<ChunkStream<Chunk>> {
  const first = await chunks.next()
  if (run.controller.signal.aborted) throw abortError(run.controller.signal)
  const all = async function* () {
    try {
      if (!first.done) yield first.value
      yield* chunks
    } finally {
      run.stop()
    }
  }
  const iterator = all()
  return { controller: run.controller, [Symbol.asyncIterator]: () => iterator }
}

async function* chunksOf<Piece, Result extends GenerateResult, Chunk>(
  run: Run<Piece, Result>,
  { samples, includeUsage }: Job<unknown>,
  format: Format<Piece, Result, Chunk, unknown>
): AsyncGenerator<Chunk> {
  const opened = new Set<number>()
  const results: Result[] = []
  try {
    for await (const { index, piece, result } of run.events()) {
      if (!opened.has(index)) yield* format.opening(index)
      opened.add(index)
      if (piece !== undefined) yield format.piece(index, piece)
      if (!result) continue
      results[index] = result
      yield format.closing(index, result)
    }
    if (includeUsage) yield format.usage(usageOf(results, samples))
  } catch (error) {
    if (!isAbort(error)) throw toOpenAIError(error) // an aborted stream ends, as that of OpenAI's client
  }
}

interface Event<Piece, Result> {
  index: number
  piece?: Piece
  result?: Result
}

class Run<Piece, Result> {
  readonly controller = new AbortController()
  readonly #streams: readonly Stream<Piece, Result>[]
  readonly #aborted: Promise<never>

  constructor(streams: readonly Stream<Piece, Result>[], outer: AbortSignal | undefined) {
    this.#streams = streams
    const { signal } = this.controller
    this.#aborted = new Promise((_, reject) =>
      signal.addEventListener('abort', () => {
        this.stop()
        reject(abortError(signal))
      })
    )
    this.#aborted.catch(() => {}) // may come when nobody waits any more
    const abort = () => this.controller.abort(outer?.reason)
    if (outer?.aborted) abort()
    outer?.addEventListener('abort', abort, { once: true })
    const forget = () => outer?.removeEventListener('abort', abort)
    void Promise.allSettled(streams.map((stream) => stream.result())).then(forget)
  }

  /** Ends all calls with what there is. */
  stop(): void {
    for (const stream of this.#streams) stream.stop()
  }

  async results(): Promise<Result[]> {
    try {
      return await Promise.race([Promise.all(this.#streams.map((stream) => stream.result())), this.#aborted])
    } catch (error) {
      this.stop()
      throw error
    }
  }

  async *events(): AsyncGenerator<Event<Piece, Result>> {
    const iterators = this.#streams.map((stream) => stream[Symbol.asyncIterator]())
    const next = async (index: number): Promise<Event<Piece, Result>> => {
      const { done, value } = await iterators[index]!.next()
      return done ? { index, result: await this.#streams[index]!.result() } : { index, piece: value }
    }
    const waiting = new Map<number, Promise<Event<Piece, Result>>>()
    const ask = (index: number) => {
      const event = next(index)
      event.catch(() => {}) // the first failure is told; those that follow from it are not
      waiting.set(index, event)
    }
    iterators.forEach((_, index) => ask(index))
    try {
      while (waiting.size > 0) {
        const event = await Promise.race([...waiting.values(), this.#aborted])
        if (event.result) waiting.delete(event.index)
        else ask(event.index)
        yield event
      }
    } finally {
      this.stop()
    }
  }
}
