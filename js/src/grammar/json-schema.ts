// JSON Schema (draft 2020-12, the part named in KEYWORDS) as a grammar. What it derives is valid; what is not supported is refused by name.
import { QwasmError } from '../errors.js'
import { show } from '../show.js'
import { anyRule, characterRule, jsonText, objectRule, otherKeys, stringRule } from './json-text.js'
import { integerExpression, multiplesExpression, numberExpression, type Bound } from './numbers.js'
import { patternExpression } from './regex.js'
import { either, quote, repeat, type Rules } from './rules.js'
import { exclusive, flatten, FORMATS, isSchemaObject, merge, resolve, typeOf, typesOf, unsupported } from './schema.js'
import type { Schema, SchemaObject } from './schema.js'

const MOST_NESTED = 64 // schemas inside each other, after which merged recursion is taken for endless

/** The expression of a schema's values, with what it needs in `rules`. `name`: what errors call the schema. */
export function schemaExpression(rules: Rules, schema: unknown, name: string): string {
  const compiler = new Compiler(rules, schema, name)
  const expression = compiler.compile(schema as Schema, name)
  if (expression === null) throw new QwasmError('invalid_argument', `${name}: no value fits the schema.`)
  return expression
}

class Compiler {
  readonly #rules: Rules
  readonly #root: unknown
  readonly #name: string
  readonly #references = new Map<SchemaObject, string>()
  #nested = 0

  constructor(rules: Rules, root: unknown, name: string) {
    this.#rules = rules
    this.#root = root
    this.#name = name
  }

