// Whether relaxed SIMD may be used here. Some engines have its instructions and compile them wrongly, so this runs them.

/*
 * (module
 *   (memory (export "m") 1)
 *   (func (export "f")   ;; operands come from memory, or a compiler would fold them instead of running the instructions
 *     (v128.store offset=48 (i32.const 0)
 *       (i16x8.relaxed_dot_i8x16_i7x16_s (v128.load (i32.const 0)) (v128.load offset=16 (i32.const 0))))
 *     (v128.store offset=64 (i32.const 0)
 *       (i32x4.relaxed_dot_i8x16_i7x16_add_s
 *         (v128.load (i32.const 0)) (v128.load offset=16 (i32.const 0)) (v128.load offset=32 (i32.const 0))))))
 */
const LOAD = [65, 0, 253, 0, 4] // and an offset: v128.load (i32.const 0)
const STORE = [253, 11, 4] // and an offset: v128.store
const DOT_I16 = [253, 146, 2]
const DOT_ADD_I32 = [253, 147, 2]
const BODY = [
  ...[0, 65, 0, ...LOAD, 0, ...LOAD, 16, ...DOT_I16, ...STORE, 48],
  ...[65, 0, ...LOAD, 0, ...LOAD, 16, ...LOAD, 32, ...DOT_ADD_I32, ...STORE, 64, 11],
]
const MODULE = [
  ...[0, 97, 115, 109, 1, 0, 0, 0], // magic and version
  ...[1, 4, 1, 96, 0, 0], // types: () -> ()
  ...[3, 2, 1, 0], // functions: one of that type
  ...[5, 3, 1, 0, 1], // memory: one page
  ...[7, 9, 2, 1, 109, 2, 0, 1, 102, 0, 0], // exports: memory m, function f
  ...[10, BODY.length + 2, 1, BODY.length, ...BODY],
]

const ROUNDS = 64
const LANES = 16

/** Why relaxed SIMD cannot be used here; undefined where it can. */
export function relaxedSimdProblem(): string | undefined {
  const bytes = new Uint8Array(MODULE)
  if (!WebAssembly.validate(bytes)) return 'no relaxed SIMD: this browser or Node.js does not have it'
  try {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes))
    return givesRightNumbers(exports as unknown as Exports) ? undefined : 'no relaxed SIMD: it gives wrong numbers here'
  } catch (error) {
    return `no relaxed SIMD: trying it failed (${(error as Error).message})`
  }
}

interface Exports {
  m: WebAssembly.Memory
  f(): void
}

function givesRightNumbers({ m, f }: Exports): boolean {
  const x = new Int8Array(m.buffer, 0, LANES)
  const w = new Int8Array(m.buffer, 16, LANES)
  const base = new Int32Array(m.buffer, 32, LANES / 4)
  const pairs = new Int16Array(m.buffer, 48, LANES / 2)
  const fours = new Int32Array(m.buffer, 64, LANES / 4)
  const pair = (i: number) => x[2 * i]! * w[2 * i]! + x[2 * i + 1]! * w[2 * i + 1]!
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < LANES; i++) [x[i], w[i]] = operands(round, i)
    for (let i = 0; i < base.length; i++) base[i] = 1_000_003 * (round + 1) * (2 * i - 3)
    f()
    if (!pairs.every((value, i) => value === pair(i))) return false
    if (!fours.every((value, i) => value === base[i]! + pair(2 * i) + pair(2 * i + 1))) return false
  }
  return true
}

/** Operands as the kernels have them, -127 … 127 and 0 … 127: first the extremes, whose sums reach ±2 · 127 · 127, then all sorts. */
function operands(round: number, lane: number): [number, number] {
  if (round < 4) return [round & 1 ? -127 : 127, round & 2 && lane & 1 ? 0 : 127]
  const mixed = Math.imul(round * LANES + lane, 0x9e3779b1) >>> 8
  return [(mixed % 255) - 127, (mixed >>> 8) & 127]
}
