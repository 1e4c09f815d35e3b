// Regular expressions (ECMAScript's, without what needs memory or looks around) as grammars.
import { QwasmError } from '../errors.js'
import { characterClass, complement, either, intersect, normalize, quote, repeat, type Range } from './rules.js'

type Node =
  | { kind: 'chars'; ranges: Range[] }
  | { kind: 'sequence'; parts: Node[] }
  | { kind: 'alternatives'; parts: Node[] }
  | { kind: 'repeat'; part: Node; least: number; most: number }
  | { kind: 'begin' | 'end' } // ^ and $

const one = (character: string): Range => [character.codePointAt(0)!, character.codePointAt(0)!]
const DIGITS: Range[] = [[0x30, 0x39]]
const WORD: Range[] = [...DIGITS, [0x41, 0x5a], one('_'), [0x61, 0x7a]]
const SPACES: Range[] = [[9, 13], [0x2000, 0x200a], [0x2028, 0x2029], ...Array.from(' \xa0\u1680\u202f\u205f\u3000\ufeff', one)]
const LINE_ENDS: Range[] = [one('\n'), one('\r'), [0x2028, 0x2029]]
const CLASSES: Record<string, Range[]> = {
  d: DIGITS,
  D: complement(DIGITS),
  w: WORD,
  W: complement(WORD),
  s: SPACES,
  S: complement(SPACES),
}
const CONTROLS: Record<string, number> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 }

/** Reads what `new RegExp` has accepted, so it need not look for mistakes. */
class Reader {
  readonly #text: string[]
  readonly #where: string
  #at = 0

  constructor(pattern: string, where: string) {
    this.#text = Array.from(pattern)
    this.#where = where
  }

  read(): Node {
    return this.#alternatives()
  }

  #take(word: string): boolean {
    if (!this.#text.slice(this.#at, this.#at + word.length).join('').startsWith(word)) return false
    this.#at += word.length
    return true
  }

  #match(expression: RegExp): RegExpExecArray | null {
    const found = expression.exec(this.#text.slice(this.#at, this.#at + 24).join(''))
    if (found) this.#at += Array.from(found[0]).length
    return found
  }

