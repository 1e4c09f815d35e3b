// A sequence of tokens in the core.
import type { Logprob, TokenLogprob } from '../types.js'
import type { Core } from './core.js'

/** Rows of logits of a prefill that needs none, not even the last token's: its hidden state is enough. */
export const NO_LOGITS = -1

/** Tokens of a block of the KV cache. */
export const BLOCK_TOKENS = 256

export interface Sampling {
  temperature: number
  top_k: number
  top_p: number
  min_p: number
  repetition_penalty: number
  presence_penalty: number
  frequency_penalty: number
  logit_bias: Record<number, number>
  seed: number
}

/** One sequence of tokens. */
export class Session {
  readonly #core: Core
  readonly address: number

  constructor(core: Core, address: number) {
    this.#core = core
    this.address = address
  }

  setSampling(sampling: Sampling): void {
    this.#core.withText(JSON.stringify(sampling), (at) => this.#core.checked('_qw_set_sampling', this.address, at))
  }

  /** How many tokens of the prompt were already there. */
  setPrompt(ids: Int32Array): number {
    return this.#core.withIds(ids, (at, count) => this.#core.checked('_qw_set_prompt', this.address, at, count))
  }

  /** Puts `ids` behind the first `length` tokens, as if they had been drawn. */
  append(length: number, ids: readonly number[]): void {
    this.#core.withIds(Int32Array.from(ids), (at, count) => this.#core.checked('_qw_append', this.address, length, at, count))
  }

  /** Runs up to `maxTokens` of the prompt; how many remain. */
  prefill(maxTokens: number, logitsRows = 0): number {
    return this.#core.checked('_qw_prefill', this.address, maxTokens, logitsRows)
  }

  /** The tokens that are in the cache: what a prompt can have in common with this sequence. */
  cached(): Int32Array {
    const count = this.#core.checked('_qw_cached', this.address)
    return new Int32Array(this.#core.bytes(this.#core.call('_qw_tokens', this.address), 4 * count).buffer)
  }

  /** Becomes a sequence of `ids` that are in the cache: whoever says so writes its blocks. */
  restore(ids: Int32Array): void {
    this.#core.withIds(ids, (at, count) => this.#core.checked('_qw_restore', this.address, at, count))
  }

  /** A block of the cache itself, of `length` bytes; valid until memory grows. */
  block(index: number, length: number): Uint8Array {
    return this.#core.memory(this.#core.call('_qw_cache_block', this.address, index), length)
  }

  /** What is drawn from now on follows a grammar (GBNF), from its beginning; undefined: it is free. */
  setGrammar(gbnf: string | undefined): void {
    if (gbnf === undefined) this.#core.checked('_qw_set_grammar', this.address, 0)
    else this.#core.withText(gbnf, (at) => this.#core.checked('_qw_set_grammar', this.address, at))
  }

  /** Whether the grammar's text is whole and nothing can follow. */
  get complete(): boolean {
    return this.#core.checked('_qw_is_complete', this.address) === 1
  }

  /** Of the token of the last step, and of the `top` likeliest in its place. */
  logprobs(top: number): TokenLogprob {
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    const withText = ({ id, logprob, bytes }: Omit<Logprob, 'token'>): Logprob => {
      return { id, token: decoder.decode(Uint8Array.from(bytes)), bytes, logprob }
    }
    const raw = this.#core.json('_qw_logprobs', this.address, top) as unknown as Omit<TokenLogprob, 'token'>
    return { ...withText(raw), top: raw.top.map(withText) }
  }

  /** Copies `rows` rows of logits of the last prefill. */
  logits(rows: number, vocabSize: number): Float32Array {
    const bytes = this.#core.bytes(this.#core.call('_qw_logits', this.address), 4 * rows * vocabSize)
    return new Float32Array(bytes.buffer)
  }

  /** Copies the final hidden state of the prompt's last token, once the prompt was run. */
  hidden(size: number): Float32Array<ArrayBuffer> {
    const bytes = this.#core.bytes(this.#core.made('_qw_hidden', this.address), 4 * size)
    return new Float32Array(bytes.buffer)
  }

  /** The text that the last step completed. */
  piece(): string {
    return this.#piece('_qw_piece')
  }

  /** The text that the decoder still holds. */
  flush(): string {
    return this.#piece('_qw_flush')
  }

  /** After a trap there is nothing to free, and the trap is what the caller must hear of. */
  free(): void {
    if (this.#core.alive) this.#core.call('_qw_session_free', this.address)
  }

  #piece(name: '_qw_piece' | '_qw_flush'): string {
    const length = this.#core.checked(name, this.address)
    return length === 0 ? '' : this.#core.text(this.#core.call('_qw_piece_text', this.address), length)
  }
}
