// The tools of a chat: what the caller gave, by name, and which of them the answer may or must call.
import { QwasmError } from '../errors.js'
import { show } from '../show.js'
import type { ChatOptions, Tool } from '../types.js'

/** What is known of a tool's parameters: the JSON schema of all, and of each. */
export interface ToolSchema {
  parameters: Record<string, unknown>
  properties: Record<string, unknown>
}

/** Tools by name. */
export type ToolSet = ReadonlyMap<string, ToolSchema>

/** The tools of a chat, checked. */
export function readTools(tools: readonly Tool[]): ToolSet {
  const set = new Map<string, ToolSchema>()
  tools.forEach((tool, i) => {
    const fn = isObject(tool['function']) ? tool['function'] : tool
    const { name, parameters = {} } = fn
    if (typeof name !== 'string' || name === '') throw invalid(`tools[${i}] must have a function with a name, not ${show(name)}.`)
    if (set.has(name)) throw invalid(`tools[${i}] has the name ${show(name)}, which a tool before it has.`)
    if (!isObject(parameters)) throw invalid(`tools[${i}]: parameters must be a JSON schema, not ${show(parameters)}.`)
    const { properties } = parameters
    set.set(name, { parameters, properties: isObject(properties) ? properties : {} })
  })
  return set
}

/** The tools that the template shows, those that may be called, and whether one must be. */
export function chooseTools({ tools = [], toolChoice = 'auto' }: Pick<ChatOptions, 'tools' | 'toolChoice'>) {
  if (toolChoice === 'none') return { shown: [], callable: new Map() as ToolSet, required: false }
  const all = readTools(tools)
  if (toolChoice === 'auto') return { shown: tools, callable: all, required: false }
  if (all.size === 0) throw invalid(`chat: toolChoice asks for a call, but there are no tools.`)
  if (toolChoice === 'required') return { shown: tools, callable: all, required: true }
  const chosen = all.get(toolChoice.name)
  if (!chosen) throw invalid(`chat: toolChoice names ${show(toolChoice.name)}; the tools are ${[...all.keys()].join(', ')}.`)
  return { shown: tools, callable: new Map([[toolChoice.name, chosen]]) as ToolSet, required: true }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function invalid(message: string): QwasmError {
  return new QwasmError('invalid_argument', message)
}
