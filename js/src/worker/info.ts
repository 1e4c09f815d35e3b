// The core's description of a model in JavaScript's spelling, with the rung it runs on.
import type { Rung } from '../runtime/module.js'
import type { ModelInfo } from '../types.js'

export function makeModelInfo(raw: Record<string, unknown>, rung: Rung, chatTemplates: string[], loadMs: number, source: string): ModelInfo {
  const camel = Object.entries(raw).map(([key, value]) => [
    key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ])
  // `threads` is the core's own count: those that really started.
  return { ...Object.fromEntries(camel), variant: rung.variant, why: rung.why, chatTemplates, loadMs, source } as ModelInfo
}
