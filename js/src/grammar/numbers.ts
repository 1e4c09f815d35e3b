// Numbers between bounds, digit by digit. They have at most 15 digits, so that no two of them are the same double.
import { QwasmError } from '../errors.js'
import { either, quote, repeat } from './rules.js'

const DIGITS = 15
const LARGEST = 10 ** DIGITS - 1

/** A bound; `open`: the bound itself is outside. Infinite where there is none. */
export interface Bound {
  value: number
  open: boolean
}

/** A bound of at least 0 as it is written. */
interface Decimal {
  whole: number
  fraction: string
  open: boolean
}

const join = (...parts: string[]) => parts.filter((part) => part !== '').join(' ')
const digits = (least: number, most: number) => (most <= 0 ? '' : repeat('[0-9]', least, most))
const zeros = (most: number) => (most <= 0 ? '' : repeat('"0"', 0, most))
const digitFrom = (low: number, high: number) => (low === high ? quote(String(low)) : `[${low}-${high}]`)

/** Sequences of digits from `low` to `high`, which are of one length. */
function between(low: string, high: string): string[] {
  const rest = low.length - 1
  if (rest < 0) return ['']
  const [lowest, highest] = ['0'.repeat(rest), '9'.repeat(rest)]
  const [l, h] = [Number(low[0]), Number(high[0])]
  const after = (digit: number, from: string, to: string) => between(from, to).map((tail) => join(quote(String(digit)), tail))
  if (l === h) return after(l, low.slice(1), high.slice(1))
  const first = low.slice(1) === lowest ? l : l + 1
  const last = high.slice(1) === highest ? h : h - 1
  return [
    ...(first > l ? after(l, low.slice(1), highest) : []),
    ...(first <= last ? [join(digitFrom(first, last), digits(rest, rest))] : []),
    ...(last < h ? after(h, lowest, high.slice(1)) : []),
  ]
}

/** Whole numbers from `low` to `high`, of at least 0. */
function wholes(low: number, high: number): string[] {
  if (low > high) return []
  if (low <= 1 && high === LARGEST) return [...(low === 0 ? ['"0"'] : []), `[1-9] ${digits(0, DIGITS - 1)}`]
  const alternatives: string[] = []
  for (let length = String(low).length; length <= String(high).length; length++) {
    const from = Math.max(low, length === 1 ? 0 : 10 ** (length - 1))
    alternatives.push(...between(String(from), String(Math.min(high, 10 ** length - 1))))
  }
  return alternatives
}

const minus = (alternatives: string[]) => (alternatives.length === 0 ? [] : [`"-" ${either(alternatives)}`])
const orNone = (alternatives: string[]) => (alternatives.length === 0 ? null : either(alternatives))

/** Whole numbers between bounds; null where there are none. */
export function integerExpression(low: Bound, high: Bound): string | null {
  const [least, most] = wholeBounds(low, high)
  return orNone([...wholes(Math.max(least, 0), most), ...minus(wholes(Math.max(1, -most), -least))])
}

function wholeBounds(low: Bound, high: Bound): [number, number] {
  const least = low.open && Number.isInteger(low.value) ? low.value + 1 : Math.ceil(low.value)
  const most = high.open && Number.isInteger(high.value) ? high.value - 1 : Math.floor(high.value)
  return [Math.max(least, -LARGEST), Math.min(most, LARGEST)]
}

const MOST_MULTIPLES = 1000

/** Multiples of a whole number; undefined where no grammar for them is known here. */
export function multiplesExpression(of: number, low: Bound, high: Bound): string | null | undefined {
  const [least, most] = wholeBounds(low, high)
  if (Number.isFinite(low.value) && Number.isFinite(high.value)) {
    const first = Math.ceil(least / of)
    const count = Math.floor(most / of) - first + 1
    if (count > MOST_MULTIPLES) return undefined
    return orNone(Array.from({ length: Math.max(count, 0) }, (_, i) => quote(String((first + i) * of + 0))))
  }
  const power = String(of).length - 1
  const last = { 1: '', 2: '[02468]', 5: '[05]' }[of / 10 ** power]
  if (Number.isFinite(low.value) || Number.isFinite(high.value) || last === undefined) return undefined
  const noughts = power === 0 ? '' : `"${'0'.repeat(power)}"`
  if (last === '') return `("0" | "-"? [1-9] ${join(digits(0, DIGITS - 1 - power), noughts)})`
  const tail = join(last, noughts)
  const alone = last === '[05]' ? '"5"' : '[2468]'
  return `("0" | "-"? (${join(alone, noughts)} | [1-9] ${join(digits(0, DIGITS - 2 - power), tail)}))`
}

