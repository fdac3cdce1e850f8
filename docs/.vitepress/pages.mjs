// Collects the pages of the site in .vitepress/pages: those of docs/, a few of the repository, and the reference, which it
// makes of the program's help. Links between pages follow; a link to any other file becomes one to the repository.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

export const repository = 'https://github.com/soloist-go/soloist'
const root = fileURLToPath(new URL('../..', import.meta.url))
const out = fileURLToPath(new URL('pages', import.meta.url))

// Pages from outside of docs/, and their names on the site.
const outside = {
  'README.md': 'index.md',
  'ARCHITECTURE.md': 'architecture.md',
  'CHANGELOG.md': 'changelog.md',
  '.github/CONTRIBUTING.md': 'contributing.md',
  '.github/SECURITY.md': 'security.md',
  'deploy/README.md': 'manifests.md',
}

// slug is the anchor that GitHub gives a heading, so that a link works there and here.
export function slug(heading) {
  return heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-')
}

// collect writes the pages, and returns the title and the source of each. It throws if a link leads nowhere.
export function collect() {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], { cwd: root, encoding: 'utf8' })
  const files = listed.trim().split('\n').filter((file) => existsSync(join(root, file)))
  const sources = Object.fromEntries(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]))
  const broken = []
  const pages = {}
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  cpSync(join(root, 'docs/images'), join(out, 'images'), { recursive: true })
  for (const [file, text] of Object.entries(sources)) {
    const page = pageOf(file)
    const linked = withLinks(text, (target) => {
      const [path, anchor] = target.split('#')
      const to = path === '' ? file : posix.join(posix.dirname(file), path)
      if (!existsSync(join(root, to)) || (anchor && !anchorsOf(sources[to] ?? '').includes(anchor))) {
        broken.push(`${file}: ${target}`)
      }
      if (to.startsWith('docs/images/')) return to.slice('docs/'.length)
      const hash = anchor ? '#' + anchor : ''
      if (pageOf(to)) return `./${pageOf(to)}${hash}`
      const kind = statSync(join(root, to), { throwIfNoEntry: false })?.isDirectory() ? 'tree' : 'blob'
      return `${repository}/${kind}/main/${to}${hash}`
    })
    if (page) pages[page] = { source: file, text: linked }
  }
  if (broken.length > 0) throw new Error('these links lead nowhere:\n' + broken.join('\n'))
  Object.assign(pages, reference())
  for (const [page, { text }] of Object.entries(pages)) {
    pages[page].title = text.match(/^# (.*)$/m)?.[1] ?? page
    writeFileSync(join(out, page), text)
  }
  return pages
}

// pageOf is the name on the site of a file of the repository, or undefined.
function pageOf(file) {
  return outside[file] ?? file.match(/^docs\/([^/]+\.md)$/)?.[1]
}

// withLinks replaces each target of a link or an image that is no URL. Code stays as it is.
function withLinks(text, target) {
  return text.split(/(^```[\s\S]*?^```$|`[^`\n]*`)/m).map((part, i) =>
    i % 2 ? part : part.replace(/\]\((?![a-z]+:)([^)\s]+)\)/g, (_, to) => `](${target(to)})`)).join('')
}

// anchorsOf are the anchors of a page's headings. The second of two equal ones ends in -1.
function anchorsOf(text) {
  const count = {}
  const headings = text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.*)$/gm)
  return Array.from(headings, ([, heading]) => {
    const anchor = slug(heading.replace(/\]\([^)]*\)/g, ''))
    count[anchor] = (count[anchor] ?? -1) + 1
    return count[anchor] ? `${anchor}-${count[anchor]}` : anchor
  })
}

// reference makes pages of the program's help and of the description of its API.
function reference() {
  const dir = mkdtempSync(join(tmpdir(), 'soloist-'))
  try {
    const program = join(dir, 'soloist')
    execFileSync('go', ['build', '-o', program, './jobs'], { cwd: root, stdio: 'inherit' })
    const help = (...args) => execFileSync(program, ['help', ...args], { encoding: 'utf8', cwd: dir })
    const [commands, rest] = cut(help(), '\nExit codes:')
    const [codes, settings] = cut(rest, '\nSettings are')
    return {
      'commands.md': { text: commandsPage(commands, codes, help) },
      'settings.md': { text: settingsPage(settings) },
      'api.md': { text: apiPage(JSON.parse(readFileSync(join(root, 'host/internal/web/openapi.json'), 'utf8'))) },
    }
  } finally {
    rmSync(dir, { recursive: true })
  }
}

// cut splits text before the words, which it must have.
function cut(text, words) {
  const at = text.indexOf(words)
  if (at < 0) throw new Error(`help has no "${words.trim()}"`)
  return [text.slice(0, at), text.slice(at + 1)]
}

// escaped is text without what Markdown and Vue would take for more.
function escaped(text) {
  return text.replace(/[<|{]/g, (c) => `&#${c.charCodeAt()};`)
}

// rows are the lines of two columns.
function rows(text) {
  return Array.from(text.matchAll(/^  (\S.*?)? {2,}(.*)$/gm), ([, name = '', meaning]) => [name, escaped(meaning)])
}

function commandsPage(list, codes, help) {
  let text = '# Commands\n\nWhat the program\'s own `help` says. Without a binary, write `go run .` for it.\n\n' + codes
  for (const [name, meaning] of rows(list)) {
    if (name === '') continue // the arguments
    const [usage, ...body] = help(name).trim().split('\n\n')
    const flags = rows(body.slice(1).join('\n')).map(([flag, what]) => `| \`${flag}\` | ${what} |\n`)
    text += `\n## ${name}\n\n${sentence(meaning)}\n\n\`\`\`\n${usage.replace('usage: ', '')}\n\`\`\`\n`
    if (flags.length > 0) text += `\n| argument | meaning |\n|---|---|\n${flags.join('')}`
  }
  return text
}

function settingsPage(list) {
  const [first, ...rest] = list.trim().split('\n')
  let text = `# Settings\n\nWhat the program's own \`help\` says. ${first}\n\n## Of the program\n`
  const ofJob = '\n## Of one job\n\n' + rest.pop().replace('<NAME>', 'NAME') + '\n'
  for (const [name, meaning] of rows(rest.join('\n'))) {
    if (name.includes('<NAME>') && !text.includes(ofJob)) text += ofJob
    text += (name && `\n### ${name.replace('<NAME>', 'NAME')}\n`) + `\n${meaning}\n`
  }
  return text
}

function apiPage({ info, servers, paths, components }) {
  const row = (name, what) => `| \`${name}\` | ${escaped(what)} |\n`
  const table = (head, lines) => lines.length ? `\n| ${head} | meaning |\n|---|---|\n${lines.join('')}` : ''
  let text = `# API\n\n${info.description}\n\nThe whole is at \`${servers[0].url}/openapi.json\` of the program.\n`
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { summary, description = '', parameters = [], requestBody }] of Object.entries(operations)) {
      const body = requestBody?.content['application/json'].schema.$ref.split('/').at(-1)
      const fields = Object.entries(components.schemas[body]?.properties ?? {})
      text += `\n## ${method.toUpperCase()} ${path}\n\n${escaped(summary)} ${escaped(description)}\n`
      text += table('parameter', parameters.map((p) => row(p.name, p.description)))
      text += table('in the body', fields.map(([name, p]) => row(name, p.description)))
    }
  }
  return text
}

function sentence(text) {
  return text[0].toUpperCase() + text.slice(1) + '.'
}
