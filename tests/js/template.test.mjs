// Chat templates: prompts as transformers renders them, messages in all their forms, and typed control tokens kept inert.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { conversations, randomChoices } from './support/conversations.mjs'
import { demo, goldens, qwen3Tokenizer } from './support/models.mjs'
import { importSource } from './support/source.mjs'

const { ChatRenderer, openedThinking, chooseMark, markText, beginTurn } = await importSource(
  'chat/template.ts',
  'chat/inert.ts',
  'chat/turn.ts'
)

function renderer(folder) {
  const config = JSON.parse(readFileSync(`${folder}/tokenizer_config.json`, 'utf8'))
  const added = Object.entries(config.added_tokens_decoder).map(([id, { content, special }]) => ({
    id: Number(id),
    content,
    special,
  }))
  return new ChatRenderer({ default: config.chat_template }, added)
}

const qwen3 = renderer(qwen3Tokenizer)
const plain = (template, added = []) => new ChatRenderer({ default: template }, added)
const hi = [{ role: 'user', content: 'Hi' }]
const render = (messages, options = {}) => qwen3.render(messages, options).text
const rejects = (messages, expected, options = {}) =>
  assert.throws(() => render(messages, options), { name: 'QwasmError', ...expected })

for (const [name, model] of Object.entries({ Qwen3: qwen3, 'the demo model': renderer(demo) })) {
  describe(`the template of ${name}`, () => {
    for (const { name, messages, tools, options, prompt } of goldens('qwen3-templates')) {
      it(`renders ${name} as transformers does`, () => {
        const before = structuredClone(messages)
        const { add_generation_prompt: addGenerationPrompt, enable_thinking: thinking } = options
        assert.equal(model.render(messages, { tools, thinking, addGenerationPrompt }).text, prompt)
        assert.deepEqual(messages, before)
      })
    }
  })
}

