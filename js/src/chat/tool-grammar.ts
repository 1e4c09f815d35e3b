// How an answer goes on that has to be a tool call: its opening tag, the grammar of what is inside, and its closing tag.
import { QwasmError } from '../errors.js'
import { schemaExpression } from '../grammar/json-schema.js'
import { either, quote, repeat, Rules } from '../grammar/rules.js'
import type { Bound } from './guide.js'
import { schemaTypes, XML_START } from './tool-call.js'
import type { ToolSchema, ToolSet } from './tools.js'

/** `template`: its text, which tells in which form the model has learnt to call. The tags are tokens, which no grammar draws. */
export function boundCall(tools: ToolSet, template: string): Bound {
  const rules = new Rules()
  const write = template.includes(XML_START) ? xmlCall : jsonCall
  const calls = [...tools].map(([name, tool]) => write(rules, name, tool))
  return { beginning: '<tool_call>\n', grammar: rules.text(either(calls)), ending: '\n</tool_call>' }
}

/** Arguments that the schema does not name are not made up. */
function closed({ parameters }: ToolSchema): Record<string, unknown> {
  return { additionalProperties: false, ...parameters, type: 'object' }
}

function jsonCall(rules: Rules, name: string, tool: ToolSchema): string {
  const parameters = schemaExpression(rules, closed(tool), `tools: ${name}`)
  return `${quote(`{"name": ${JSON.stringify(name)}, "arguments": `)} ${parameters} "}"`
}

function xmlCall(rules: Rules, name: string, { parameters, properties }: ToolSchema): string {
  const { required = [], $defs, definitions } = parameters
  const members = Object.entries(properties).map(([key, schema]) => {
    const value = xmlValue(rules, { ...(schema as object), $defs, definitions }, `tools: ${name}: ${key}`)
    return `(${quote(`<parameter=${key}>\n`)} ${value} ${quote('\n</parameter>\n')})${(required as unknown[]).includes(key) ? '' : '?'}`
  })
  return [quote(`${XML_START}${name}>\n`), ...members, quote('</function>')].join(' ')
}

/** A string stands there as it is, so it cannot hold what begins like a closing tag. */
function xmlValue(rules: Rules, schema: Record<string, unknown>, name: string): string {
  const { enum: values } = schema
  if (Array.isArray(values) && values.every((value) => typeof value === 'string')) return either(values.map(quote))
  const types = schemaTypes(schema)
  if (types.length > 0 && !types.includes('string')) return schemaExpression(rules, schema, name)
  const { minLength = 0, maxLength = Infinity } = schema
  for (const keyword of ['pattern', 'format']) {
    if (schema[keyword] !== undefined) throw new QwasmError('unsupported', `${name}: ${keyword} is not supported in calls in XML.`)
  }
  if (minLength === 0 && maxLength === Infinity) return rules.add('text', '([^<] | "<"+ [^/<])*')
  return rules.add('text', repeat('[^<]', Number(minLength), Number(maxLength)))
}
