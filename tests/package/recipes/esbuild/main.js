// Asks the model one question and shows what came of it.
import { loadModel } from 'qwasm'

const model = await loadModel('/models/demo/')
const { content, ids } = await model.chat([{ role: 'user', content: 'What is 47 + 85?' }], { temperature: 0 }).result()
document.querySelector('output').value = JSON.stringify({ content, ids, ...model.info })