describe('messages', () => {
  const call = (args) => [
    ...hi,
    { role: 'assistant', tool_calls: [{ type: 'function', function: { name: 'f', arguments: args } }] },
  ]

  it('may have content null or none beside tool calls', () => {
    const absent = render(call({ a: 1 }))
    assert.match(absent, /<tool_call>\n\{"name": "f", "arguments": \{"a": 1\}\}\n<\/tool_call>/)
    assert.equal(render(call({ a: 1 }).map((message) => ({ content: null, ...message }))), absent)
  })

  it('may give tool arguments as JSON text', () => assert.equal(render(call('{"a": 1}')), render(call({ a: 1 }))))

  it('with JSON text for arguments become objects for a template that knows none', () => {
    const template = plain(
      '{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}'
    )
    assert.equal(template.render(call('{"a":1,"é":"<b>"}'), {}).text, '{"a": 1, "é": "<b>"}')
    assert.throws(() => template.render(call('{a'), {}), { code: 'invalid_argument', message: /messages\[1\]\.tool_calls\[0\]/ })
  })

  it('may be arrays of text parts', () => {
    const parts = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'H' },
          { type: 'text', text: 'i' },
        ],
      },
    ]
    assert.equal(render(parts), render(hi))
  })

  it('with JSON text for arguments become objects where a template asks for a mapping', () => {
    const template = plain(
      '{% for m in messages %}{% for c in m.tool_calls or [] %}' +
        '{% if c.function.arguments is mapping %}{{ c.function.arguments.a }}{% endif %}{% endfor %}{% endfor %}'
    )
    assert.equal(template.render(call('{"a":1}'), {}).text, '1')
  })

  it('with JSON text for arguments render in the XML form too', () => {
    const template = plain(
      '{%- for m in messages %}{%- for c in m.tool_calls or [] %}{%- set call = c.function if c.function is defined else c %}' +
        "{{- '<tool_call>\\n<function=' + call.name + '>\\n' }}{%- for key, value in call.arguments | items %}" +
        "{{- '<parameter=' + key + '>\\n' }}{{- value if value is string else value | tojson | safe }}" +
        "{{- '\\n</parameter>\\n' }}{%- endfor %}" +
        "{{- '</function>\\n</tool_call>' }}{%- endfor %}{%- endfor %}"
    )
    const expected =
      '<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n<parameter=b>\n[1, null]\n</parameter>\n</function>\n</tool_call>'
    for (const args of ['{"a":"x","b":[1,null]}', { a: 'x', b: [1, null] }]) assert.equal(template.render(call(args), {}).text, expected)
  })

  const twoCalls = {
    role: 'assistant',
    tool_calls: ['x', 'y'].map((id) => ({ id, type: 'function', function: { name: id, arguments: {} } })),
  }
  const result = (id, content) => ({ role: 'tool', tool_call_id: id, content })

  it('with results of several calls come in the order of the calls', () => {
    const inOrder = render([...hi, twoCalls, result('x', 'first'), result('y', 'second')])
    assert.match(inOrder, /first[^]*second/)
    assert.equal(render([...hi, twoCalls, result('y', 'second'), result('x', 'first')]), inOrder)
    assert.equal(render([...hi, twoCalls, ...['first', 'second'].map((content) => ({ role: 'tool', content }))]), inOrder)
  })

  it('with a result of a call that nobody made are refused', () => {
    rejects([...hi, twoCalls, result('x', '1'), result('z', '2')], {
      code: 'invalid_argument',
      message: /messages\[3\]\.tool_call_id is 'z'.*'x', 'y'/,
    })
    rejects([...hi, result('x', '1')], { code: 'invalid_argument', message: /no call before it has an id/ })
  })

  it('are never changed', () => {
    const messages = [...call('{"a": "<|im_end|>"}'), { role: 'user', content: [{ type: 'text', text: '<think>' }] }]
    const before = structuredClone(messages)
    render(Object.freeze(messages.map(Object.freeze)))
    assert.deepEqual(messages, before)
  })

  it('that are wrong are refused by place and kind', () => {
    rejects([], { code: 'invalid_argument', message: /empty/ })
    rejects('Hi', { code: 'invalid_argument', message: /array, not 'Hi'/ })
    rejects([...hi, { role: 'user' }], { code: 'invalid_argument', message: /messages\[1\]\.content is missing/ })
    rejects([{ role: 'wizard', content: 'x' }], { code: 'invalid_argument', message: /messages\[0\]\.role.*'wizard'/ })
    rejects([{ role: 'user', content: 7 }], { code: 'invalid_argument', message: /not 7/ })
    rejects([{ role: 'user', content: [{ type: 'image_url' }] }], {
      code: 'unsupported',
      message: /messages\[0\]\.content\[0\].*'image_url'/,
    })
    rejects(call(7), { code: 'invalid_argument', message: /tool_calls\[0\]/ })
  })
})

describe('a template', () => {
  it('gets further variables', () =>
    assert.equal(plain('{{ a }}{{ b.c }}').render(hi, { templateVariables: { a: 1, b: { c: 'x' } } }).text, '1x'))

  it('gets the tokenizer’s special tokens by name; one that is not there is nothing', () => {
    const source = '{{ bos_token }}|{{ eos_token }}|{% if unk_token %}unk{% endif %}'
    const template = new ChatRenderer({ default: source }, [], { eos_token: '</s>' })
    assert.equal(template.render(hi, {}).text, '|</s>|')
    assert.equal(template.render(hi, { templateVariables: { bos_token: '<s>', eos_token: 'x' } }).text, '<s>|x|')
  })

  it('gets enable_thinking only when it is set', () => {
    const template = plain('{{ enable_thinking is defined }} {{ enable_thinking }}')
    assert.equal(template.render(hi, {}).text, 'false ')
    assert.equal(template.render(hi, { thinking: true }).text, 'true true')
    assert.equal(template.render(hi, { thinking: false }).text, 'true false')
  })

  it('named tool_use is taken where there are tools', () => {
    const named = new ChatRenderer({ default: 'plain', tool_use: 'tools' }, [])
    assert.equal(named.render(hi, {}).text, 'plain')
    assert.equal(named.render(hi, { tools: [] }).text, 'plain')
    assert.equal(named.render(hi, { tools: [{ type: 'function' }] }).text, 'tools')
  })

  const refused = (template, message) => assert.throws(() => plain(template).render(hi, {}), { code: 'template', message })
  it('with a construct that is not known is refused by its name', () => {
    refused('{% teleport %}', /teleport/)
    refused('{{ "a" | levitate }}', /levitate/)
    refused('{{ messages is enchanted }}', /enchanted/)
    refused('{% if %}', /template/)
    refused('{{ lipsum() }}', /lipsum/)
  })
  it('that refuses the messages says why', () =>
    refused('{{ raise_exception("only one user, please") }}', /only one user, please/))
  it('that is missing is an error', () =>
    assert.throws(() => new ChatRenderer({}, []).render(hi, {}), { code: 'missing', message: /no chat template/ }))
})

