// JSON as grammars write it: on one line, a space behind each comma and colon. Small models find their way best in what is common.
import { quote, type Rules } from './rules.js'

/** A value's text. */
export function jsonText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([key, member]) => `${JSON.stringify(key)}: ${jsonText(member)}`)
      .join(', ')}}`
  }
  return JSON.stringify(value)
}

/** One character of a string: as it is, or the escape that it needs. */
export function characterRule(rules: Rules): string {
  return rules.add('character', String.raw`[^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u00" [01] [0-9a-f])`)
}

export function stringRule(rules: Rules): string {
  return rules.add('string', String.raw`"\"" ${characterRule(rules)}* "\""`)
}

/** How deep values lie inside each other where a schema leaves them open; without a bound, output might not end. */
const DEPTH = 6

/** Any value. */
export function anyRule(rules: Rules, depth = DEPTH): string {
  const number = `"-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,15})?`
  const scalar = rules.add('scalar', `${stringRule(rules)} | ${number} | "true" | "false" | "null"`)
  if (depth === 0) return scalar
  const inner = anyRule(rules, depth - 1)
  return rules.add('value', `${scalar} | "[" (${inner} (", " ${inner})*)? "]" | ${objectRule(rules, inner)}`)
}

/** Any object; `value`: the rule of its members. */
export function objectRule(rules: Rules, value = anyRule(rules)): string {
  const member = rules.add('member', `${stringRule(rules)} ": " ${value}`)
  return rules.add('object', `"{" (${member} (", " ${member})*)? "}"`)
}

/** The inside of strings that are none of `words` (as JSON writes them): for keys that a schema has not named. */
export function otherKeys(rules: Rules, words: readonly string[]): string {
  const any = characterRule(rules)
  const byFirst = new Map<string, string[]>()
  for (const word of words) {
    if (word === '') continue
    const first = String.fromCodePoint(word.codePointAt(0)!)
    byFirst.set(first, [...(byFirst.get(first) ?? []), word.slice(first.length)])
  }
  // What an escape begins is spelled in several ways; such keys are left out.
  const taken = [...byFirst.keys()].map((first) => `\\U${first.codePointAt(0)!.toString(16).padStart(8, '0')}`)
  const others = String.raw`[^"\\\x00-\x1f${taken.join('')}]`
  const alternatives = [`${others} ${any}*`, ...(words.includes('') ? [] : ['""'])]
  for (const [first, rests] of byFirst) {
    if (first !== '\\') alternatives.push(`${quote(first)} ${otherKeys(rules, rests)}`)
  }
  return rules.add('other-key', alternatives.join(' | '))
}
