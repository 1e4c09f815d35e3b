// What servers, proxies and networks do to a download: one table for every test that a loader must pass.
//
// Each entry says in a sentence what happens; `outcome` is what a right loader makes of it: 'right' (the right model) or the codes of
// errors. Where it allows both, what comes depends on when it strikes. `seenBy` is who can notice it: 'transport' from the answers
// alone (the default), 'core' from what the files hold, 'integrity' only from pinned hashes.
// `behave` is the hostile server's: it spoils the plan of a good answer. Fields of a plan: status, headers (null: left out), start, end
// (bytes of the file); stop ('close' | 'reset' | 'end' | 'stall') after stopAt bytes; before ('close' | 'silence': no answer at all);
// compress; flip (place of a byte); extra (bytes behind the body); drip (so many bytes come slowly); unframed (no length, no chunks).

import { gzipSync } from 'node:zlib'

const once = spoil => (ask, plan) => (ask.nth === 2 ? spoil(ask, plan) : undefined)
const ranged = spoil => (ask, plan) => (ask.range && plan.status === 206 ? spoil(ask, plan) : undefined)
const found = spoil => (ask, plan) => (plan.size >= 0 ? spoil(ask, plan) : undefined)
const weights = spoil => (ask, plan) => (ask.file.endsWith('.safetensors') ? spoil(ask, plan) : undefined)
const says = (status, body = '', headers = {}) => () => ({ status, headers, body })

/** Ends a body early, after at least one byte. */
const stopped = (stop, fraction = 0.4) => (ask, plan) => {
  const length = plan.end - plan.start
  const stopAt = Math.ceil(fraction * length)
  if (stopAt < length || fraction === 1) Object.assign(plan, { stop, stopAt })
}
const stoppedAtOnce = stop => (ask, plan) => void Object.assign(plan, { stop, stopAt: 0 })
const chunked = spoil => (ask, plan) => {
  plan.headers['Content-Length'] = null
  return spoil(ask, plan)
}
const unframed = spoil => (ask, plan) => {
  plan.unframed = true
  return chunked(spoil)(ask, plan)
}
const headers = change => (ask, plan) => void Object.assign(plan.headers, change(plan, ask))

/** The whole file in answer to a range. */
function whole(ask, plan) {
  if (plan.size < 0) return
  Object.assign(plan, { status: 200, start: 0, end: plan.size })
  Object.assign(plan.headers, { 'Content-Range': null, 'Content-Length': plan.size, 'Accept-Ranges': null })
}

/** A part that begins `by` bytes later than asked (before, where negative). */
function shift(plan, by) {
  plan.start = Math.max(0, Math.min(plan.start + by, plan.size - 1))
  plan.end = Math.max(plan.start + 1, Math.min(plan.end + by, plan.size))
  plan.headers['Content-Length'] = plan.end - plan.start
}
const toldRange = (plan, total = plan.size) => ({ 'Content-Range': `bytes ${plan.start}-${plan.end - 1}/${total}` })

