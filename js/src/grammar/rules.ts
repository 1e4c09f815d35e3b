// Grammars as text: GBNF's rules gathered by name, and its literals and classes written.

/** Characters from the first to the last, as code points. */
export type Range = readonly [number, number]

export const LAST_CHARACTER = 0x10ffff

/** Rules of one grammar. What is the same becomes one rule. */
export class Rules {
  readonly #bodies = new Map<string, string>()
  readonly #names = new Map<string, string>()

  /** A rule for `body`, as its name; the name begins with `hint`. */
  add(hint: string, body: string): string {
    const known = this.#names.get(body)
    if (known !== undefined) return known
    const name = this.reserve(hint)
    this.#names.set(body, name)
    this.#bodies.set(name, body)
    return name
  }

  /** A name whose rule follows by `define`: what is recursive needs it before. */
  reserve(hint: string): string {
    const stem = `r-${hint.replace(/[^A-Za-z0-9]+/g, '-').slice(0, 24)}`
    let name = stem
    for (let i = 2; this.#bodies.has(name); i++) name = `${stem}-${i}`
    this.#bodies.set(name, '')
    return name
  }

  define(name: string, body: string): void {
    this.#bodies.set(name, body)
  }

  /** The grammar of `body`, with the rules it needs and no others. */
  text(body: string): string {
    const lines = [`root ::= ${body}`]
    const done = new Set<string>()
    const names = (of: string) => Array.from(of.matchAll(/"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|(r-[\w-]+)/gs), (found) => found[1])
    const waiting = names(body)
    for (const name of waiting) {
      if (name === undefined || done.has(name)) continue
      done.add(name)
      const rule = this.#bodies.get(name)!
      lines.push(`${name} ::= ${rule}`)
      waiting.push(...names(rule))
    }
    return `${lines.join('\n')}\n`
  }
}

/** A literal. */
export function quote(text: string): string {
  const escaped = text.replace(/[\\"]/g, '\\$&').replace(/[\0-\x1f\x7f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
  return `"${escaped}"`
}

function character(code: number): string {
  const c = String.fromCodePoint(code)
  if (/[A-Za-z0-9]/.test(c)) return c
  const hex = code.toString(16)
  return code < 0x100 ? `\\x${hex.padStart(2, '0')}` : code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`
}

/** A character class of normalized ranges, which are not empty. */
export function characterClass(ranges: readonly Range[]): string {
  return `[${ranges.map(([low, high]) => (low === high ? character(low) : `${character(low)}-${character(high)}`)).join('')}]`
}

/** Sorted ranges without overlaps and surrogates. */
export function normalize(ranges: readonly Range[]): Range[] {
  const result: [number, number][] = []
  const whole = ranges.flatMap(([low, high]): Range[] => [
    [low, Math.min(high, 0xd7ff)],
    [Math.max(low, 0xe000), high],
  ])
  for (const [low, high] of whole.filter(([low, high]) => low <= high).sort((a, b) => a[0] - b[0])) {
    const last = result.at(-1)
    if (last && low <= last[1] + 1) last[1] = Math.max(last[1], high)
    else result.push([low, high])
  }
  return result
}

/** All characters that are not in the ranges. */
export function complement(ranges: readonly Range[]): Range[] {
  const result: Range[] = []
  let next = 0
  for (const [low, high] of normalize(ranges)) {
    result.push([next, low - 1])
    next = high + 1
  }
  return normalize([...result, [next, LAST_CHARACTER]])
}

/** The characters of both. */
export function intersect(a: readonly Range[], b: readonly Range[]): Range[] {
  return complement([...complement(a), ...complement(b)])
}

/** `expression` repeated; at least one of more than one place must be possible. */
export function repeat(expression: string, least: number, most: number): string {
  if (least === 1 && most === 1) return expression
  if (most === Infinity) return least === 0 ? `${expression}*` : least === 1 ? `${expression}+` : `${expression}{${least},}`
  if (least === 0 && most === 1) return `${expression}?`
  return `${expression}{${least === most ? least : `${least},${most}`}}`
}

/** Alternatives as one expression. */
export function either(alternatives: readonly string[]): string {
  return alternatives.length === 1 ? alternatives[0]! : `(${alternatives.join(' | ')})`
}
