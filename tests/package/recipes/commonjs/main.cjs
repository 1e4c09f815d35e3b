// node main.cjs FOLDER-OR-URL: asks the model one question and prints what came of it.
const { loadModel } = require('qwasm')

async function main() {
  const model = await loadModel(process.argv[2])
  const { content, ids } = await model.chat([{ role: 'user', content: 'What is 47 + 85?' }], { temperature: 0 }).result()
  console.log(JSON.stringify({ content, ids, ...model.info }))
  await model.dispose()
}

main()
