package azd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/azd"
)

// The templates use few forms of Bicep, each on a line of its own, with two spaces before it for each bracket around it. What is
// in another form counts as a mistake.
var (
	declarationRule = regexp.MustCompile(`^(param|output|var|resource|module) (\w+)(?: (?:string|int|bool|object|array)| '([\w./@-]+)')?( existing)?` +
		`(?: = (?:if \((.+)\) )?(.+))?$`)
	otherRule    = regexp.MustCompile(`^(?:targetScope = '\w+'|@(\w+)\([^()]*\)|//.*|)$`)
	propertyRule = regexp.MustCompile(`^(\w+|'[^']+'): (.+)$`)
	forRule      = regexp.MustCompile(`^for (\w+) in (.+): \{$`)
	stringRule   = regexp.MustCompile(`'(?:[^'\\]|\\.)*'`)
	insertRule   = regexp.MustCompile(`\$\{([^}]*)\}`)
	nameRule     = regexp.MustCompile(`\b([A-Za-z_]\w*)((?:\(\))?)((?:\.\w+(?:\(\))?)*)(\(?)`)
	guidRule     = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// A declaration is one of a parameter, a variable, an output, a resource or a module.
type declaration struct {
	word, of string // of is the type of a resource, or the path of a module
	existing bool
	line     int
	value    entry // its path is empty; its text too, if a parameter has no value
	entries  []entry
}

// An entry is a property that an object has, by its path: .a.b[].c. Its kind is empty where the value is computed.
type entry struct {
	path, kind, text string
	line             int
}

// A use is a name with its members, a.b.c, or that of a function.
type use struct {
	chain []string
	call  bool
	line  int
}

// A file is what a Bicep file has.
type file struct {
	name     string
	declared map[string]*declaration
	outputs  map[string]*declaration
	loops    []string // names of what loops go through
	uses     []use
}

// A bracket is one that is open, and the path of what is in it.
type bracket struct{ end, path string }

// read reads a file line by line.
func (c *checker) read(name, text string) *file {
	f := &file{name: name, declared: map[string]*declaration{}, outputs: map[string]*declaration{}}
	var open []bracket
	var d *declaration
	for i, line := range strings.Split(text, "\n") {
		n, inner := i+1, strings.TrimLeft(line, " ")
		within := bracket{}
		if len(open) > 0 {
			within = open[len(open)-1]
		}
		closes := inner != "" && inner == within.end
		if closes {
			open = open[:len(open)-1]
		}
		if inner != "" && len(line)-len(inner) != 2*len(open) {
			c.add(f, n, "no Bicep that is known here: %s", line)
		}
		if m := otherRule.FindStringSubmatch(inner); m != nil && m[1] != "" {
			f.uses = append(f.uses, use{[]string{m[1]}, true, n})
		} else if m == nil && !closes {
			next, to := c.line(f, d, n, inner, within)
			if d = next; to.end != "" {
				open = append(open, to)
			}
		}
	}
	if len(open) > 0 {
		c.add(f, 1, "no Bicep that is known here: %d brackets are open at its end", len(open))
	}
	return f
}

// line reads a line of a declaration, or the first one of the next. It returns that, and the bracket that the line opens.
func (c *checker) line(f *file, d *declaration, n int, text string, in bracket) (*declaration, bracket) {
	at, value := in.path, text
	declares, property, loop := declarationRule.FindStringSubmatch(text), propertyRule.FindStringSubmatch(text), forRule.FindStringSubmatch(text)
	switch {
	case in.end == "" && declares != nil:
		value = declares[6]
		d = &declaration{word: declares[1], of: declares[3], existing: declares[4] != "", line: n}
		if d.word == "output" {
			f.outputs[declares[2]] = d
		} else {
			f.declared[declares[2]] = d
		}
		c.names(f, n, declares[5])
		d.value = c.entry(f, n, "", value)
	case in.end == "]" && loop != nil:
		value = "{"
		f.loops = append(f.loops, loop[1])
		c.names(f, n, loop[2])
	case in.end == "}" && property != nil:
		key := strings.Trim(property[1], "'")
		if strings.Contains(key, "${") {
			c.names(f, n, property[1])
			key = "*"
		}
		at, value = at+"."+key, property[2]
		d.entries = append(d.entries, c.entry(f, n, at, value))
	case in.end == "]":
		d.entries = append(d.entries, c.entry(f, n, at, value))
	default:
		c.add(f, n, "no Bicep that is known here: %s", text)
	}
	if v := f.declared[value]; v != nil && v.word == "var" {
		for _, e := range v.entries {
			d.entries = append(d.entries, entry{at + e.path, e.kind, e.text, n})
		}
	}
	switch {
	case strings.HasSuffix(value, "{"):
		return d, bracket{"}", at}
	case strings.HasSuffix(value, "[") && d.word == "resource" && at == "": // a resource for each
		return d, bracket{"]", at}
	case strings.HasSuffix(value, "["):
		return d, bracket{"]", at + "[]"}
	}
	return d, bracket{}
}

// entry is a property with a value.
func (c *checker) entry(f *file, n int, at, value string) entry {
	e := entry{at, "", value, n}
	switch v := f.declared[value]; {
	case v != nil && v.word == "var":
		e.kind, e.text = v.value.kind, v.value.text
	case value == "{" || value == "{}":
		e.kind = "object"
	case strings.HasPrefix(value, "["):
		e.kind = "array"
	case stringRule.FindString(value) == value && value != "":
		e.kind = "string"
	case value == "true" || value == "false":
		e.kind = "boolean"
	case strings.Trim(value, "0123456789") == "" && value != "":
		e.kind = "integer"
	}
	if value = strings.TrimSuffix(strings.TrimSuffix(value, "["), " : "); value != "" && value != "{" && value != "{}" {
		c.names(f, n, value)
	}
	return e
}

// names notes which names an expression uses. Bicep writes calls, members and operators as Go does, so Go's parser reads it, with
// an array as a literal of Go and a choice as a chain of ORs.
func (c *checker) names(f *file, n int, text string) {
	plain := stringRule.ReplaceAllStringFunc(text, func(s string) string {
		for _, m := range insertRule.FindAllStringSubmatch(s, -1) {
			c.names(f, n, m[1])
		}
		return `""`
	})
	asGo := strings.NewReplacer("[", "[]any{", "]", "}", " ? ", " || ", " : ", " || ").Replace(plain)
	if _, err := parser.ParseExpr(asGo); err != nil && text != "" {
		c.add(f, n, "no Bicep that is known here: %s", text)
	}
	for _, m := range nameRule.FindAllStringSubmatch(plain, -1) {
		if call := m[2] != "" || m[4] != ""; call {
			f.uses = append(f.uses, use{m[1:2], true, n})
		} else if m[1] != "true" && m[1] != "false" {
			f.uses = append(f.uses, use{strings.Split(strings.ReplaceAll(m[1]+m[3], "()", ""), "."), false, n})
		}
	}
}

// A property is what the table says of one: its kind, and which values it
// takes, if not any.
type property struct {
	kind     string
	required bool // wherever the object that it is in is there
	read     bool // the service says it
	values   []string
}

// A table has the properties of each resource type, by type@version and path,
// and the roles by name.
type table struct {
	types map[string]map[string]property
	roles map[string]string
}

// readTable reads testdata/types.txt, which says itself how it is written.
func readTable(t *testing.T) *table {
	t.Helper()
	text, err := os.ReadFile("testdata/types.txt")
	must(t, err)
	all := &table{types: map[string]map[string]property{}, roles: map[string]string{}}
	var current map[string]property
	for n, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case strings.HasPrefix(line, "  ") && len(fields) < 4:
			p := property{required: strings.HasSuffix(fields[0], "!"), read: strings.HasSuffix(fields[0], "?"), kind: fields[1]}
			if len(fields) == 3 {
				p.values = strings.Split(fields[2], "|")
			}
			current[strings.TrimRight(fields[0], "!?")] = p
		case fields[0] == "role" && len(fields) == 4:
			all.roles[fields[1]] = fields[2]
		case len(fields) == 2:
			current = map[string]property{}
			all.types[fields[0]] = current
		default:
			t.Fatalf("testdata/types.txt:%d: %q is no line of the table", n+1, line)
		}
	}
	return all
}

