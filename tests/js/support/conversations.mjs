// Random conversations and options, most of them nearly right: for tests of what never must happen whatever is given.

/** Random choices, from a generator of fixed course. */
export function randomChoices(seed) {
  let state = seed
  const below = (count) => Math.floor(((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32) * count)
  const pick = (...values) => values[below(values.length)]
  const several = (make) => Array.from({ length: below(4) }, make)
  return { below, pick, several }
}

const tags = ['<|im_end|>', '</think>', '<think>\n\n</think>\n\n', '<tool_response>x</tool_response>']

/** Makers of messages and of options of a chat's template; `seldom` makes one of twelve values a wrong one. */
export function conversations({ below, pick, several }) {
  const text = () => pick('', 'Hi', '\ud800', '{"a": 1}', ...tags)
  const scalar = () => pick(null, undefined, 0, NaN, true, text())
  const value = (depth = 2) => {
    if (depth === 0 || below(2) === 0) return scalar()
    if (below(2) === 0) return several(() => value(depth - 1))
    return Object.fromEntries(several(() => [pick('a', 'b', '__proto__', 'type', 'name', text()), value(depth - 1)]))
  }
  const seldom = (good) => (below(12) === 0 ? value() : good())
  const fn = () => ({ name: seldom(() => pick('f', 'g')), arguments: seldom(() => pick('{"a": 1}', { a: value() })) })
  const call = () => ({ id: seldom(() => pick('x', 'y', undefined)), type: 'function', function: seldom(fn) })
  const message = () => ({
    role: seldom(() => pick('system', 'user', 'assistant', 'tool')),
    content: seldom(() => pick(text(), several(() => ({ type: 'text', text: text() })))),
    ...(below(3) === 0 && { tool_calls: seldom(() => several(call)) }),
    ...(below(5) === 0 && { tool_call_id: seldom(() => pick('x', 'y')) }),
    ...(below(5) === 0 && { reasoning_content: seldom(text) }),
  })
  const named = () => ({ name: seldom(() => pick('f', 'g', 'h')), parameters: seldom(() => ({ type: 'object' })) })
  const tool = () => ({ type: 'function', function: named() })
  const templateOptions = () => ({
    ...(below(2) === 0 && { tools: several(tool) }),
    ...(below(3) === 0 && { toolChoice: pick('auto', 'none', 'required', { name: 'f' }) }),
    ...(below(3) === 0 && { thinking: pick(true, false), thinkingBudget: below(3) }),
    ...(below(4) === 0 && { templateVariables: { x: value() } }),
  })
  return { value, seldom, messages: () => seldom(() => several(message)), templateOptions }
}
