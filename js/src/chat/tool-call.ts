// One tool call as the model wrote it, between its tags → name and arguments: Qwen3's JSON, and the XML of Qwen3-Coder.
import { show } from '../show.js'
import type { ToolSet } from './tools.js'

/** `arguments`: JSON text of an object. */
export interface Call {
  name: string
  arguments: string
}

/** How a call in XML begins, and how one knows a template that writes such. */
export const XML_START = '<function='

/** Whether a text may become a call; false as soon as it cannot. */
export function beginsCall(body: string): boolean {
  const begun = body.trimStart()
  return begun.startsWith('{') || begun.startsWith(XML_START) || XML_START.startsWith(begun)
}

/** Whether a tag after this text would end the call, rather than stand inside a value of it. */
export function mayEnd(body: string): boolean {
  if (!body.trimStart().startsWith(XML_START)) return !breaksInString(body)
  return /<\/function>\s*$/.test(body) || body.lastIndexOf('<parameter=') <= body.lastIndexOf('</parameter>')
}

/** Whether a text breaks off inside a JSON string. A line break is no part of strings, so a broken string ends there. */
function breaksInString(text: string): boolean {
  return text.replace(/"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*(?:"|\\?\n)/g, '').includes('"')
}

/** The call, or a sentence's end that says why it is none. */
export function parseCall(body: string, tools: ToolSet): Call | string {
  const text = body.trim()
  const call = text.startsWith(XML_START) ? parseXml(text, tools) : parseJson(text)
  if (typeof call === 'string' || tools.has(call.name)) return call
  return `there is no tool ${show(call.name)}; the tools are ${[...tools.keys()].join(', ')}`
}

function parseJson(text: string): Call | string {
  const call = parsed(text)
  if (!isObject(call)) return `it is no JSON object: ${show(text)}`
  const { name, arguments: given = {} } = call
  if (typeof name !== 'string') return `it has no name: ${show(text)}`
  if (!isObject(given)) return `its arguments are no object: ${show(given)}`
  return { name, arguments: memberText(text, 'arguments') ?? '{}' }
}

const JSON_MARKS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]/g

/** The text of an object's member, in JSON known to be valid: written anew, 12345678901234567890 would lose its last digits. */
function memberText(json: string, member: string): string | undefined {
  let depth = 0
  let last = ''
  let key: unknown
  let start = 0
  let text: string | undefined
  for (const { 0: mark, index } of json.matchAll(JSON_MARKS)) {
    if (depth === 1) {
      if (mark === ':') start = index + 1
      else if (mark.startsWith('"') && last !== ':') key = JSON.parse(mark)
      else if ((mark === ',' || mark === '}') && key === member) text = json.slice(start, index).trim()
    }
    if (mark === '{' || mark === '[') depth++
    else if (mark === '}' || mark === ']') depth--
    last = mark
  }
  return text
}

const XML_CALL = /^<function=([^>\n]+)>\s*([^]*)<\/function>$/
const XML_PARAMETER = /<parameter=([^>\n]+)>\n?([^]*?)\n?<\/parameter>\s*(?=<parameter=|$)/gy

function parseXml(text: string, tools: ToolSet): Call | string {
  const [, name = '', parameters = ''] = XML_CALL.exec(text) ?? []
  const schemas = tools.get(name)?.properties ?? {}
  const members = new Map<string, string>()
  let read = 0
  for (const [whole, key = '', value = ''] of parameters.matchAll(XML_PARAMETER)) {
    members.set(key, valueText(value, Object.hasOwn(schemas, key) ? schemas[key] : undefined))
    read += whole.length
  }
  if (name === '' || read < parameters.length) return `its tags do not fit together: ${show(text)}`
  return { name, arguments: `{${[...members].map(([key, value]) => `${JSON.stringify(key)}: ${value}`).join(', ')}}` }
}

const PYTHON_WORDS: Record<string, string> = { True: 'true', False: 'false', None: 'null' } // as templates write what went before

/** A parameter's text as JSON: of a type that its schema names where it reads as one, else a string. */
function valueText(text: string, schema: unknown): string {
  const json = PYTHON_WORDS[text.trim()] ?? text.trim()
  const types = jsonTypes(parsed(json))
  return schemaTypes(schema).some((type) => types.includes(type)) ? json : JSON.stringify(text)
}

const NOT_STRINGS = ['object', 'array', 'number', 'integer', 'boolean', 'null']

/** The types that a schema lets through, as far as it says so by name; 'string' may be missing. */
export function schemaTypes(schema: unknown): string[] {
  if (!isObject(schema)) return []
  if (schema['$ref'] !== undefined) return NOT_STRINGS
  if (schema['type'] !== undefined) return [schema['type']].flat().map(String)
  const branches = [schema['anyOf'], schema['oneOf'], schema['allOf']].filter(Array.isArray).flat()
  const values = [schema['enum'], [schema['const']]].filter(Array.isArray).flat()
  return [...branches.flatMap(schemaTypes), ...values.flatMap(jsonTypes)]
}

/** The types of a value that is no string. */
function jsonTypes(value: unknown): string[] {
  if (value === undefined || typeof value === 'string') return []
  if (value === null) return ['null']
  if (Array.isArray(value)) return ['array']
  return Number.isInteger(value) ? ['number', 'integer'] : [typeof value]
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
