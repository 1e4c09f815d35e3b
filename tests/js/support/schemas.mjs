// Some sixty JSON schemas of the kinds that people use: nested, arrays, enums, bounds, patterns, optional members, unicode, recursion.

const object = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required, additionalProperties: false })
const short = { type: 'string', maxLength: 8 }
const digit = { type: 'integer', minimum: 0, maximum: 9 }

const scalars = {
  boolean: { type: 'boolean' },
  null: { type: 'null' },
  integer: { type: 'integer' },
  number: { type: 'number' },
  'short string': short,
  'string of a length': { type: 'string', minLength: 3, maxLength: 5 },
  'empty string': { type: 'string', maxLength: 0 },
  'enum of strings': { enum: ['red', 'green', 'dark "red"', 'gré\\en', ''] },
  'enum of all kinds': { enum: [1, -2.5, true, null, 'x', [1, { a: [] }], { b: 'c', d: {} }] },
  const: { const: { version: 2, tags: ['a', 'b'] } },
  'several types': { type: ['integer', 'null', 'boolean'] },
  'enum by type': { type: ['string', 'integer'], enum: ['a', 2, 2.5, null] },
  nullable: { type: 'integer', nullable: true, minimum: 5, maximum: 7 },
}

const numbers = {
  'integer from 0': { type: 'integer', minimum: 0 },
  'integer below 0': { type: 'integer', exclusiveMaximum: 0 },
  'integer from -15 to 127': { type: 'integer', minimum: -15, maximum: 127 },
  'integer from 98 to 1203': { type: 'integer', minimum: 98, maximum: 1203 },
  'integer between halves': { type: 'integer', minimum: 2.5, exclusiveMaximum: 4.5 },
  'number from 0 to 1': { type: 'number', minimum: 0, maximum: 1 },
  'number between 0 and 1': { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
  'number from -2.75 to 13.125': { type: 'number', minimum: -2.75, maximum: 13.125 },
  'number between -3.5 and -1.25': { type: 'number', exclusiveMinimum: -3.5, exclusiveMaximum: -1.25 },
  'number from 4.2 to 4.27': { type: 'number', minimum: 4.2, maximum: 4.27 },
  'number above 1e-7': { type: 'number', exclusiveMinimum: 1e-7, maximum: 2e-7 },
  'number from 99.5': { type: 'number', minimum: 99.5 },
  'multiple of 7': { type: 'integer', multipleOf: 7, minimum: -20, maximum: 90 },
  'multiple of 50': { type: 'integer', multipleOf: 50 },
}

const strings = {
  'pattern of a code': { type: 'string', pattern: '^[A-Z]{2}-\\d{3}$' },
  'pattern anywhere': { type: 'string', pattern: '[aeiou]{2}' },
  'pattern with quotes': { type: 'string', pattern: '^["\\\\\\n]{1,4}(x|y)?$' },
  'pattern of alternatives': { type: 'string', pattern: '^(?:cat|dog|b[^a-z]t)$|^\\w{1,3}$' },
  'pattern with a length': { type: 'string', pattern: '^[a-zà-ü]+$', minLength: 2, maxLength: 6 },
  'pattern of other characters': { type: 'string', pattern: '^\\S\\s[^\\d\\u{1F600}]\\D$' },
  date: { type: 'string', format: 'date' },
  time: { type: 'string', format: 'time' },
  'date-time': { type: 'string', format: 'date-time' },
  uuid: { type: 'string', format: 'uuid' },
  email: { type: 'string', format: 'email' },
  ipv4: { type: 'string', format: 'ipv4' },
}

const arrays = {
  'array of digits': { type: 'array', items: digit, maxItems: 6 },
  'array of two to three': { type: 'array', items: { enum: ['a', 'b'] }, minItems: 2, maxItems: 3 },
  'empty array': { type: 'array', maxItems: 0 },
  tuple: { type: 'array', prefixItems: [short, digit, { type: 'null' }], items: false },
  'tuple with a tail': { type: 'array', prefixItems: [{ const: 'head' }], items: digit, minItems: 2, maxItems: 5 },
  'array of arrays': { type: 'array', maxItems: 3, items: { type: 'array', items: { type: 'boolean' }, minItems: 1, maxItems: 2 } },
  'array without end': { type: 'array', items: digit },
}

const objects = {
  person: object({ name: short, age: { type: 'integer', minimum: 0, maximum: 130 }, admin: { type: 'boolean' } }),
  'optional members': object({ a: digit, b: digit, c: digit, d: digit }, ['c']),
  'only optional members': object({ x: digit, y: { type: 'boolean' } }, []),
  nested: object({ outer: object({ inner: object({ deep: { type: 'array', items: digit, maxItems: 2 } }) }), tail: { type: 'null' } }),
  'unicode keys': object({ größe: digit, 名前: { type: 'string', maxLength: 3 }, '😀 "quoted" \\': { type: 'boolean' }, '': digit }, ['größe', '']),
  'a map': { type: 'object', additionalProperties: digit },
  'additional members': { type: 'object', properties: { id: digit, idea: { type: 'boolean' } }, required: ['id'], additionalProperties: { type: 'string', maxLength: 2 } },
  'required without a schema': { type: 'object', properties: { a: digit }, required: ['a', 'b'], additionalProperties: { enum: ['b'] } },
}

const combined = {
  'any of': { anyOf: [digit, { type: 'string', maxLength: 2 }, object({ kind: { const: 'k' } })] },
  'one of by a tag': {
    oneOf: [object({ type: { const: 'circle' }, radius: digit }), object({ type: { const: 'square' }, side: digit }), { type: 'null' }],
  },
  'all of': {
    allOf: [
      { type: 'object', properties: { a: { type: 'integer', minimum: 3 } }, required: ['a'] },
      { properties: { a: { type: 'number', maximum: 5 }, b: { type: 'boolean' } }, required: ['b'] },
    ],
  },
  'any of beside members': { type: 'object', properties: { id: digit }, required: ['id'], anyOf: [{ properties: { a: digit }, required: ['a'] }, { properties: { b: digit }, required: ['b'] }] },
  'a list by reference': { $ref: '#/$defs/list', $defs: { list: object({ value: digit, next: { anyOf: [{ type: 'null' }, { $ref: '#/$defs/list' }] } }) } },
  'a tree by reference': {
    $ref: '#/definitions/node',
    definitions: { node: object({ leaf: { type: 'boolean' }, children: { type: 'array', maxItems: 2, items: { $ref: '#/definitions/node' } } }, ['leaf']) },
  },
  'a reference to the root': object({ n: digit, more: { $ref: '#' } }, ['n']),
  'a reference with members beside': { $defs: { base: { type: 'object', properties: { a: digit }, required: ['a'] } }, $ref: '#/$defs/base', properties: { b: { type: 'boolean' } }, required: ['b'] },
}

/** Schemas by what they are. */
export const schemas = { ...scalars, ...numbers, ...strings, ...arrays, ...objects, ...combined }
