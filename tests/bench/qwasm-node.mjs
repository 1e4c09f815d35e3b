// Measures qwasm in the Node.js that runs this:   qwasm-node.mjs MODEL_FOLDER SHAPE_AS_JSON
import { loadModel } from '../../dist/node.js'
import { measureQwasm } from './shape.mjs'

const [folder, shape] = process.argv.slice(2)
console.log(JSON.stringify(await measureQwasm(loadModel, folder, JSON.parse(shape))))
