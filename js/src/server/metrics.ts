// What the server counted, in the text form that Prometheus reads.
import type { Usage } from '../openai/shapes.js'

export class Metrics {
  readonly #requests = new Map<string, number>()
  readonly #seconds = new Map<string, { sum: number; count: number }>()
  #prompt = 0
  #cached = 0
  #generated = 0

  /** `route` must be one of a few, or the text would grow without bound. */
  answered(route: string, status: number, seconds: number): void {
    const labels = `route="${route}",status="${status}"`
    this.#requests.set(labels, (this.#requests.get(labels) ?? 0) + 1)
    const { sum, count } = this.#seconds.get(route) ?? { sum: 0, count: 0 }
    this.#seconds.set(route, { sum: sum + seconds, count: count + 1 })
  }

  used({ prompt_tokens, completion_tokens, prompt_tokens_details }: Usage): void {
    this.#prompt += prompt_tokens
    this.#cached += prompt_tokens_details.cached_tokens
    this.#generated += completion_tokens
  }

  /** Seconds that a request of a route takes, as far as is known. */
  meanSeconds(route: string): number {
    const { sum, count } = this.#seconds.get(route) ?? { sum: 0, count: 0 }
    return sum / Math.max(1, count)
  }

  text(running: number, waiting: number): string {
    const seconds = [...this.#seconds].flatMap(([route, { sum, count }]) => [
      `qwasm_request_seconds_sum{route="${route}"} ${sum}`,
      `qwasm_request_seconds_count{route="${route}"} ${count}`,
    ])
    return [
      ...family('qwasm_requests_total', 'counter', 'Requests that ended, by route and status; 499: the caller left.'),
      ...[...this.#requests].map(([labels, count]) => `qwasm_requests_total{${labels}} ${count}`),
      ...family('qwasm_request_seconds', 'summary', 'Seconds from a request to the end of its answer.'),
      ...seconds,
      ...family('qwasm_prompt_tokens_total', 'counter', 'Tokens of prompts.'),
      `qwasm_prompt_tokens_total ${this.#prompt}`,
      ...family('qwasm_cached_prompt_tokens_total', 'counter', 'Those of them that need not be run again.'),
      `qwasm_cached_prompt_tokens_total ${this.#cached}`,
      ...family('qwasm_generated_tokens_total', 'counter', 'Tokens that were generated.'),
      `qwasm_generated_tokens_total ${this.#generated}`,
      ...family('qwasm_requests_in_flight', 'gauge', 'Requests that the model works on.'),
      `qwasm_requests_in_flight ${running}`,
      ...family('qwasm_requests_queued', 'gauge', 'Requests that wait for it.'),
      `qwasm_requests_queued ${waiting}`,
      '',
    ].join('\n')
  }
}

function family(name: string, type: string, help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`]
}