const redirectTo = place => found(ask => {
  const to = place(ask)
  return to && { status: 302, headers: { Location: to } }
})
const PAGE = '\n<!DOCTYPE html>\n<html><body>Sign in to go on</body></html>'
const POINTER = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 1503300328\n`

const cuts = {
  'cut': ['every connection is lost after 40 % of its body', ['right', 'network'], stopped('close')],
  'cut by a reset': ['every connection is reset after 40 % of its body', ['right', 'network'], stopped('reset')],
  'cut once': ['one connection of each file is lost after 40 % of its body', 'right', once(stopped('close'))],
  'cut chunks': ['every chunked body ends without its last chunk', ['right', 'network'], chunked(stopped('close'))],
  'cut chunks once': ['one chunked body of each file ends without its last chunk', 'right', once(chunked(stopped('close')))],
  'cut unseen once': ['one body of each file has no length, and ends early as if it were complete', 'right', once(unframed(stopped('end')))],
  'cut unseen': ['bodies have no length, and end early as if they were complete', ['right', 'network', 'invalid_file'], unframed(stopped('end'))],
  'cut at once': ['every connection is lost right after the headers', 'network', found(stoppedAtOnce('close'))],
  'closed': ['every connection is closed before an answer', 'network', (ask, plan) => void (plan.before = 'close')],
  'closed once': ['one connection of each file is closed before an answer', 'right', once((ask, plan) => void (plan.before = 'close'))],
  'stall': ['every body stops after 90 % and the connection stays open', 'right', stopped('stall', 0.9)],
  'stall once': ['one body of each file stops after 40 % and the connection stays open', 'right', once(stopped('stall'))],
  'headers only': ['headers come, and never a body', 'network', found(stoppedAtOnce('stall'))],
  'headers only once': ['headers come, and never a body, once for each file', 'right', once(stoppedAtOnce('stall'))],
  'silence': ['connections are accepted, and no answer comes', 'network', (ask, plan) => void (plan.before = 'silence')],
  'silence once': ['a connection is accepted and no answer comes, once for each file', 'right', once((ask, plan) => void (plan.before = 'silence'))],
  'drip': ['the first 300 bytes of each body come at 1 KB/s', 'right', (ask, plan) => void (plan.drip = 300)],
}

const ranges = {
  'whole': ['ranges are answered by 200 and the whole file', 'right', whole],
  'whole sometimes': ['every second range is answered by 200 and the whole file', 'right', (ask, plan) => ask.nth % 2 === 0 && whole(ask, plan)],
  'whole and cut': ['ranges are answered by 200 and the whole file, which is cut once', 'right', (ask, plan) => {
    whole(ask, plan)
    if (ask.nth === 2) stopped('close')(ask, plan)
  }],
  'whole in chunks': ['the whole file comes chunked, without its length', 'right', chunked(whole)],
  'part with 200': ['a range comes with status 200 and its Content-Range', 'right', ranged((ask, plan) => void (plan.status = 200))],
  'shifted': ['206 with another offset than asked, as Content-Range tells', 'right', ranged((ask, plan) => {
    shift(plan, 8)
    Object.assign(plan.headers, toldRange(plan))
  })],
  'overlapping': ['206 that begins before the asked offset, as Content-Range tells', 'right', ranged((ask, plan) => {
    plan.start = Math.max(0, plan.start - 100)
    Object.assign(plan.headers, toldRange(plan), { 'Content-Length': plan.end - plan.start })
  })],
  'half ranges': ['206 with the first half of what was asked, as Content-Range tells', 'right', ranged((ask, plan) => {
    plan.end = plan.start + Math.ceil((plan.end - plan.start) / 2)
    Object.assign(plan.headers, toldRange(plan), { 'Content-Length': plan.end - plan.start })
  })],
  'more than asked': ['206 with everything from the asked offset on, as Content-Range tells', 'right', ranged((ask, plan) => {
    plan.end = plan.size
    Object.assign(plan.headers, toldRange(plan), { 'Content-Length': plan.end - plan.start })
  })],
  'short body': ['206 whose body is half of what Content-Range tells', 'right', ranged((ask, plan) => {
    plan.end = plan.start + Math.floor((plan.end - plan.start) / 2)
    plan.headers['Content-Length'] = plan.end - plan.start
  })],
  'empty part': ['206 with a right Content-Range and no body', 'right', ranged((ask, plan) => {
    plan.end = plan.start
    plan.headers['Content-Length'] = 0
  })],
  'long body': ['206 whose body is longer than Content-Range tells', 'right', ranged((ask, plan) => {
    plan.extra = Buffer.alloc(100)
    plan.headers['Content-Length'] += 100
  })],
  'whole as a part': ['206 with the asked Content-Range, and the whole file in chunks', 'right', ranged((ask, plan) => {
    Object.assign(plan, { start: 0, end: plan.size })
    plan.headers['Content-Length'] = null
  })],
  'hidden': ['206 without Content-Range', 'right', ranged(headers(() => ({ 'Content-Range': null })))],
  'no total': ['206 with an asterisk for the total', 'right', ranged(headers(plan => toldRange(plan, '*')))],
  'total too small': ['206 with a total that lies before the range', 'right', ranged(headers(plan => toldRange(plan, plan.end - 1)))],
  'total changes': ['each 206 tells another total', ['http', 'invalid_file'], ranged(headers((plan, ask) => toldRange(plan, plan.size + ask.nth)))],
  'nonsense': ['206 with a Content-Range that cannot be read', 'right', ranged(headers(() => ({ 'Content-Range': 'bytes 9-1/x' })))],
  'multipart': ['206 as multipart/byteranges', 'right', ranged((ask, plan) => {
    const { 'Content-Range': told } = plan.headers
    plan.extra = Buffer.from(`--x\r\nContent-Range: ${told}\r\n\r\n--x--`)
    Object.assign(plan.headers, { 'Content-Range': null, 'Content-Length': null, 'Content-Type': 'multipart/byteranges; boundary=x' })
  })],
  'unsatisfiable': ['416 with the right size for ranges that are there', 'right', ranged((ask, plan) =>
    ({ status: 416, headers: { 'Content-Range': `bytes */${plan.size}` } }))],
  'bare unsatisfiable': ['416 without a size for ranges that are there', 'right', ranged(says(416))],
  'part for the whole': ['206 and the first half, though no range was asked', ['right', 'http'], found((ask, plan) => {
    if (ask.range) return
    plan.status = 206
    plan.end = Math.ceil(plan.size / 2)
    Object.assign(plan.headers, toldRange(plan), { 'Content-Length': plan.end })
  })],
}

const lengths = {
  // Chromium asks for ranges uncompressed, and fails where they come compressed nevertheless.
  'gzip': ['everything comes whole and compressed, with the compressed length', ['right', 'network'], found((ask, plan) => {
    whole(ask, plan)
    plan.compress = true
  })],
  'gzip ranges': ['ranges come compressed', ['right', 'network'], found((ask, plan) => void (plan.compress = true))],
  'length too large': ['Content-Length is larger than the body', ['right', 'network', 'http'], found((ask, plan) => {
    plan.headers['Content-Length'] += 1000
    stopped('close', 1)(ask, plan)
  })],
  'length too small': ['Content-Length is smaller than the body', ['network', 'http', 'invalid_file'], found((ask, plan) => {
    plan.headers['Content-Length'] >>= 1
  })],
  'trailing bytes': ['whole files come in chunks, with 100 bytes behind their end', 'http', found((ask, plan) => {
    if (ask.range) return ask.nth > 1 ? { status: 416 } : undefined
    plan.headers['Content-Length'] = null
    plan.extra = Buffer.alloc(100)
  })],
  'empty': ['everything is empty, with status 200', 'invalid_file', found(says(200, '', { 'Content-Length': 0 })), 'core'],
  'no content': ['everything is answered by 204', 'http', found(says(204))],
}

const content = {
  'page': ['an HTML page with status 200 for everything', 'http', says(200, PAGE)],
  'page for weights': ['an HTML page with status 200 for the weights', 'http', weights(says(200, PAGE))],
  'page as a part': ['a server of pages that knows ranges: HTML with status 206 for the weights', ['http', 'invalid_file'], weights((ask, plan) => {
    const page = Buffer.from(PAGE.trim())
    const end = Math.min((ask.range?.[1] ?? Infinity) + 1, page.length)
    if (!ask.range) return { status: 200, body: page }
    if (ask.range[0] >= page.length) return { status: 416, headers: { 'Content-Range': `bytes */${page.length}` } }
    return { status: 206, headers: { 'Content-Range': `bytes ${ask.range[0]}-${end - 1}/${page.length}` }, body: page.subarray(ask.range[0], end) }
  }), 'core'],
  'portal': ['every request is redirected to another host’s page', 'http', ask =>
    (ask.elsewhere ? { status: 200, body: PAGE } : { status: 302, headers: { Location: `${ask.otherOrigin}sign-in` } })],
  'portal in between': ['from the second request of the weights on, an HTML page', 'http', weights((ask, plan) =>
    (ask.nth >= 2 ? { status: 200, body: PAGE } : undefined))],
  'pointer': ['a Git LFS pointer for the weights', 'http', weights(says(200, POINTER))],
  'error as JSON': ['status 200 and a JSON message for the weights', 'http', weights(says(200, '{"error":"Rate limited"}'))],
  'error as JSON for all': ['status 200 and a JSON message for everything', 'http', says(200, '{"error":"Rate limited"}')],
  'archive': ['a ZIP archive for the weights', 'http', weights(says(200, Buffer.from('PK\x03\x04 and so on')))],
  'gzip file': ['gzip data for the weights, not declared as such', 'http', weights(says(200, gzipSync('weights')))],
}

const statuses = {
  '400': ['status 400', 'http', says(400, 'bad')],
  '401': ['status 401 with a message', 'http', says(401, '{"error": "Invalid token"}')],
  '403': ['status 403 with a message', 'http', says(403, 'Access to this model is restricted')],
  '404': ['status 404 for everything', 'missing', says(404, 'Entry not found')],
  '410': ['status 410 for everything', 'missing', says(410)],
  '404 in between': ['from the second request of the weights on, status 404', ['http', 'missing'], weights(ask => (ask.nth >= 2 ? { status: 404 } : undefined))],
  '429 once': ['status 429 with Retry-After: 1, once for each file', 'right', once(says(429, 'slow down', { 'Retry-After': '1' }))],
  '429': ['status 429 for ever', 'http', says(429, 'slow down', { 'Retry-After': '1' })],
  '429 for an hour': ['status 429 with Retry-After: 3600', 'http', says(429, 'slow down', { 'Retry-After': '3600' })],
  ...Object.fromEntries([408, 500, 502, 503, 504].map(status =>
    [`${status} once`, [`status ${status}, once for each file`, 'right', once(says(status, 'busy'))]])),
  '500': ['status 500 for ever', 'http', says(500)],
  '503': ['status 503 for ever', 'http', says(503, 'busy')],
  '503 half of the time': ['every second request is answered by status 503', 'right', ask => (ask.count % 2 === 0 ? { status: 503, body: 'busy' } : undefined)],
}

const redirects = {
  'redirect': ['every file is behind a redirect on the same host', 'right', redirectTo(({ url }) => (url.includes('?') ? undefined : `${url}?there`))],
  'redirect elsewhere': ['every file is behind a redirect to another host', 'right', redirectTo(({ elsewhere, otherOrigin, file }) =>
    (elsewhere ? undefined : otherOrigin + file))],
  'redirect loop': ['redirects that never end', 'network', redirectTo(({ url }) => url)],
  'redirect to nowhere': ['a redirect to a port where nobody listens', 'network', redirectTo(() => 'http://127.0.0.1:1/')],
}

const states = {
  'new version': ['the ETag changes once, from the fourth request of a file on', 'right', headers((plan, { nth }) => ({ ETag: nth < 4 ? '"a"' : '"b"' }))],
  'new version always': ['each answer has an ETag of its own', 'http', headers((plan, { nth }) => ({ ETag: `"${nth}"` }))],
  'newer': ['no ETag, and Last-Modified changes once', 'right', headers((plan, { nth }) =>
    ({ ETag: null, 'Last-Modified': new Date(nth < 4 ? 1e12 : 2e12).toUTCString() }))],
  'weak': ['ETags are weak in every second answer', 'right', headers((plan, { nth }) => ({ ETag: nth % 2 ? '"a"' : 'W/"a"' }))],
  'suffixed': ['ETags tell of compression in every second answer', 'right', headers((plan, { nth }) => ({ ETag: nth % 2 ? '"a"' : '"a-gzip"' }))],
  'clocks differ': ['one ETag, and Last-Modified from servers whose clocks differ', 'right', headers((plan, { nth }) =>
    ({ ETag: '"a"', 'Last-Modified': new Date(1e12 + 1000 * (nth % 3)).toUTCString() }))],
  'no validators': ['neither ETag nor Last-Modified', 'right', headers(() => ({ ETag: null, 'Last-Modified': null }))],
}

const lies = {
  'flipped': ['a byte of the weights is flipped', 'integrity', weights((ask, plan) => void (plan.flip = Math.floor(plan.size / 2))), 'integrity'],
  'shifted unsaid': ['ranges of the weights begin 8 bytes earlier than Content-Range tells', 'integrity', weights(ranged((ask, plan) => {
    if (plan.start > 0) shift(plan, -8)
  })), 'integrity'],
  'same ETag': ['the weights change in mid-download, and the ETag does not', 'integrity', weights((ask, plan) => {
    if (ask.nth > 1) plan.flip = plan.start + 5
  }), 'integrity'],
}

/** [{ name, tells, outcome: ['right' | a code …], behave, seenBy }] */
export const MISBEHAVIOURS = Object.entries({ ...cuts, ...ranges, ...lengths, ...content, ...statuses, ...redirects, ...states, ...lies })
  .map(([name, [tells, outcome, behave, seenBy = 'transport']]) => ({ name, tells, outcome: [outcome].flat(), behave, seenBy }))

/** How the server behaves that misbehaves by that name. */
export const behaviour = wanted => MISBEHAVIOURS.find(({ name }) => name === wanted).behave
