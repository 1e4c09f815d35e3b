// How near one model is to another on the same tokens, and how many questions a model answers rightly.

/** The logarithm of Σ exp(logit): what log probabilities are short of logits. */
function logSum(logits) {
  let largest = -Infinity, sum = 0
  for (const logit of logits) largest = Math.max(largest, logit)
  for (const logit of logits) sum += Math.exp(logit - largest)
  return largest + Math.log(sum)
}

/** KL(p ‖ q) in nats, of two rows of logits. */
function divergence(p, q) {
  const shiftP = logSum(p), shiftQ = logSum(q)
  let sum = 0
  for (let i = 0; i < p.length; i++) sum += Math.exp(p[i] - shiftP) * (p[i] - shiftP - (q[i] - shiftQ))
  return sum
}

function likeliest(row) {
  let best = 0
  for (let i = 1; i < row.length; i++) if (row[i] > row[best]) best = i
  return best
}

/** Adds up rows that belong together. */
class Tally {
  tokens = 0
  divergence = 0
  agreed = 0
  lostLead = 0

  /** `lead`: by how much the reference prefers its likeliest token to the model's. */
  add(divergence, agreed, lead) {
    this.tokens++
    this.divergence += divergence
    this.agreed += agreed
    this.lostLead = Math.max(this.lostLead, lead)
  }

  get means() {
    return { tokens: this.tokens, kl: this.divergence / this.tokens, agreement: this.agreed / this.tokens, lostLead: this.lostLead }
  }
}

/**
 * Mean KL(reference ‖ model) and share of equal likeliest tokens, over all tokens that are predicted and over those that are learnt.
 * texts: list of { ids, learnt }; models: name → model. Gives name → { all, learnt }, each { tokens, kl, agreement, lostLead }; lostLead: where the likeliest tokens
 * differ, by how many nats the reference prefers its own, at most.
 */
export async function compare(reference, models, texts) {
  const tallies = Object.fromEntries(Object.keys(models).map(name => [name, { all: new Tally(), learnt: new Tally() }]))
  const vocabSize = reference.info.vocabSize
  for (const { ids, learnt } of texts) {
    const expected = await reference.logits(ids)
    const found = await Promise.all(Object.values(models).map(model => model.logits(ids)))
    // The row of a token predicts the next one; after the last there is none.
    for (let at = 0; at + 1 < ids.length; at++) {
      const row = logits => logits.subarray(at * vocabSize, (at + 1) * vocabSize)
      const p = row(expected), top = likeliest(p)
      Object.values(tallies).forEach((tally, m) => {
        const q = row(found[m])
        const other = likeliest(q)
        const sample = [divergence(p, q), other === top ? 1 : 0, p[top] - p[other]]
        tally.all.add(...sample)
        if (learnt[at + 1]) tally.learnt.add(...sample)
      })
    }
  }
  return Object.fromEntries(Object.entries(tallies).map(([name, { all, learnt }]) => [name, { all: all.means, learnt: learnt.means }]))
}

// As scripts/demo-model/eval_demo.py has it.
const ANSWER_TOKENS = 220

/** Share of questions ([question, answer] each) that a model answers rightly, greedily. */
export async function shareRight(model, questions, thinking) {
  let right = 0
  for (const [question, answer] of questions) {
    const reply = model.chat([{ role: 'user', content: question }], { thinking, temperature: 0, maxTokens: ANSWER_TOKENS })
    if ((await reply.result()).content.trim() === answer) right++
  }
  return right / questions.length
}