  #unsupported(what: string): QwasmError {
    return new QwasmError('unsupported', `${this.#where}: ${what} of regular expressions is not supported.`)
  }

  #alternatives(): Node {
    const parts: Node[] = []
    do {
      const sequence: Node[] = []
      while (this.#at < this.#text.length && this.#text[this.#at] !== '|' && this.#text[this.#at] !== ')') {
        sequence.push(this.#quantified())
      }
      parts.push(sequence.length === 1 ? sequence[0]! : { kind: 'sequence', parts: sequence })
    } while (this.#take('|'))
    return parts.length === 1 ? parts[0]! : { kind: 'alternatives', parts }
  }

  #quantified(): Node {
    const part = this.#atom()
    const found = this.#match(/^(?:\*|\+|\?|\{(\d+)(,?)(\d*)\})\??/)
    if (!found) return part
    const [all, low, comma, high] = found
    const [least, most] =
      low === undefined
        ? [all[0] === '+' ? 1 : 0, all[0] === '?' ? 1 : Infinity]
        : [Number(low), high ? Number(high) : comma ? Infinity : Number(low)]
    return { kind: 'repeat', part, least, most }
  }

  #atom(): Node {
    if (this.#take('(')) {
      if (!this.#take('?:') && !this.#match(/^\?<[^=!][^>]*>/) && this.#text[this.#at] === '?') {
        throw this.#unsupported(`(${this.#text.slice(this.#at, this.#at + 2).join('')}`)
      }
      const inner = this.#alternatives()
      this.#take(')')
      return inner
    }
    if (this.#take('^')) return { kind: 'begin' }
    if (this.#take('$')) return { kind: 'end' }
    if (this.#take('.')) return { kind: 'chars', ranges: complement(LINE_ENDS) }
    if (this.#take('[')) return { kind: 'chars', ranges: this.#class() }
    if (this.#text[this.#at] === '\\') return { kind: 'chars', ranges: normalize(this.#escape()) }
    return { kind: 'chars', ranges: [one(this.#text[this.#at++]!)] }
  }

  #class(): Range[] {
    const negated = this.#take('^')
    const ranges: Range[] = []
    const member = (): Range[] => (this.#text[this.#at] === '\\' ? this.#escape(true) : [one(this.#text[this.#at++]!)])
    while (!this.#take(']')) {
      const low = member()
      const isRange = this.#text[this.#at] === '-' && this.#text[this.#at + 1] !== ']'
      if (isRange && low.length === 1 && low[0]![0] === low[0]![1]) {
        this.#at++
        ranges.push([low[0]![0], member()[0]![1]])
      } else {
        ranges.push(...low)
      }
    }
    return negated ? complement(ranges) : normalize(ranges)
  }

  #escape(inClass = false): Range[] {
    this.#at++
    const pair = this.#match(/^u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})/i)
    if (pair) return [one(String.fromCharCode(parseInt(pair[1]!, 16), parseInt(pair[2]!, 16)))]
    const number = this.#match(/^(?:x([0-9a-f]{2})|u([0-9a-f]{4})|u\{([0-9a-f]+)\})/i)
    if (number) return [one(String.fromCodePoint(parseInt(number[1] ?? number[2] ?? number[3]!, 16)))]
    const letter = this.#text[this.#at++]!
    if (letter === 'b' && inClass) return [[8, 8]]
    if (letter === 'c') return [one(String.fromCharCode(this.#text[this.#at++]!.charCodeAt(0) % 32))]
    if (Object.hasOwn(CLASSES, letter)) return CLASSES[letter]!
    if (Object.hasOwn(CONTROLS, letter)) return [[CONTROLS[letter]!, CONTROLS[letter]!]]
    if (/[A-Za-z0-9]/.test(letter)) throw this.#unsupported(`\\${letter}`)
    return [one(letter)]
  }
}

function parse(pattern: string, where: string): Node {
  try {
    new RegExp(pattern, 'u')
  } catch (cause) {
    throw new QwasmError('invalid_argument', `${where}: ${cause instanceof Error ? cause.message : 'no regular expression'}.`, { cause })
  }
  return new Reader(pattern, where).read()
}

/** How characters are written: as they are, or as JSON has them inside a string. */
export type Spelling = (ranges: readonly Range[]) => string

const plainly: Spelling = characterClass

const JSON_ESCAPES: Record<string, string> = { '"': '\\"', '\\': '\\\\', '\b': '\\b', '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t' }
const ESCAPED: Range[] = [[0, 0x1f], one('"'), one('\\')]

export const inJson: Spelling = (ranges) => {
  const asIs = intersect(ranges, complement(ESCAPED))
  const parts = asIs.length > 0 ? [characterClass(asIs)] : []
  for (const [low, high] of intersect(ranges, ESCAPED)) {
    for (let code = low; code <= high; code++) {
      const character = String.fromCharCode(code)
      parts.push(quote(JSON_ESCAPES[character] ?? `\\u${code.toString(16).padStart(4, '0')}`))
    }
  }
  return either(parts)
}

/** The expression of a node without ^ and $. */
function write(node: Node, spelling: Spelling, where: string): string {
  switch (node.kind) {
    case 'chars':
      if (node.ranges.length === 0) throw new QwasmError('unsupported', `${where}: a class without characters is not supported.`)
      return spelling(node.ranges)
    case 'sequence':
      return node.parts.length === 0 ? '""' : `(${node.parts.map((part) => write(part, spelling, where)).join(' ')})`
    case 'alternatives':
      return either(node.parts.map((part) => write(part, spelling, where)))
    case 'repeat':
      if (node.most === 0) return '""'
      return repeat(`(${write(node.part, spelling, where)})`, node.least, node.most)
    default:
      throw new QwasmError('unsupported', `${where}: ^ and $ are supported at the beginning and end of an expression only.`)
  }
}

/** Alternatives on the top, each without its ^ and $. */
function anchored(node: Node): { body: Node; begins: boolean; ends: boolean }[] {
  return (node.kind === 'alternatives' ? node.parts : [node]).map((part) => {
    const parts = part.kind === 'sequence' ? [...part.parts] : [part]
    const begins = parts[0]?.kind === 'begin'
    if (begins) parts.shift()
    const ends = parts.at(-1)?.kind === 'end'
    if (ends) parts.pop()
    return { body: parts.length === 1 ? parts[0]! : { kind: 'sequence', parts }, begins, ends }
  })
}

/** Texts that a regular expression matches as a whole. */
export function regexExpression(pattern: string, where: string): string {
  return either(anchored(parse(pattern, where)).map(({ body }) => write(body, plainly, where)))
}

/** The inside of JSON strings in which a regular expression matches somewhere, unless ^ and $ say more. `any`: any one character. */
export function patternExpression(pattern: string, where: string, any: string, [least, most]: [number, number]): string {
  const alternatives = anchored(parse(pattern, where))
  const bounded = least > 0 || most < Infinity
  return either(
    alternatives.map(({ body, begins, ends }) => {
      if (!bounded) return `${begins ? '' : `${any}* `}${write(body, inJson, where)}${ends ? '' : ` ${any}*`}`
      // Of a repeated character the length can be told; in general it would take a second machine beside the first.
      const part = body.kind === 'repeat' ? body : { kind: 'repeat' as const, part: body, least: 1, most: 1 }
      const low = Math.max(least, part.least)
      const high = Math.min(most, part.most)
      if (part.part.kind !== 'chars' || !begins || !ends || low > high || high === 0) {
        const only = 'are supported for patterns of one repeated character, such as ^[a-z]+$'
        throw new QwasmError('unsupported', `${where}: minLength and maxLength beside it ${only}.`)
      }
      return repeat(write(part.part, inJson, where), low, high)
    })
  )
}
