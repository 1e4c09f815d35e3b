// Conversations as callers write them → messages as templates expect them. Nothing of the caller's is changed.
import { QwasmError } from '../errors.js'
import { show } from '../show.js'

/** A message whose content is a string; everything else is as the caller gave it. */
export type PlainMessage = Record<string, unknown> & { role: string; content: string }

const ROLES = ['system', 'user', 'assistant', 'tool']

/** `parseArguments`: tool arguments given as JSON text become objects, for templates that know no text there. */
export function normalizeMessages(messages: unknown, parseArguments: boolean): PlainMessage[] {
  if (!Array.isArray(messages)) throw invalid(`The messages must be an array, not ${show(messages)}.`)
  if (messages.length === 0) throw invalid('The list of messages is empty; a chat needs at least one message.')
  return orderResults(messages.map((message, i) => normalizeMessage(message, `messages[${i}]`, parseArguments)))
}

/**
 * Results of several calls, told apart by ids, come in the order of their calls: templates show no ids, so models know results by their
 * place alone. A result of a call that nobody made is refused.
 */
function orderResults(messages: PlainMessage[]): PlainMessage[] {
  let calls: unknown[] = []
  const place = (message: PlainMessage) => calls.indexOf(message['tool_call_id'])
  const ordered: PlainMessage[] = []
  for (let i = 0; i < messages.length;) {
    const results: PlainMessage[] = []
    for (; messages[i]?.role === 'tool'; i++) results.push(checkResult(messages[i]!, calls, `messages[${i}]`))
    if (results.every((message) => place(message) >= 0)) results.sort((a, b) => place(a) - place(b))
    ordered.push(...results)
    const message = messages[i++]
    if (!message) break
    if (message.role === 'assistant') calls = ((message['tool_calls'] ?? []) as { id?: unknown }[]).map(({ id }) => id)
    ordered.push(message)
  }
  return ordered
}

function checkResult(message: PlainMessage, calls: readonly unknown[], at: string): PlainMessage {
  const id = message['tool_call_id']
  if (id === undefined || id === null || calls.includes(id)) return message
  const made = calls.filter((call) => call !== undefined).map(show).join(', ')
  throw invalid(`${at}.tool_call_id is ${show(id)}; ${made === '' ? 'no call before it has an id' : `the calls before it are ${made}`}.`)
}

function normalizeMessage(message: unknown, at: string, parseArguments: boolean): PlainMessage {
  if (!isObject(message)) throw invalid(`${at} must be an object with role and content, not ${show(message)}.`)
  const { role } = message
  if (typeof role !== 'string' || !ROLES.includes(role)) {
    throw invalid(`${at}.role must be one of ${ROLES.join(', ')}, not ${show(role)}.`)
  }
  const plain: PlainMessage = { ...message, role, content: joinContent(message['content'], role, at) }
  if (plain['tool_calls'] === null || plain['tool_calls'] === undefined) delete plain['tool_calls']
  else plain['tool_calls'] = normalizeCalls(plain['tool_calls'], `${at}.tool_calls`, parseArguments)
  const reasoning = plain['reasoning_content']
  if (reasoning === null || reasoning === undefined) delete plain['reasoning_content']
  else if (typeof reasoning !== 'string') throw invalid(`${at}.reasoning_content must be a string, not ${show(reasoning)}.`)
  return plain
}

function joinContent(content: unknown, role: string, at: string): string {
  if (typeof content === 'string') return content
  if (content === null || content === undefined) {
    if (role === 'assistant') return ''
    throw invalid(`${at}.content is missing; only an assistant's message may have none.`)
  }
  if (!Array.isArray(content)) throw invalid(`${at}.content must be a string or an array of text parts, not ${show(content)}.`)
  return content.map((part, i) => partText(part, `${at}.content[${i}]`)).join('')
}

function partText(part: unknown, at: string): string {
  if (isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string') return part['text']
  if (isObject(part) && typeof part['type'] === 'string' && part['type'] !== 'text') {
    throw new QwasmError('unsupported', `${at} is of type ${show(part['type'])}; only text parts are supported.`)
  }
  throw invalid(`${at} must be { type: 'text', text: '…' }.`)
}

function normalizeCalls(calls: unknown, at: string, parseArguments: boolean): unknown[] {
  if (!Array.isArray(calls)) throw invalid(`${at} must be an array, not ${show(calls)}.`)
  return calls.map((call, i) => {
    const where = `${at}[${i}]`
    const fn: unknown = isObject(call) && isObject(call['function']) ? call['function'] : call
    if (!isObject(fn) || typeof fn['name'] !== 'string') throw invalid(`${where} must have a function with a name.`)
    const given = fn['arguments'] ?? {}
    if (typeof given !== 'string' && !isObject(given)) {
      throw invalid(`${where}: the arguments must be an object or its JSON text, not ${show(given)}.`)
    }
    const plain = { ...fn, arguments: parseArguments && typeof given === 'string' ? parseObject(given, where) : given }
    return fn === call ? plain : { ...(call as object), function: plain }
  })
}

function parseObject(text: string, where: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return value
  } catch {
    // falls through to the sentence below, which also covers JSON that is no object
  }
  throw invalid(`${where}: the arguments are no JSON object: ${show(text)}.`)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function invalid(message: string): QwasmError {
  return new QwasmError('invalid_argument', message)
}
