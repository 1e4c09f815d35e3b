// The two things that every part of the page does with the document: find an element, make one.

export const byId = id => document.getElementById(id)

/** A new element; `text` only ever becomes a text node. */
export function element(tag, className = '', text = '') {
  const node = document.createElement(tag)
  if (className) node.className = className
  node.textContent = text
  return node
}

export function button(className, text, action) {
  const node = element('button', className, text)
  node.type = 'button'
  node.addEventListener('click', action)
  return node
}

/** Says it to a screen reader. */
export function announce(text) {
  byId('announcer').textContent = text
}
