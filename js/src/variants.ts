// The modules, the fastest first.

export const VARIANTS = ['relaxed', 'simd', 'relaxed-single', 'simd-single'] as const

/**
 * A compiled module: with relaxed SIMD, which is faster, or with plain SIMD; with threads or, where `-single` stands, without. Tokens and
 * logits are the same in all.
 */
export type Variant = (typeof VARIANTS)[number]
