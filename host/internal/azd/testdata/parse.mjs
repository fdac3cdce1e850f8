// Reads a JSON object of Bicep files from standard input, and writes their syntax trees as JSON: for each node its type, its
// field in the parent, its line, its text if it has no children, and its children.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Language, Parser } from 'web-tree-sitter'

await Parser.init()
const grammar = createRequire(import.meta.url).resolve('tree-sitter-bicep/tree-sitter-bicep.wasm')
const parser = new Parser()
parser.setLanguage(await Language.load(grammar))

function tree(n, field) {
  const type = n.isError ? 'ERROR' : n.isMissing ? 'MISSING' : n.type
  // Comments are left out.
  const of = n.children.flatMap((c, i) => (c.type !== 'comment' && (c.isNamed || c.isMissing || c.type === 'existing') ? [tree(c, n.fieldNameForChild(i))] : []))
  return { type, field: field ?? '', line: n.startPosition.row + 1, text: of.length ? '' : n.text, of }
}

const trees = {}
for (const [name, text] of Object.entries(JSON.parse(readFileSync(0, 'utf8')))) trees[name] = tree(parser.parse(text).rootNode)
process.stdout.write(JSON.stringify(trees))
