// Schemas before they become grammars: which keywords there are, references, and several schemas for one value made into one.
import { QwasmError } from '../errors.js'
import { show } from '../show.js'
import { jsonText } from './json-text.js'

export type Schema = boolean | SchemaObject

export interface SchemaObject {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema
  items?: Schema
  prefixItems?: Schema[]
  minItems?: number
  maxItems?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  format?: string
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  exclusiveMaximum?: number
  multipleOf?: number
  nullable?: boolean
  uniqueItems?: boolean
}

const TYPES = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object']

type Check = (value: unknown) => boolean

const schema: Check = (value) => typeof value === 'boolean' || isSchemaObject(value)
const count: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const finite: Check = (value) => Number.isFinite(value)
const text: Check = (value) => typeof value === 'string'
const arrayOf =
  (check: Check, least = 0): Check =>
  (value) =>
    Array.isArray(value) && value.length >= least && value.every(check)
const type: Check = (value) => TYPES.includes(value as string)

/** The keywords that are supported, with what their values must be. */
const KEYWORDS: Record<string, Check> = {
  $ref: text,
  type: (value) => type(value) || arrayOf(type, 1)(value),
  enum: arrayOf(() => true),
  const: () => true,
  anyOf: arrayOf(schema, 1),
  oneOf: arrayOf(schema, 1),
  allOf: arrayOf(schema, 1),
  properties: (value) => isSchemaObject(value) && Object.values(value).every(schema),
  required: arrayOf(text),
  additionalProperties: schema,
  items: schema,
  prefixItems: arrayOf(schema),
  minItems: count,
  maxItems: count,
  minLength: count,
  maxLength: count,
  pattern: text,
  format: text,
  minimum: finite,
  maximum: finite,
  exclusiveMinimum: finite,
  exclusiveMaximum: finite,
  multipleOf: finite,
  nullable: (value) => typeof value === 'boolean',
  uniqueItems: (value) => value === false, // with true, each item would have to be remembered
}

/** Keywords that say nothing about which values are valid. */
const ANNOTATIONS = new Set([
  ...['title', 'description', 'default', 'examples', 'example', 'deprecated', 'readOnly', 'writeOnly'],
  ...['$schema', '$comment', '$defs', 'definitions'],
])

/** Keywords that make a schema without a type one of that type. */
const IMPLIED: Record<string, string> = {
  ...{ properties: 'object', required: 'object', additionalProperties: 'object' },
  ...{ items: 'array', prefixItems: 'array', minItems: 'array', maxItems: 'array' },
  ...{ minLength: 'string', maxLength: 'string', pattern: 'string', format: 'string' },
  ...{ minimum: 'number', maximum: 'number', exclusiveMinimum: 'number', exclusiveMaximum: 'number', multipleOf: 'number' },
}

const HOST = '(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?\\.){1,4}[A-Za-z]{2,16}'
const BYTE = '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
const LEAP = '(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29'
const MONTHS = '(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))'
const DATE = `(?:${LEAP}|[0-9]{4}-${MONTHS})`
const TIME = '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])'

/** Formats as regular expressions. Of e-mail addresses and host names it is the ordinary ones. */
export const FORMATS: Record<string, string> = {
  date: `^${DATE}$`,
  time: `^${TIME}$`,
  'date-time': `^${DATE}T${TIME}$`,
  uuid: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  email: `^[A-Za-z0-9_+-]{1,32}(?:\\.[A-Za-z0-9_+-]{1,32}){0,3}@${HOST}$`,
  hostname: `^${HOST}$`,
  ipv4: `^${BYTE}\\.${BYTE}\\.${BYTE}\\.${BYTE}$`,
}

export function unsupported(path: string, what: string): QwasmError {
  return new QwasmError('unsupported', `${path}: ${what} is not supported.`)
}

export function isSchemaObject(value: unknown): value is SchemaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The supported keywords of a schema, its annotations left out. */
function keywordsOf(schema: SchemaObject, path: string): SchemaObject {
  const kept: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (ANNOTATIONS.has(keyword) || (keyword === '$id' && path.indexOf('/') < 0) || value === undefined) continue
    const check = Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword] : undefined
    if (!check) throw unsupported(path, `the keyword ${keyword}`)
    if (keyword === 'uniqueItems' && value === true) throw unsupported(path, 'uniqueItems')
    if (!check(value)) throw new QwasmError('invalid_argument', `${path}/${keyword}: ${show(value)} is no value of this keyword.`)
    if (keyword === 'const') kept['enum'] = [value]
    else if (keyword !== 'uniqueItems') kept[keyword] = value
  }
  if ('const' in schema && schema.enum) kept['enum'] = schema.enum.filter((value) => jsonText(value) === jsonText(schema.const))
  return kept
}

