// Feeds the engine: asks it which ranges it wants, reads several at once, brings them, and tells the progress.
import { QwasmError } from '../errors.js'
import type { Engine, Want } from '../runtime/core.js'
import type { LoadProgress } from '../types.js'
import { ProgressMeter } from './progress.js'
import { checkFileName, foreignContent, type Arrived, type Source } from './source.js'

const ROOM_STEP = 1 << 20

/** Buffers for ranges, which come by the hundred and differ by some kilobytes: rounded up, one fits all. */
class Rooms {
  #free: Uint8Array[] = []

  take(length: number): Uint8Array {
    this.#free = this.#free.filter((room) => room.length >= length) // smaller ones would only stay in memory
    return this.#free.pop() ?? new Uint8Array(Math.ceil(length / ROOM_STEP) * ROOM_STEP)
  }

  giveBack(room: Uint8Array): void {
    this.#free.push(room)
  }
}

interface Answer {
  want: Want
  arrived: Arrived | 'missing'
  room?: Uint8Array | undefined
}

export async function loadEngine(
  engine: Engine,
  source: Source,
  maxParallel: number,
  onProgress: (progress: LoadProgress) => void
): Promise<void> {
  const meter = new ProgressMeter(onProgress)
  const rooms = new Rooms()
  const inFlight = new Map<number, Promise<Answer>>()
  for (;;) {
    let next: Want | 'wait' | 'loaded' = 'wait'
    while (inFlight.size < maxParallel && typeof (next = engine.nextWant()) === 'object') {
      meter.total = engine.loadBytes
      const reading = read(source, next, meter, rooms)
      reading.catch(() => {}) // the race below reports the first failure; others must not be unhandled
      inFlight.set(next.id, reading)
    }
    if (inFlight.size === 0) {
      if (next === 'loaded') break
      throw new QwasmError('internal', 'The engine wants nothing although it is not loaded.')
    }
    const { want, arrived, room } = await Promise.race(inFlight.values())
    inFlight.delete(want.id)
    answer(engine, source, want, arrived)
    if (room) rooms.giveBack(room)
  }
  engine.loaded()
  meter.finish(engine.loadBytes)
}

async function read(source: Source, want: Want, meter: ProgressMeter, rooms: Rooms): Promise<Answer> {
  checkFileName(want.file)
  // Ranges wanted once the total is known are weights; what comes before are headers and small files.
  const counts = meter.total > 0 && want.length > 0
  let room: Uint8Array | undefined
  const arrived = await source.read(want.file, want.offset, want.length, {
    onBytes: (count) => meter.add(want.file, counts ? count : 0),
    room: (length) => (room ??= rooms.take(want.length)).subarray(0, length),
  })
  if (arrived !== 'missing' && want.offset === 0) {
    const foreign = foreignContent(arrived.bytes)
    const answered = arrived.status === undefined ? '' : ` (status ${arrived.status})`
    const message = `${source.place(want.file)}${answered} holds ${foreign}, not the model's ${want.file}.`
    if (foreign) throw new QwasmError(answered ? 'http' : 'invalid_file', message)
  }
  return { want, arrived, room }
}

function answer(engine: Engine, source: Source, want: Want, arrived: Arrived | 'missing'): void {
  if (arrived !== 'missing') {
    engine.push(want.id, arrived.bytes, arrived.fileSize)
    return
  }
  try {
    engine.pushMissing(want.id)
  } catch (error) {
    if (!(error instanceof QwasmError) || error.code !== 'missing') throw error
    throw new QwasmError('missing', `${error.message.replace(/\.$/, '')} (looked for at ${source.place(want.file)}).`)
  }
}
