// The types of the package, for both entries: browser.ts and node.ts have the same names.
export * from './browser.js'