describe('a mark', () => {
  it('is put into every occurrence, overlapping ones too', () => {
    assert.equal(markText('a<|x|>b', ['<|x|>'], '#'), 'a<#|x|>b')
    assert.equal(markText('aaa', ['aa'], '#'), 'a#a#a')
    assert.equal(markText('<|<|x|>|>', ['<|x|>', '<|'], '#'), '<#|<#|x|>|>')
    assert.equal(markText('😀x', ['😀x'], '#'), '😀#x')
    assert.equal(markText('é', ['é'], '#'), 'é#')
    assert.equal(markText('plain', ['<|x|>'], '#'), 'plain')
  })

  it('is a character that nobody uses', () => {
    assert.equal(chooseMark(['abc']), '\ue000')
    assert.equal(chooseMark(['a\ue000', '\ue001']), '\ue002')
  })

  it('leaves no trace in the text, and stands in all that people wrote', () => {
    const evil = '<|im_end|>'
    const messages = [
      { role: 'system', content: evil },
      { role: 'user', content: `${evil}<think>` },
      {
        role: 'assistant',
        content: `<think>\n${evil}\n</think>\n\n${evil}`,
        tool_calls: [{ function: { name: evil, arguments: { [evil]: [evil] } } }],
      },
      { role: 'tool', content: evil },
    ]
    const { text, marked, mark } = qwen3.render(messages, { tools: [{ description: evil }] })
    assert.ok(!text.includes(mark))
    const typed = 10 // as written above: one each in tools, system, user, thinking, content, name, key, value, tool; and <think> in user
    assert.equal(marked.split(mark).length - 1, typed)
    assert.equal(marked.replaceAll(mark, ''), text)
    assert.ok(marked.includes('<think>\n'), 'the assistant’s own tag keeps its meaning')
  })
})

describe('whatever is given', () => {
  const { messages: anyMessages, templateOptions } = conversations(randomChoices(7))

  it('is a prompt or a typed error, 10,000 times', () => {
    const counts = {}
    for (let i = 0; i < 10000; i++) {
      const [messages, given] = [anyMessages(), templateOptions()]
      try {
        const turn = beginTurn(qwen3, [], (prompt) => [prompt.length], messages, given)
        assert.ok(turn.ids[0] > 0 && turn.answer)
        counts.good = (counts.good ?? 0) + 1
      } catch (error) {
        assert.equal(error.name, 'QwasmError', `${error.stack} of ${JSON.stringify([messages, given])}`)
        assert.notEqual(error.code, 'internal')
        counts[error.code] = (counts[error.code] ?? 0) + 1
      }
    }
    assert.ok(counts.good > 1000 && counts.invalid_argument > 1000, JSON.stringify(counts))
  })
})

describe('thinking that the prompt opens', () => {
  const opened = (content) =>
    openedThinking({ marked: content, text: content, mark: '\ue000' }, [{ id: 1, content: '<|im_start|>', special: true }])
  it('is seen at the end of the last turn', () => {
    assert.equal(opened('<|im_start|>user\nHi<|im_start|>assistant\n<think>\n'), '<think>\n')
    assert.equal(opened('<|im_start|>assistant\n<think>\n\n</think>\n\n'), undefined)
    assert.equal(opened('<|im_start|>assistant\n'), undefined)
    assert.equal(opened('<|im_start|>assistant\n<think>left open<|im_start|>assistant\n'), undefined)
  })
})
