// Models in files and folders of this machine, and what is no model's file wherever it lies.
import assert from 'node:assert/strict'
import { appendFileSync, renameSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { temporaryFolder } from './support/models.mjs'
import { folder, read, readWhole, SIZE, transport, truth } from './support/transport.mjs'

const { FilesSource, SourceChanged, difference, foreignContent, mergedState, openFolder, refuseForeign } = transport

describe('a local folder', () => {
  it('gives ranges, whole files and states, and tells what is missing', async () => {
    const source = await openFolder(folder)
    for (const file of Object.keys(truth)) assert.equal((await readWhole(source, file)).size, truth[file].length)
    for (const [offset, length, there] of [
      [1000, 50_000, 50_000],
      [SIZE - 3, 10, 3],
      [SIZE + 1, 8, 0],
    ]) {
      const { bytes, state } = await read(source, 'model.safetensors', offset, length)
      assert.equal(bytes.length, there)
      assert.deepEqual(state, await source.stat('model.safetensors'))
    }
    assert.equal(await source.stat('nothing'), 'missing')
    assert.equal(await source.read('nothing', 0, 0, assert.fail), 'missing')
    await source.close()
  })

  it('gives large files in parts of a megabyte at most, several reads at a time', async () => {
    const local = temporaryFolder()
    const large = Buffer.alloc(5e6, 'abcdefg')
    writeFileSync(join(local, 'large'), large)
    const source = await openFolder(local)
    const gather = async (offset, length) => {
      const parts = []
      await source.read('large', offset, length, (part) => parts.push(Buffer.from(part)))
      assert.ok(parts.every((part) => part.length <= 1 << 20))
      return Buffer.concat(parts)
    }
    const all = await Promise.all([gather(0, 2e6), gather(2e6, 1e6), gather(3e6, 0)])
    assert.ok(Buffer.concat(all).equals(large))
    await source.close()
  })

  for (const [how, change] of [
    ['grows', (path) => appendFileSync(path, 'more')],
    ['is cut', (path) => truncateSync(path, 10)],
    ['is written anew', (path) => utimesSync(path, 1, 1)],
  ]) {
    it(`tells of a file that ${how} while it is read, and gives it as it is then`, async () => {
      const local = temporaryFolder()
      const path = join(local, 'file')
      writeFileSync(path, 'something longer')
      const source = await openFolder(local)
      const before = await source.read('file', 0, 4, () => {})
      change(path)
      const changed = (error) => error instanceof SourceChanged && error.file === 'file' && error.message.startsWith(path)
      await assert.rejects(source.read('file', 4, 8, () => {}), changed)
      const after = await source.stat('file')
      assert.ok(difference(before, after))
      assert.deepEqual(await source.read('file', 0, 0, () => {}), after)
      await source.close()
    })
  }

  it('keeps giving a file that is replaced', async () => {
    const local = temporaryFolder()
    writeFileSync(join(local, 'file'), 'old')
    const source = await openFolder(local)
    await source.stat('file')
    writeFileSync(join(local, 'new'), 'newer')
    renameSync(join(local, 'new'), join(local, 'file'))
    let text = ''
    await source.read('file', 0, 0, (part) => (text += Buffer.from(part)))
    assert.equal(text, 'old')
    await source.close()
  })

  it('that does not exist is named', () =>
    assert.rejects(openFolder('/nowhere/at/all'), { code: 'missing', message: /\/nowhere\/at\/all/ }))
  it('is not a file', () =>
    assert.rejects(openFolder(join(folder, 'config.json')), { code: 'invalid_argument', message: /config\.json is a file/ }))
  it('may hold a folder where a file should be', async () => {
    const source = await openFolder(join(folder, '..'))
    await assert.rejects(
      source.read(folder.split('/').at(-1), 0, 0, () => {}),
      { code: 'io', message: /cannot be read/ }
    )
    await source.close()
  })
})

describe('files that were chosen', () => {
  const given = Object.entries(truth).map(([name, bytes]) => ({ name, blob: new Blob([bytes]) }))

  it('give ranges, whole files and states, and tell what is missing', async () => {
    const source = new FilesSource(given)
    for (const file of Object.keys(truth)) assert.equal((await readWhole(source, file)).size, truth[file].length)
    assert.equal((await read(source, 'model.safetensors', 1000, 50_000)).bytes.length, 50_000)
    assert.equal((await read(source, 'model.safetensors', SIZE - 3, 10)).bytes.length, 3)
    assert.equal((await read(source, 'model.safetensors', SIZE + 1, 10)).bytes.length, 0)
    assert.equal(await source.stat('nothing'), 'missing')
    assert.equal(await source.read('nothing', 0, 0, assert.fail), 'missing')
  })
  it('are known by their size and their date, where they have one', async () => {
    const blob = new Blob(['abc'])
    const source = new FilesSource([
      { name: 'a', blob },
      { name: 'b', blob, lastModified: 5 },
    ])
    const states = await Promise.all(['a', 'b'].map((name) => source.stat(name)))
    assert.deepEqual(states, [null, '5'].map((lastModified) => ({ size: 3, etag: null, lastModified })))
  })
  it('that cannot be read any more are named', async () => {
    const refused = { size: 3, slice: () => ({ arrayBuffer: () => Promise.reject(new Error('it has changed')) }) }
    await assert.rejects(
      new FilesSource([{ name: 'a', blob: refused, lastModified: 1 }]).read('a', 0, 0, assert.fail),
      { code: 'io', message: /^a among the 1 given files cannot be read: it has changed/ }
    )
  })
})

describe('what is no model’s file', () => {
  const bytes = (text) => Buffer.from(text, 'latin1')

  for (const [text, words] of [
    ['\n<!DOCTYPE html><html>', /HTML page/],
    ['\xef\xbb\xbf<html lang="en">', /HTML page/],
    ['<?xml version="1.0"?><Error>', /XML/],
    ['<Error><Code>AccessDenied</Code>', /XML/],
    ['version https://git-lfs.github.com/spec/v1\noid', /Git LFS pointer.*git lfs pull/],
    ['PK\x03\x04\x14\0', /ZIP/],
    ['GGUF\x03\0\0\0', /GGUF/],
    [gzipSync('weights').toString('latin1'), /gzip/],
    ['{"error": "Rate limited"}', /JSON text \(\{"error": "Rate limited"\}\)/],
  ]) {
    it(`is ${String(words)}`, () => {
      assert.match(foreignContent('model.safetensors', bytes(text)), words)
      assert.match(foreignContent('tokenizer.json', bytes(text)), words)
    })
  }
  it('is not the GGUF file that was asked for', () => {
    assert.equal(foreignContent('a.gguf', bytes('GGUF\x03\0\0\0')), undefined)
    assert.match(foreignContent('a.gguf', bytes('<!doctype html>')), /HTML/)
  })
  it('is any JSON for weights', () => assert.match(foreignContent('a.safetensors', bytes('{"message": "no"}')), /JSON/))

  it('is not what is the model’s own', () => {
    for (const [name, text] of [
      ['config.json', '{"architectures": []}'],
      ['vocab.json', '{"error": 17, "!": 0}'],
      ['merges.txt', '#version: 0.2\nĠ Ġ'],
      ['chat_template.jinja', '{%- if tools %}'],
      ['README', ''],
    ])
      assert.equal(foreignContent(name, bytes(text)), undefined, name)
  })
  it('is not a safetensors header, whatever its length looks like', () => {
    for (const length of ['\x1f\x8b\x08\0', 'PK\x03\x04', '{\n\0\0', '<?xm'])
      assert.equal(foreignContent('model.safetensors', bytes(`${length}\0\0\0\0{"__metadata__"`)), undefined)
  })
  it('is refused with its place, and with the status where a server sent it', () => {
    const page = bytes('<html>')
    const state = { size: 6, etag: null, lastModified: null }
    assert.throws(() => refuseForeign('/m/config.json', 'config.json', page, state), {
      code: 'invalid_file',
      message: "/m/config.json holds an HTML page, not the model's config.json.",
    })
    const answer = { ...state, status: 200, origin: 'http://b' }
    assert.throws(() => refuseForeign('http://a/config.json', 'config.json', page, answer), {
      code: 'http',
      message: "http://a/config.json (status 200, from http://b) holds an HTML page, not the model's config.json.",
    })
  })
})

describe('two states of a file', () => {
  const state = (size, etag = null, lastModified = null) => ({ size, etag, lastModified })

  it('differ in what both know', () => {
    assert.match(difference(state(1), state(2)), /1 bytes before, 2 now/)
    assert.match(difference(state(-1, '"a"'), state(2, '"b"')), /ETag "a" before, "b" now/)
    assert.match(difference(state(1, null, 'x'), state(1, '"a"', 'y')), /last modified x before, y now/)
  })
  it('agree where one does not know, and where the ETag is the same', () => {
    assert.equal(difference(state(-1, null, 'x'), state(5, '"a"')), undefined)
    assert.equal(difference(state(5, '"a"', 'x'), state(5, '"a"', 'y')), undefined)
  })
  it('together tell what each knows', () => {
    assert.deepEqual(mergedState(state(5, null, 'x'), state(-1, '"a"')), state(5, '"a"', 'x'))
    assert.deepEqual(mergedState(undefined, state(5)), state(5))
  })
})