// find returns what the table says of a property; a name in it may be any where
// the table has a star.
func (t *table) find(kind, path string) (property, bool) {
	p, ok := t.types[kind][path]
	if !ok {
		parts := strings.Split(path, ".")
		parts[len(parts)-1] = "*"
		p, ok = t.types[kind][strings.Join(parts, ".")]
	}
	return p, ok
}

// required are the properties that an object at a path has to have.
func (t *table) required(kind, at string) (names []string) {
	for path, p := range t.types[kind] {
		parent, name := "", path
		if i := strings.LastIndexByte(path, '.'); i >= 0 {
			parent, name = path[:i], path[i+1:]
		}
		if p.required && parent == at {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// functions are those of Bicep that the templates use
// (https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-functions, read in November 2026).
var functions = []string{"concat", "description", "empty", "guid", "json", "maxLength", "minLength", "resourceGroup", "subscriptionResourceId", "uniqueString"}

// words are what Bicep itself reads in the object of a resource.
var words = []string{"dependsOn", "parent", "scope"}

// A checker looks for mistakes in the files of one deployment.
type checker struct {
	table    *table
	all      map[string]*file
	mistakes []string
}

// check returns the mistakes of a set of files.
func check(known *table, files map[string][]byte) []string {
	c := &checker{table: known, all: map[string]*file{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) == ".bicep" {
			c.all[name] = c.read(name, string(files[name]))
			c.roles(c.all[name], string(files[name]))
		}
	}
	for _, f := range c.all {
		c.symbols(f)
		for _, d := range f.declared {
			switch d.word {
			case "resource":
				c.resource(f, d)
			case "module":
				c.module(f, d)
			}
		}
	}
	for name, text := range files {
		if start, ok := strings.CutSuffix(name, ".parameters.json"); ok {
			c.parameters(name, text, c.all[start+".bicep"])
		}
	}
	return c.mistakes
}

func (c *checker) add(f *file, line int, format string, args ...any) {
	c.mistakes = append(c.mistakes, fmt.Sprintf("%s:%d: %s", f.name, line, fmt.Sprintf(format, args...)))
}

// resource compares the properties of a resource with the table.
func (c *checker) resource(f *file, d *declaration) {
	if c.table.types[d.of] == nil {
		c.add(f, d.line, "%s is not in the table", d.of)
		return
	}
	paths := map[string]bool{"": true}
	for _, e := range d.entries {
		e.path = strings.TrimPrefix(e.path, ".")
		paths[e.path] = true
		if slices.Contains(words, e.path) {
			continue
		}
		p, ok := c.table.find(d.of, e.path)
		text, plain := strings.Trim(e.text, "'"), e.kind == "string" && !strings.Contains(e.text, "${")
		switch {
		case !ok:
			c.add(f, e.line, "%s has no %s", d.of, e.path)
		case p.read:
			c.add(f, e.line, "%s of %s is for reading", e.path, d.of)
		case e.kind != "" && p.kind != "any" && e.kind != p.kind:
			c.add(f, e.line, "%s of %s is of kind %s: want %s", e.path, d.of, e.kind, p.kind)
		case plain && p.values != nil && !slices.Contains(p.values, text):
			c.add(f, e.line, "%s of %s is %q: want %s", e.path, d.of, text, strings.Join(p.values, " or "))
		}
	}
	for at := range paths {
		for _, name := range c.table.required(d.of, at) {
			if !d.existing && !paths[strings.TrimPrefix(at+"."+name, ".")] {
				c.add(f, d.line, "%s: %q needs %s", d.of, at, name)
			}
		}
	}
}

// symbols looks for names that nothing declares, for parameters and variables that nothing uses, and for what a resource or a
// module does not have to read.
func (c *checker) symbols(f *file) {
	used := map[string]bool{}
	for _, u := range f.uses {
		name, d := u.chain[0], f.declared[u.chain[0]]
		used[name] = true
		switch members := strings.Join(u.chain[1:], "."); {
		case u.call && !slices.Contains(functions, name):
			c.add(f, u.line, "%s is no function that is known here", name)
		case u.call, d == nil && slices.Contains(f.loops, name):
		case d == nil:
			c.add(f, u.line, "nothing declares %s", name)
		case d.word == "resource" && members != "":
			if _, known := c.table.find(d.of, members); !known && members != "id" && members != "name" && u.chain[1] != "listKeys" {
				c.add(f, u.line, "%s has no %s to read", d.of, members)
			}
		case d.word == "module" && len(u.chain) == 3:
			if target := c.target(f, d); target != nil && target.outputs[u.chain[2]] == nil {
				c.add(f, u.line, "%s has no output %s", target.name, u.chain[2])
			}
		}
	}
	for name, d := range f.declared {
		if !used[name] && (d.word == "param" || d.word == "var") {
			c.add(f, d.line, "nothing uses %s", name)
		}
	}
}

// roles compares the ids of roles with the table: a variable has the name of its role.
func (c *checker) roles(f *file, text string) {
	for i, line := range strings.Split(text, "\n") {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "var "), " = ")
		if id := guidRule.FindString(line); id != "" && line != "var "+name+" = '"+c.table.roles[name]+"'" {
			c.add(f, i+1, "%s is not the id of the role %s", id, name)
		}
	}
}

func (c *checker) target(f *file, m *declaration) *file {
	return c.all[path.Join(path.Dir(f.name), m.of)]
}

// module compares the parameters of a module with what it asks for.
func (c *checker) module(f *file, m *declaration) {
	given := map[string]bool{}
	for _, e := range m.entries {
		if name, ok := strings.CutPrefix(e.path, ".params."); ok && !strings.ContainsAny(name, ".[") {
			given[name] = true
		}
	}
	if target := c.target(f, m); target != nil {
		c.compare(f, m.line, target, given)
	} else {
		c.add(f, m.line, "there is no such file")
	}
}

func (c *checker) compare(f *file, line int, target *file, given map[string]bool) {
	for name := range given {
		if d := target.declared[name]; d == nil || d.word != "param" {
			c.add(f, line, "%s has no parameter %s", target.name, name)
		}
	}
	for name, d := range target.declared {
		if d.word == "param" && d.value.text == "" && !given[name] {
			c.add(f, line, "%s needs the parameter %s", target.name, name)
		}
	}
}

// parameters compares a file of parameters with its template.
func (c *checker) parameters(name string, text []byte, target *file) {
	var values struct {
		Parameters map[string]struct{ Value any }
	}
	if err := json.Unmarshal(text, &values); err != nil || target == nil {
		c.add(&file{name: name}, 1, "%v, for %v", err, target)
		return
	}
	given := map[string]bool{}
	for name := range values.Parameters {
		given[name] = true
	}
	c.compare(&file{name: name}, 1, target, given)
}

// Mistakes that are planted in the templates of one kind, and a word of what is
// said of each.
var planted = []struct{ kind, file, old, new, want string }{
	{azd.App, "infra/jobs.bicep", "  }\n}\n", "  }\n", "brackets are open"},
	{azd.App, "infra/jobs.bicep", "param image string", "param image = ", "no Bicep"},
	{azd.App, "infra/jobs.bicep", "containerApps@2025-01-01", "containerApps@2025-01-02", "not in the table"},
	{azd.App, "infra/jobs.bicep", "cooldownPeriod", "coolDownPeriod", "has no properties.template.scale.coolDownPeriod"},
	{azd.App, "infra/jobs.bicep", "queueLengthStrategy: 'visibleonly'", "queueLengthStrategy: 'visibleOnly'", "want all or visibleonly"},
	{azd.App, "infra/jobs.bicep", "queueLength: '1'", "queueLength: 1", "of kind integer: want string"},
	{azd.App, "infra/jobs.bicep", "type: 'UserAssigned'\n", "", `"identity" needs type`},
	{azd.App, "infra/jobs.bicep", "value: storageUrl", "value: storageURL", "nothing declares storageURL"},
	{azd.App, "infra/jobs.bicep", "value: storageUrl", "value: app", "nothing uses storageUrl"},
	{azd.App, "infra/jobs.bicep", "json('0.25')", "decimal('0.25')", "decimal is no function"},
	{azd.App, "infra/jobs.parameters.json", `"storageUrl"`, `"storageURL"`, "has no parameter storageURL"},
	{azd.App, "infra/main.bicep", "params: {\n    location: location\n    tags: tags\n    queueName", "params: {\n    location: location\n    queueName", "needs the parameter tags"},
	{azd.App, "infra/main.bicep", "logs.outputs.name", "logs.outputs.nome", "has no output nome"},
	{azd.App, "infra/main.bicep", "modules/logs.bicep", "modules/log.bicep", "no such file"},
	{azd.App, "infra/modules/identity.bicep", "identity.properties.clientId", "identity.properties.clientID", "no properties.clientID to read"},
	{azd.App, "infra/modules/identity.bicep", "974c5e8b-45b9", "974c5e8b-45b8", "not the id of the role storageQueueDataContributor"},
	{azd.App, "infra/modules/identity.bicep", "var acrPull = '7f951dda-4ed3-4680-a7ca-43fe172d538d'", "var acrPull = 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'", "not the id of the role acrPull"},
	{azd.App, "infra/modules/environment.bicep", "adminUserEnabled: false", "adminUserEnabled: false\n    loginServer: 'x'", "is for reading"},
	{azd.Job, "infra/jobs.bicep", "cronExpression: '7 3 * * *'\n", "", "needs cronExpression"},
	{azd.Job, "infra/jobs.bicep", "    name: 'SOLOIST_APP'\n    value: app", "    nome: 'SOLOIST_APP'\n    value: app", "env[].nome"},
	{azd.Functions, "infra/modules/functions.bicep", "httpsOnly: true", "httpsOnly: 'true'", "of kind string: want boolean"},
}

// Each check finds the mistakes that are planted for it.
func TestChecksFindMistakes(t *testing.T) {
	t.Parallel()
	known := readTable(t)
	for _, m := range planted {
		files := filesOf(t, program(m.kind))
		if !bytes.Contains(files[m.file], []byte(m.old)) {
			t.Fatalf("%s of %s has no %q", m.file, m.kind, m.old)
		}
		files[m.file] = bytes.Replace(files[m.file], []byte(m.old), []byte(m.new), 1)
		if got := strings.Join(check(known, files), "\n"); !strings.Contains(got, m.want) {
			t.Errorf("%q in place of %q in %s of %s: got %q, want a word of %q", m.new, m.old, m.file, m.kind, got, m.want)
		}
	}
}