/** What a reference names: '#', or a pointer into the same schema. */
export function resolve(ref: string, root: unknown, name: string, path: string): Schema {
  if (!/^#(\/|$)/.test(ref)) throw unsupported(path, `the reference '${ref}', which is no pointer into the same schema,`)
  let target: unknown = root
  for (const part of ref.split('/').slice(1)) {
    const key = decodeURIComponent(part).replace(/~1/g, '/').replace(/~0/g, '~')
    target = typeof target === 'object' && target !== null && Object.hasOwn(target, key) ? (target as Record<string, unknown>)[key] : undefined
  }
  if (target === undefined) throw new QwasmError('invalid_argument', `${path}: '${ref}' is not there in ${name}.`)
  return target as Schema
}

/** A schema of the same values without $ref, allOf, const and nullable at its top; false where nothing fits. */
export function flatten(schema: Schema, root: unknown, name: string, path: string, depth = 0): SchemaObject | false {
  if (schema === false) return false
  if (schema === true) return {}
  if (depth > 32) throw unsupported(path, 'a schema that refers to itself without anything between')
  const { $ref, allOf = [], nullable, ...own } = keywordsOf(schema, path)
  let flat: SchemaObject | false = own
  if (nullable && own.type !== undefined) flat = { ...own, type: [own.type, 'null'].flat() }
  const parts = [...($ref === undefined ? [] : [resolve($ref, root, name, path)]), ...allOf]
  for (const part of parts) {
    const other: SchemaObject | false = flatten(part, root, name, path, depth + 1)
    flat = flat && other && mergeFlat(flat, other, path)
  }
  return flat
}

/** One schema of the values that fit both. */
export function merge(a: Schema, b: Schema, root: unknown, name: string, path: string): Schema {
  const [first, second] = [flatten(a, root, name, path), flatten(b, root, name, path)]
  return first && second && mergeFlat(first, second, path)
}

function mergeFlat(a: SchemaObject, b: SchemaObject, path: string): SchemaObject | false {
  const merged: Record<string, unknown> = { ...a, ...b }
  for (const keyword of Object.keys(a) as (keyof SchemaObject)[]) {
    if (!(keyword in b) || keyword === 'properties' || keyword === 'additionalProperties') continue
    const value = mergeKeyword(keyword, a[keyword], b[keyword], path)
    if (value === false) return false
    merged[keyword] = value
  }
  if ((a.prefixItems && b.items !== undefined) || (b.prefixItems && a.items !== undefined)) {
    throw unsupported(path, 'items of one schema beside prefixItems of another')
  }
  const keys = Object.keys({ ...a.properties, ...b.properties })
  if (keys.length > 0) merged['properties'] = Object.fromEntries(keys.map((key) => [key, both(memberOf(a, key), memberOf(b, key))]))
  if (a.additionalProperties !== undefined && b.additionalProperties !== undefined) {
    merged['additionalProperties'] = both(a.additionalProperties, b.additionalProperties)
  }
  return merged
}

function memberOf({ properties = {}, additionalProperties = true }: SchemaObject, key: string): Schema {
  return Object.hasOwn(properties, key) ? properties[key]! : additionalProperties
}

function both(a: Schema, b: Schema): Schema {
  if (a === false || b === false) return false
  return a === true ? b : b === true ? a : { allOf: [a, b] }
}

function mergeKeyword(keyword: keyof SchemaObject, a: unknown, b: unknown, path: string): unknown {
  switch (keyword) {
    case 'type':
      return intersectTypes([a].flat() as string[], [b].flat() as string[])
    case 'required':
      return [...new Set([...(a as string[]), ...(b as string[])])]
    case 'minimum':
    case 'exclusiveMinimum':
    case 'minLength':
    case 'minItems':
      return Math.max(a as number, b as number)
    case 'maximum':
    case 'exclusiveMaximum':
    case 'maxLength':
    case 'maxItems':
      return Math.min(a as number, b as number)
    case 'enum': {
      const texts = new Set((b as unknown[]).map(jsonText))
      return (a as unknown[]).filter((value) => texts.has(jsonText(value)))
    }
    case 'items':
      return both(a as Schema, b as Schema)
    case 'anyOf':
      return (a as Schema[]).flatMap((one) => (b as Schema[]).map((other) => both(one, other)))
    default:
      if (jsonText(a) === jsonText(b)) return a
      throw unsupported(path, `${keyword} of two schemas for one value`)
  }
}

function intersectTypes(a: string[], b: string[]): string[] | false {
  const within = (types: string[]) => (one: string) => types.includes(one) || (one === 'integer' && types.includes('number'))
  const common = [...new Set([...a.filter(within(b)), ...b.filter(within(a))])]
  return common.length > 0 && common
}

/** The type of a value, as narrow as it can be. */
export function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value
}

/** The types of a schema: those it names, or those that its keywords are about, or all. */
export function typesOf(schema: SchemaObject): string[] {
  const named = schema.type === undefined ? Object.keys(schema).flatMap((keyword) => IMPLIED[keyword] ?? []) : [schema.type].flat()
  const types = named.length > 0 ? new Set(named) : new Set(TYPES)
  if (types.has('number')) types.delete('integer')
  return [...types]
}

/** Whether no value can fit both schemas, as far as types, enums and required members with such tell. */
export function exclusive(a: Schema, b: Schema, root: unknown, name: string, path: string, depth = 0): boolean {
  const [first, second] = [flatten(a, root, name, path), flatten(b, root, name, path)]
  if (!first || !second) return true
  if (first.enum && second.enum) {
    const texts = new Set(first.enum.map(jsonText))
    return !second.enum.some((value) => texts.has(jsonText(value)))
  }
  // A schema that names no type takes values of all types, though only those that its keywords are about are made for it.
  const made = (schema: SchemaObject) => (schema.enum && schema.type === undefined ? [...new Set(schema.enum.map(typeOf))] : typesOf(schema))
  const taken = (schema: SchemaObject) => (schema.enum || schema.type !== undefined ? made(schema) : TYPES)
  if (!intersectTypes(made(first), taken(second)) && !intersectTypes(made(second), taken(first))) return true
  if (depth > 3 || made(first).join() !== 'object' || made(second).join() !== 'object') return false
  const shared = (first.required ?? []).filter((key) => second.required?.includes(key))
  return shared.some((key) => exclusive(memberOf(first, key), memberOf(second, key), root, name, path, depth + 1))
}
