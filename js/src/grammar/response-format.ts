// What `responseFormat` asks for, as a grammar.
import type { ResponseFormat } from '../types.js'
import { objectRule } from './json-text.js'
import { schemaExpression } from './json-schema.js'
import { regexExpression } from './regex.js'
import { Rules } from './rules.js'

/** GBNF text; undefined where the answer is free. Throws where the schema or expression is not supported, with what and where. */
export function formatGrammar(format: ResponseFormat | undefined): string | undefined {
  const rules = new Rules()
  switch (format?.type) {
    case 'json_object':
      return rules.text(objectRule(rules))
    case 'json_schema':
      return rules.text(schemaExpression(rules, format.schema, 'responseFormat.schema'))
    case 'regex':
      return rules.text(regexExpression(format.pattern, 'responseFormat.pattern'))
    case 'grammar':
      return format.grammar
    default:
      return undefined
  }
}
