// The modules, and which of them run in this Node.js.
import { VARIANTS } from '../../scripts/tools.mjs'

export { VARIANTS }

/** Node.js 20 has no relaxed SIMD, unless a flag asks for it. */
export const nodeHasRelaxed = Number(process.versions.node.split('.')[0]) > 20

export const nodeVariants = VARIANTS.filter(variant => nodeHasRelaxed || !variant.startsWith('relaxed'))

/** What is chosen here with threads and without. */
export const nodeBest = nodeHasRelaxed ? 'relaxed' : 'simd'
export const nodeBestSingle = `${nodeBest}-single`