  /** A rule's name or an expression that can stand anywhere; null where no value fits. */
  compile(schema: Schema, path: string): string | null {
    if (schema === true) return anyRule(this.#rules)
    if (schema === false) return null
    if (!isSchemaObject(schema)) {
      throw new QwasmError('invalid_argument', `${path}: a schema must be an object, true or false, not ${show(schema)}.`)
    }
    if (++this.#nested > MOST_NESTED) throw unsupported(path, 'recursion through merged schemas, or schemas nested more than 64 deep')
    try {
      if (typeof schema.$ref === 'string' && Object.keys(schema).length === 1) return this.#reference(schema.$ref, path)
      const flat = flatten(schema, this.#root, this.#name, path)
      return flat === false ? null : this.#flat(flat, path)
    } finally {
      this.#nested--
    }
  }

  /** Each schema that is referred to is one rule, which is what lets it refer to itself. */
  #reference(ref: string, path: string): string | null {
    const target = resolve(ref, this.#root, this.#name, path)
    if (!isSchemaObject(target)) return this.compile(target, path)
    const known = this.#references.get(target)
    if (known !== undefined) return known
    const name = this.#rules.reserve(ref.split('/').at(-1) || 'root')
    this.#references.set(target, name)
    const expression = this.compile(target, `${this.#name}${ref.slice(1)}`)
    if (expression === null) throw new QwasmError('invalid_argument', `${path}: no value fits what ${ref} refers to.`)
    this.#rules.define(name, expression)
    return name
  }

  /** A schema without $ref and allOf at its top. */
  #flat(schema: SchemaObject, path: string): string | null {
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      const { [keyword]: branches, ...rest } = schema
      if (branches) return this.#branches(keyword, branches, rest, path)
    }
    if (schema.enum) return this.#enum(schema, path)
    const types = typesOf(schema)
    if (Object.keys(schema).length === 0) return anyRule(this.#rules)
    return this.#join(types.map((type) => this.#type(type, schema, path)))
  }

  #join(alternatives: (string | null)[]): string | null {
    const possible = [...new Set(alternatives.filter((one) => one !== null))]
    if (possible.length === 0) return null
    return possible.length === 1 ? possible[0]! : this.#rules.add('any-of', possible.join(' | '))
  }

  #branches(keyword: 'anyOf' | 'oneOf', branches: Schema[], rest: SchemaObject, path: string): string | null {
    const merged = branches.map((branch, i) => merge(rest, branch, this.#root, this.#name, `${path}/${keyword}/${i}`))
    if (keyword === 'oneOf') {
      merged.forEach((a, i) => {
        const overlap = merged.findIndex((b, j) => j > i && !exclusive(a, b, this.#root, this.#name, path))
        if (overlap < 0) return
        const which = `branches ${i} and ${overlap} are not told apart by a type, an enum or a const (anyOf may do)`
        throw unsupported(path, `oneOf, where ${which},`)
      })
    }
    const constrained = Object.keys(rest).length > 0
    return this.#join(merged.map((one, i) => this.compile(constrained ? one : branches[i]!, `${path}/${keyword}/${i}`)))
  }

  #enum(schema: SchemaObject, path: string): string | null {
    const { enum: values = [], type: _type, ...others } = schema
    const beside = Object.keys(others)[0]
    if (beside !== undefined) throw unsupported(path, `${beside} beside enum or const`)
    const types = typesOf(schema)
    const texts = values
      .filter((value) => types.includes(typeOf(value)) || (Number.isInteger(value) && types.includes('number')))
      .map((value) => quote(jsonText(value)))
    return texts.length > 0 ? this.#rules.add('enum', texts.join(' | ')) : null
  }

  #type(type: string, schema: SchemaObject, path: string): string | null {
    switch (type) {
      case 'null':
        return '"null"'
      case 'boolean':
        return this.#rules.add('boolean', '"true" | "false"')
      case 'string':
        return this.#string(schema, path)
      case 'array':
        return this.#array(schema, path)
      case 'object':
        return this.#object(schema, path)
      default:
        return this.#number(type, schema, path)
    }
  }

  #number(type: string, schema: SchemaObject, path: string): string | null {
    const tighter = (closed: number | undefined, open: number | undefined, none: number, sign: number): Bound => {
      if (open !== undefined && (closed === undefined || sign * open >= sign * closed)) return { value: open, open: true }
      return { value: closed ?? none, open: false }
    }
    const low = tighter(schema.minimum, schema.exclusiveMinimum, -Infinity, 1)
    const high = tighter(schema.maximum, schema.exclusiveMaximum, Infinity, -1)
    const of = schema.multipleOf
    const whole = type === 'integer' || (of !== undefined && Number.isInteger(of))
    const hoist = (expression: string | null) => expression && this.#rules.add('number', expression)
    if (of !== undefined && of !== 1) {
      const expression = Number.isSafeInteger(of) && of > 0 ? multiplesExpression(of, low, high) : undefined
      if (expression === undefined) {
        const known = 'whole numbers with at most 1000 multiples between bounds, or 1, 2 or 5 times a power of ten without bounds'
        throw unsupported(path, `multipleOf ${of} (there are ${known})`)
      }
      return hoist(expression)
    }
    return hoist(whole ? integerExpression(low, high) : numberExpression(low, high, path))
  }

  #string(schema: SchemaObject, path: string): string | null {
    const { minLength = 0, maxLength = Infinity, pattern, format } = schema
    if (minLength > maxLength) return null
    if (pattern !== undefined && format !== undefined) throw unsupported(path, 'pattern beside format')
    if (format !== undefined) {
      const known = Object.hasOwn(FORMATS, format) ? FORMATS[format]! : undefined
      if (known === undefined) throw unsupported(path, `the format '${format}'; there are ${Object.keys(FORMATS).join(', ')}`)
      if (minLength > 0 || maxLength < Infinity) throw unsupported(path, 'minLength and maxLength beside format')
      return this.#pattern(known, path, [0, Infinity])
    }
    if (pattern !== undefined) return this.#pattern(pattern, `${path}/pattern`, [minLength, maxLength])
    if (minLength === 0 && maxLength === Infinity) return stringRule(this.#rules)
    const inside = maxLength === 0 ? '' : ` ${repeat(characterRule(this.#rules), minLength, maxLength)}`
    return this.#rules.add('string', String.raw`"\""${inside} "\""`)
  }

  #pattern(pattern: string, path: string, lengths: [number, number]): string {
    const inside = patternExpression(pattern, path, characterRule(this.#rules), lengths)
    return this.#rules.add('pattern', String.raw`"\"" ${inside} "\""`)
  }

  #array(schema: SchemaObject, path: string): string | null {
    const { prefixItems = [], minItems = 0, maxItems = Infinity } = schema
    const items = schema.items ?? (prefixItems.length < minItems || prefixItems.length === 0)
    const first: string[] = []
    for (const [i, item] of prefixItems.slice(0, maxItems).entries()) {
      const expression = this.compile(item, `${path}/prefixItems/${i}`)
      if (expression === null) break
      first.push(expression)
    }
    const whole = first.length === Math.min(prefixItems.length, maxItems)
    const rest = whole && maxItems > first.length ? this.compile(items, `${path}/items`) : null
    if (minItems > maxItems || (rest === null && minItems > first.length)) return null
    // From the last to the first: what may follow once an item is there.
    let follows = rest === null ? '' : `(", " ${rest})${counts(minItems - first.length, maxItems - first.length)}`
    if (first.length === 0) {
      if (rest === null) return '"[]"'
      const more = maxItems === 1 ? '' : ` (", " ${rest})${counts(minItems - 1, maxItems - 1)}`
      const content = `${rest}${more}`
      return this.#rules.add('array', minItems > 0 ? `"[" ${content} "]"` : `"[" (${content})? "]"`)
    }
    for (let i = first.length - 1; i > 0; i--) {
      const item = `", " ${first[i]!}${follows === '' ? '' : ` ${follows}`}`
      follows = i < minItems ? item : `(${item})?`
    }
    const content = `${first[0]!}${follows === '' ? '' : ` ${follows}`}`
    return this.#rules.add('array', minItems > 0 ? `"[" ${content} "]"` : `"[" (${content})? "]"`)
  }

  /** Members in the schema's order, optional ones there or not. Others follow only where additionalProperties asks for them. */
  #object(schema: SchemaObject, path: string): string | null {
    const required = new Set(schema.required ?? [])
    const named = schema.properties ?? {}
    const others = schema.additionalProperties ?? Object.keys(named).length === 0
    const members: { text: string; required: boolean }[] = []
    const unnamed = [...required].filter((key) => !Object.hasOwn(named, key))
    const missing = unnamed.map((key): [string, Schema] => [key, schema.additionalProperties ?? true])
    for (const [key, value] of [...Object.entries(named), ...missing]) {
      const expression = this.compile(value, `${path}/properties/${key.replace(/~/g, '~0').replace(/\//g, '~1')}`)
      if (expression !== null) members.push({ text: `${quote(`${JSON.stringify(key)}: `)} ${expression}`, required: required.has(key) })
      else if (required.has(key)) return null
    }
    const rest = this.compile(others, `${path}/additionalProperties`)
    if (Object.keys(named).length + required.size === 0 && rest !== null) return objectRule(this.#rules, rest)
    const keys = [...Object.keys(named), ...required].map((key) => JSON.stringify(key).slice(1, -1))
    const other = rest === null ? '' : String.raw`"\"" ${otherKeys(this.#rules, [...new Set(keys)])} "\": " ${rest}`
    return this.#rules.add('object', `"{" ${this.#members(members, other)} "}"`)
  }

  #members(members: { text: string; required: boolean }[], other: string): string {
    // after: what may follow once a member is there, from the last to the first.
    let after = other === '' ? '' : `(", " ${other})*`
    const beginnings = other === '' ? [] : [`${other} ${after}`]
    let empty = true // whether nothing at all may stand there
    for (const { text, required } of [...members].reverse()) {
      const begun = `${text}${after === '' ? '' : ` ${after}`}`
      if (required) beginnings.length = 0
      empty &&= !required
      beginnings.unshift(begun)
      after = this.#rules.add('members', required ? `", " ${begun}` : `(", " ${text})?${after === '' ? '' : ` ${after}`}`)
    }
    if (beginnings.length === 0) return '""'
    return `${either(beginnings.length === 1 && empty ? [`(${beginnings[0]!})`] : beginnings)}${empty ? '?' : ''}`
  }
}

function counts(least: number, most: number): string {
  const low = Math.max(least, 0)
  if (most === Infinity) return low === 0 ? '*' : `{${low},}`
  return `{${low},${most}}`
}
