// Embeddings as Qwen3-Embedding makes them: what a query becomes, and what is taken of a hidden state.

/** A query with the task that it stands for. Documents have no task. */
export function withInstruction(text: string, instruction: string | undefined): string {
  return instruction === undefined ? text : `Instruct: ${instruction}\nQuery:${text}`
}

/** The first `dimensions` values, of length 1 unless `normalize` is false. Square root and division round alike everywhere. */
export function toEmbedding(hidden: Float32Array, dimensions = hidden.length, normalize = true): Float32Array {
  const cut = hidden.slice(0, dimensions)
  if (!normalize) return cut
  const length = Math.sqrt(cut.reduce((sum, value) => sum + value * value, 0))
  return length === 0 ? cut : cut.map((value) => value / length)
}
