import { defineConfig } from 'vitepress'
import llms from 'vitepress-plugin-llms'
import { collect, repository, slug } from './pages.mjs'

// The pages by subject. Each page must be in one of the lists; a name without a page is left out.
const subjects = {
  Start: ['index', 'guide', 'which', 'comparison', 'moving'],
  Jobs: ['schedules', 'runs', 'after', 'leases'],
  'Locks, groups and shards': ['locks', 'groups', 'shards'],
  Operate: ['control', 'reaching', 'http', 'why', 'alerts', 'events', 'metrics', 'replicas'],
  Deploy: ['azd', 'containerapps', 'functions', 'kubernetes', 'zero', 'manifests'],
  Storage: ['stores', 'postgres'],
  Reference: ['settings', 'commands', 'api'],
  Properties: ['correctness', 'chaos', 'speed', 'costs', 'compatibility', 'security'],
  Internals: ['architecture', 'contributing', 'changelog'],
}

const pages = collect()
const listed = Object.values(subjects).flat().map((name) => name + '.md')
const missing = Object.keys(pages).filter((page) => !listed.includes(page))
if (missing.length > 0) throw new Error(`in no list of docs/.vitepress/config.mjs: ${missing.join(', ')}`)

export default defineConfig({
  title: 'Soloist',
  description: 'Go jobs of which one replica runs each tick, and singletons that another replica takes over',
  lang: 'en',
  base: '/soloist/',
  srcDir: '.vitepress/pages',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: { anchor: { slugify: slug } },
  vite: { plugins: [llms({ domain: 'https://soloist-go.github.io', excludeIndexPage: false })] },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    editLink: { pattern: ({ frontmatter }) => frontmatter.source, text: 'This page in the repository' },
    socialLinks: [{ icon: 'github', link: repository }],
    sidebar: Object.entries(subjects).map(([text, names]) => ({
      text,
      items: names.filter((name) => pages[name + '.md']).map((name) => ({ text: pages[name + '.md'].title, link: '/' + name })),
    })),
  },
  // The reference has no source: it is made of the program.
  transformPageData({ relativePath, frontmatter }) {
    const source = pages[relativePath]?.source
    frontmatter.editLink = source !== undefined
    frontmatter.source = `${repository}/blob/main/${source}`
  },
})
