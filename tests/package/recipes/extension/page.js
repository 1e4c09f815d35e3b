// Asks the model one question and shows what came of it. The package's dist folder lies in the extension as qwasm/; page.html?model=URL.
import { loadModel } from './qwasm/browser.js'

const model = await loadModel(new URLSearchParams(location.search).get('model'))
const { content, ids } = await model.chat([{ role: 'user', content: 'What is 47 + 85?' }], { temperature: 0 }).result()
document.querySelector('output').value = JSON.stringify({ content, ids, ...model.info })
