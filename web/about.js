// The quiet line under the composer: what the model runs on; behind it what it is, what it takes and where it came from.
import { byId, element } from './elements.js'
import { aboutInWords, rungInWords } from './words.js'

export function showAbout(info) {
  byId('rung').textContent = `Runs on ${rungInWords(info)}`
  const rows = aboutInWords(info).map(([name, value]) => {
    const row = element('div')
    row.append(element('dt', '', name), element('dd', '', value))
    return row
  })
  byId('about-rows').replaceChildren(...rows)
  byId('about').hidden = false
}
