// The split of an answer into reasoning and content, and stop strings: whatever the cuts between pieces, the result is the same.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { importSource } from './support/source.mjs'

const { ReasoningSplitter } = await importSource('chat/reasoning.ts')
const { StopWatch } = await importSource('chat/stop.ts')

/** All ways to cut a text are many; these are whole, each character, and two pieces at every place. */
function* cuts(text) {
  yield [text]
  yield [...text]
  for (let at = 1; at < text.length; at++) yield [text.slice(0, at), text.slice(at)]
}

function split(pieces, thinking) {
  const splitter = new ReasoningSplitter(thinking)
  const shown = { reasoning: '', content: '' }
  for (const piece of [...pieces.flatMap((text) => splitter.push(text)), ...splitter.end()]) {
    assert.equal(Object.keys(piece).length, 1)
    for (const [side, text] of Object.entries(piece)) {
      assert.notEqual(text, '')
      shown[side] += text
    }
  }
  assert.deepEqual(shown, { reasoning: splitter.reasoning, content: splitter.content })
  return shown
}

describe('reasoning and content', () => {
  const cases = [
    ['a block and an answer', '<think>\nwhy\n\nso\n</think>\n\nAnswer\n', false, 'why\n\nso', 'Answer\n'],
    ['white space before the block', '\n <think>why</think>Answer', false, 'why', 'Answer'],
    ['a block that the prompt opened', 'why\n</think>\n\nAnswer', true, 'why', 'Answer'],
    ['only the closing tag after an opened block', '</think>', true, '', ''],
    ['no tags', 'Answer with <b> and\n\n', false, '', 'Answer with <b> and\n\n'],
    ['an empty pair', '<think>\n\n</think>\n\nAnswer', false, '', 'Answer'],
    ['a block that never ends', '<think>\nwhy </thin', false, 'why </thin', ''],
    ['an opened block that never ends', 'why\n\n', true, 'why', ''],
    ['tags in the middle of the answer', 'The tag <think> is a tag </think>.', false, '', 'The tag <think> is a tag </think>.'],
    ['a second block after the first', '<think>a</think>b<think>c</think>', false, 'a', 'b<think>c</think>'],
    ['the beginning of a tag at the end', '<thin', false, '', '<thin'],
    ['nothing', '', false, '', ''],
    ['white space alone', ' \n', false, '', ' \n'],
  ]
  for (const [name, text, thinking, reasoning, content] of cases) {
    it(`are told apart in ${name}`, () => {
      for (const pieces of cuts(text)) assert.deepEqual(split(pieces, thinking), { reasoning, content }, JSON.stringify(pieces))
    })
  }

  it('appear as soon as they are sure', () => {
    const splitter = new ReasoningSplitter(false)
    assert.deepEqual(splitter.push('<think>\nI see'), [{ reasoning: 'I see' }])
    assert.deepEqual(splitter.push(' it\n'), [{ reasoning: ' it' }])
    assert.deepEqual(splitter.push('</th'), [])
    assert.deepEqual(splitter.push('ink>\n'), [])
    assert.deepEqual(splitter.push('\nYes'), [{ content: 'Yes' }])
    assert.deepEqual(splitter.push(', <think'), [{ content: ', <think' }])
  })
})

describe('a stop string', () => {
  function watch(pieces, stops) {
    const watch = new StopWatch(stops)
    const text = pieces.map((piece) => watch.push(piece)).join('') + watch.end()
    return { text, hit: watch.hit }
  }
  const cases = [
    ['in the middle', 'one two three', ['two'], 'one ', true],
    ['that does not come', 'one two thre', ['three'], 'one two thre', false],
    ['at once', 'stop here', ['stop'], '', true],
    ['that repeats its beginning', 'aabaab', ['aab'], '', true],
    ['after a false start', 'aaab', ['aab'], 'a', true],
    ['that is complete before a longer one', 'xabcd', ['abcd', 'bc'], 'xa', true],
    ['of two that end together', 'xabc', ['bc', 'abc'], 'x', true],
    ['of one character', 'a\nb', ['\n'], 'a', true],
    ['outside the basic plane', 'a😁😀b', ['😀'], 'a😁', true],
    ['and no stop at all', 'all of it', [], 'all of it', false],
  ]
  for (const [name, text, stops, expected, hit] of cases) {
    it(`${name} ends the text the same way however it is cut`, () => {
      for (const pieces of cuts(text)) assert.deepEqual(watch(pieces, stops), { text: expected, hit }, JSON.stringify(pieces))
    })
  }

  it('holds back only what could still become one', () => {
    const watch = new StopWatch(['END', '\n\nUser'])
    assert.equal(watch.push('The E'), 'The ')
    assert.equal(watch.push('N'), '')
    assert.equal(watch.push('T\n'), 'ENT')
    assert.equal(watch.push('x'), '\nx')
    assert.equal(watch.push('EN'), '')
    assert.equal(watch.end(), 'EN')
  })
})