/** Digits behind the point, up to `room` of them, of what is at least (or, open, more than) `fraction`. */
function digitsAbove(fraction: string, open: boolean, room: number): string[] {
  if (fraction === '') return open ? notZero(room) : [digits(0, room)]
  const digit = Number(fraction[0])
  return [
    ...(digit < 9 ? [join(digitFrom(digit + 1, 9), digits(0, room - 1))] : []),
    ...digitsAbove(fraction.slice(1), open, room - 1).map((tail) => join(quote(fraction[0]!), tail)),
  ]
}

function notZero(room: number): string[] {
  const around = Math.floor((room - 1) / 2)
  return around < 0 ? [] : [join(zeros(around), '[1-9]', digits(0, around))]
}

/** The same of what is at most, or less than, `fraction`, which does not end with a zero. */
function digitsBelow(fraction: string, open: boolean, room: number): string[] {
  const digit = Number(fraction[0])
  const rest = fraction.slice(1)
  const smaller = digit > 0 ? [join(digitFrom(0, digit - 1), digits(0, room - 1))] : []
  if (rest !== '') return [...smaller, `${quote(fraction[0]!)} (${digitsBelow(rest, open, room - 1).join(' | ')})?`]
  return open ? smaller : [...smaller, join(quote(fraction[0]!), zeros(room - 1))]
}

const behindPoint = (alternatives: string[]) => (alternatives.length === 0 ? [] : [`"." ${either(alternatives)}`])

/** What may follow a whole number that both bounds have. */
function sameWhole(low: Decimal, high: Decimal, room: number): string[] {
  const length = Math.max(low.fraction.length, high.fraction.length)
  const [a, b] = [low.fraction.padEnd(length, '0'), high.fraction.padEnd(length, '0')]
  if (a > b || (a === b && (low.open || high.open))) return []
  const whole = low.fraction === '' && !low.open ? [''] : []
  if (length === 0) return whole
  if (a === b) return [...whole, join(`"." ${quote(a)}`, zeros(room - length))]
  const next = String(Number(a) + 1).padStart(length, '0')
  const previous = String(Number(b) - 1).padStart(length, '0')
  const rest = room - length
  return [
    ...whole,
    ...behindPoint([
      ...(next <= previous ? between(next, previous).map((inner) => join(inner, digits(0, rest))) : []),
      ...digitsAbove('', low.open, rest).map((tail) => join(quote(a), tail)),
      ...(high.open ? [] : [join(quote(b), zeros(rest))]),
    ]),
  ]
}

/** Numbers of at least 0 between bounds. */
function decimals(low: Decimal, high: Decimal, where: string): string[] {
  if (low.whole > high.whole) return []
  const room = Math.max(1, DIGITS - String(high.whole).length)
  if (Math.max(low.fraction.length, high.fraction.length) > room) {
    throw new QwasmError('unsupported', `${where}: bounds of more than ${DIGITS} digits are not supported.`)
  }
  const whole = (value: number, tails: string[]) => tails.map((tail) => join(quote(String(value)), tail))
  if (low.whole === high.whole) return whole(low.whole, sameWhole(low, high, room))
  const free = `("." ${digits(1, room)})?`
  const above = low.fraction === '' && !low.open ? [free] : behindPoint(digitsAbove(low.fraction, low.open, room))
  const noughts = high.open ? [] : [`("." ${repeat('"0"', 1, room)})?`]
  const below = high.fraction === '' ? noughts : [`("." ${either(digitsBelow(high.fraction, high.open, room))})?`]
  const inside = wholes(low.whole + 1, high.whole - 1)
  return [...whole(low.whole, above), ...(inside.length > 0 ? [`${either(inside)} ${free}`] : []), ...whole(high.whole, below)]
}

function decimal({ value, open }: Bound): Decimal {
  if (value > LARGEST) return { whole: LARGEST, fraction: '', open: false }
  const [mantissa, exponent = '0'] = String(value).split('e')
  const [before, behind = ''] = mantissa!.split('.')
  const shifted = `${'0'.repeat(Math.max(0, -Number(exponent)))}${before}${behind}` // an exponent here is negative
  const point = shifted.length - behind.length + Number(exponent)
  return { whole: Number(shifted.slice(0, point)), fraction: shifted.slice(point).replace(/0+$/, ''), open }
}

/** Numbers between bounds, as digits with or without a point; null where there are none. */
export function numberExpression(low: Bound, high: Bound, where: string): string | null {
  if (low.value > high.value) return null
  if (low.value === -Infinity && high.value === Infinity) return `"-"? ("0" | [1-9] ${digits(0, DIGITS - 1)}) ("." ${digits(1, DIGITS)})?`
  const zero = (open: boolean): Bound => ({ value: 0, open })
  const negated = ({ value, open }: Bound): Bound => ({ value: -value, open })
  const positive = high.value < 0 ? [] : decimals(decimal(low.value < 0 ? zero(false) : low), decimal(high), where)
  const nearest = decimal(high.value < 0 ? negated(high) : zero(true))
  const negative = low.value >= 0 ? [] : decimals(nearest, decimal(negated(low)), where)
  return orNone([...positive, ...minus(negative)])
}
