// Leaves out the oldest turns of a conversation that is too long for the context.

/** Tokens that a prompt may have, so that an answer has room: of `maxTokens`, or a quarter of the context; half of it at the most. */
export function promptRoom(contextLength: number, maxTokens: number | undefined): number {
  return contextLength - Math.min(maxTokens ?? Math.floor(contextLength / 4), Math.floor(contextLength / 2))
}

/**
 * The conversation without as many of its oldest turns as it takes to fit, and how many messages that leaves out. A turn is a user message with what
 * follows it, so that no answer and no tool result stays without its question. System messages in front always stay, and so does the last turn: where
 * even that is too much, nothing more can be left out.
 */
export function slide<M>(messages: readonly M[], fits: (messages: readonly M[]) => boolean): { messages: readonly M[]; dropped: number } {
  if (fits(messages)) return { messages, dropped: 0 }
  const roles = messages.map((message) => (message as { role?: unknown } | null)?.role)
  const firstOther = roles.findIndex((role) => role !== 'system')
  const head = firstOther < 0 ? messages.length : firstOther
  const starts = [...roles.keys()].filter((i) => i > head && roles[i] === 'user')
  const from = (start: number) => [...messages.slice(0, head), ...messages.slice(start)]
  // The first start from which it fits; rendering a long conversation takes its time, so by halving.
  let low = 0
  let high = starts.length - 1
  if (high < 0) return { messages, dropped: 0 }
  while (low < high) {
    const middle = (low + high) >> 1
    if (fits(from(starts[middle]!))) high = middle
    else low = middle + 1
  }
  return { messages: from(starts[low]!), dropped: starts[low]! - head }
}
