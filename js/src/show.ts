// Values in the sentences of errors.

/** A value as a sentence shows it: short, and telling strings from numbers. */
export function show(value: unknown): string {
  if (typeof value === 'string') return `'${value.length > 60 ? `${value.slice(0, 60)}…` : value}'`
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${value.length}`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) return `an object of kind ${value.constructor?.name ?? 'Object'}`
  return String(value)
}
