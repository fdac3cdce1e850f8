package azd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/azd"
)

// The templates use few forms of Bicep, each on a line of its own. What is in another form counts as a mistake. A declaration goes
// on with each line that begins with a blank or a bracket.
var (
	declarationRule = regexp.MustCompile(`(?m)^(param|output|var|resource|module) (\w+)(?: (?:string|int|bool|object|array)| '([\w./@-]+)')?( existing)?` +
		`(?: = (?:if \((.+)\) )?(.+(?:\n[ \]}].*)*))?$`)
	otherRule    = regexp.MustCompile(`(?m)^(?:targetScope = '\w+'|@(?:description|minLength|maxLength)\([^()]*\)| *//.*)\n`)
	propertyRule = regexp.MustCompile(`^(\w+|'[^']+'): (.+)$`)
	forRule      = regexp.MustCompile(`(?m)^ *for (\w+) in (.+): \{$`)
	keyRule      = regexp.MustCompile(`(?m)^ *\w+: `)
	stringRule   = regexp.MustCompile(`'(?:[^'\\]|\\.)*'`)
	insertRule   = regexp.MustCompile(`\$\{([^}]*)\}`)
	nameRule     = regexp.MustCompile(`\b([A-Za-z_]\w*)((?:\(\))?)((?:\.\w+(?:\(\))?)*)(\(?)`)
	guidRule     = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// A declaration is one of a parameter, a variable, an output, a resource or a module.
type declaration struct {
	word, of string // of is the type of a resource, or the path of a module
	existing bool
	value    any // as JSON has it, where an expression is a text after "="; nil: a parameter has none
}

// A file is what a Bicep file has.
type file struct {
	name     string
	declared map[string]*declaration
	outputs  map[string]*declaration
	loops    []string // names of what loops go through
	text     string   // of all expressions
}

// read reads a file.
func (c *checker) read(name, text string) *file {
	f := &file{name: name, declared: map[string]*declaration{}, outputs: map[string]*declaration{}}
	text = otherRule.ReplaceAllString(text, "")
	for _, m := range declarationRule.FindAllStringSubmatch(text, -1) {
		d := &declaration{word: m[1], of: m[3], existing: m[4] != ""}
		if err := json.Unmarshal([]byte(inJSON(m[6])), &d.value); err != nil && m[6] != "" {
			c.add(f, "no Bicep that is known here: %s: %v", m[2], err)
		}
		if d.word == "output" {
			f.outputs[m[2]] = d
		} else {
			f.declared[m[2]] = d
		}
		f.text += m[5] + "\n" + m[6] + "\n"
	}
	if rest := strings.TrimSpace(declarationRule.ReplaceAllString(text, "")); rest != "" {
		c.add(f, "no Bicep that is known here: %s", rest)
	}
	for _, m := range forRule.FindAllStringSubmatch(text, -1) {
		f.loops = append(f.loops, m[1])
	}
	return f
}

// inJSON is a value of Bicep in JSON.
func inJSON(text string) string {
	var all []string
	for line := range strings.Lines(text) {
		line, key := strings.TrimSpace(line), ""
		if m := propertyRule.FindStringSubmatch(line); m != nil && !forRule.MatchString(line) {
			key, line = fmt.Sprintf("%q: ", strings.Trim(m[1], "'")), m[2]
		}
		switch last := line[max(0, len(line)-1):]; {
		case last == "{" || last == "[":
			all = append(all, key+last)
			continue
		case strings.HasPrefix(line, "[") && last == "]":
			line = "[]"
		case strings.Trim(line, "0123456789") != "" && !slices.Contains([]string{"", "{}", "}", "]", "true", "false"}, line):
			if stringRule.FindString(line) != line {
				line = "=" + line
			}
			b, _ := json.Marshal(strings.Trim(line, "'"))
			line = string(b)
		}
		all = append(all, key+line+",")
	}
	made := regexp.MustCompile(`,(\s*[]}])`).ReplaceAllString(strings.Join(all, "\n"), "$1")
	return strings.TrimSuffix(made, ",")
}

// walk calls see with each value below one, by its path: .a.b[].c. A name of a variable stands for its value.
func (f *file) walk(at string, v any, see func(at string, v any)) {
	if name, ok := strings.CutPrefix(fmt.Sprint(v), "="); ok && f.declared[name] != nil && f.declared[name].word == "var" {
		v = f.declared[name].value
	}
	see(at, v)
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if strings.Contains(key, "${") {
				key = "*"
			}
			f.walk(strings.TrimPrefix(at+"."+key, "."), value, see)
		}
	case []any:
		if at != "" { // else it is a resource for each
			at += "[]"
		}
		for _, value := range v {
			f.walk(at, value, see)
		}
	}
}

// kindOf is the kind of a value, empty where it is computed.
func kindOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case bool:
		return "boolean"
	case float64:
		return "integer"
	case string:
		if !strings.HasPrefix(v, "=") {
			return "string"
		}
	}
	return ""
}

// names are the names that the expressions of a file use, with their members: a.b.c. A call ends with a bracket.
func (f *file) names() (all [][]string) {
	plain := stringRule.ReplaceAllStringFunc(forRule.ReplaceAllString(f.text, "$2"), func(s string) string {
		var inserts strings.Builder
		for _, m := range insertRule.FindAllStringSubmatch(s, -1) {
			inserts.WriteString(" " + m[1] + " ")
		}
		return inserts.String()
	})
	for _, m := range nameRule.FindAllStringSubmatch(keyRule.ReplaceAllString(plain, ""), -1) {
		if m[2] != "" || m[4] != "" {
			all = append(all, []string{m[1] + "("})
		} else if m[1] != "true" && m[1] != "false" {
			all = append(all, strings.Split(strings.ReplaceAll(m[1]+m[3], "()", ""), "."))
		}
	}
	return all
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
var functions = []string{"concat", "empty", "guid", "json", "resourceGroup", "subscriptionResourceId", "uniqueString"}

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

func (c *checker) add(f *file, format string, args ...any) {
	c.mistakes = append(c.mistakes, f.name+": "+fmt.Sprintf(format, args...))
}

// resource compares the properties of a resource with the table.
func (c *checker) resource(f *file, d *declaration) {
	if c.table.types[d.of] == nil {
		c.add(f, "%s is not in the table", d.of)
		return
	}
	paths := map[string]bool{}
	f.walk("", d.value, func(at string, v any) {
		if paths[at] = true; at == "" || slices.Contains(words, at) {
			return
		}
		p, ok := c.table.find(d.of, at)
		text, kind := fmt.Sprint(v), kindOf(v)
		switch {
		case !ok:
			c.add(f, "%s has no %s", d.of, at)
		case p.read:
			c.add(f, "%s of %s is for reading", at, d.of)
		case kind != "" && p.kind != "any" && kind != p.kind:
			c.add(f, "%s of %s is of kind %s: want %s", at, d.of, kind, p.kind)
		case kind == "string" && !strings.Contains(text, "${") && p.values != nil && !slices.Contains(p.values, text):
			c.add(f, "%s of %s is %q: want %s", at, d.of, text, strings.Join(p.values, " or "))
		}
	})
	for at := range paths {
		for _, name := range c.table.required(d.of, at) {
			if !d.existing && !paths[strings.TrimPrefix(at+"."+name, ".")] {
				c.add(f, "%s: %q needs %s", d.of, at, name)
			}
		}
	}
}

// symbols looks for names that nothing declares, for parameters and variables that nothing uses, and for what a resource or a
// module does not have to read.
func (c *checker) symbols(f *file) {
	used := map[string]bool{}
	for _, chain := range f.names() {
		name, d := chain[0], f.declared[chain[0]]
		used[name] = true
		function, call := strings.CutSuffix(name, "(")
		switch members := strings.Join(chain[1:], "."); {
		case call && !slices.Contains(functions, function):
			c.add(f, "%s is no function that is known here", function)
		case call, d == nil && slices.Contains(f.loops, name):
		case d == nil:
			c.add(f, "nothing declares %s", name)
		case d.word == "resource" && members != "":
			if _, known := c.table.find(d.of, members); !known && members != "id" && members != "name" && chain[1] != "listKeys" {
				c.add(f, "%s has no %s to read", d.of, members)
			}
		case d.word == "module" && len(chain) == 3:
			if target := c.target(f, d); target != nil && target.outputs[chain[2]] == nil {
				c.add(f, "%s has no output %s", target.name, chain[2])
			}
		}
	}
	for name, d := range f.declared {
		if !used[name] && (d.word == "param" || d.word == "var") {
			c.add(f, "nothing uses %s", name)
		}
	}
}

// roles compares the ids of roles with the table: a variable has the name of its role.
func (c *checker) roles(f *file, text string) {
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "var "), " = ")
		if id := guidRule.FindString(line); id != "" && line != "var "+name+" = '"+c.table.roles[name]+"'\n" {
			c.add(f, "%s is not the id of the role %s", id, name)
		}
	}
}

func (c *checker) target(f *file, m *declaration) *file {
	return c.all[path.Join(path.Dir(f.name), m.of)]
}

// module compares the parameters of a module with what it asks for.
func (c *checker) module(f *file, m *declaration) {
	value, _ := m.value.(map[string]any)
	given, _ := value["params"].(map[string]any)
	if target := c.target(f, m); target != nil {
		c.compare(f, target, given)
	} else {
		c.add(f, "there is no file %s", m.of)
	}
}

func (c *checker) compare(f, target *file, given map[string]any) {
	for name := range given {
		if d := target.declared[name]; d == nil || d.word != "param" {
			c.add(f, "%s has no parameter %s", target.name, name)
		}
	}
	for name, d := range target.declared {
		if _, has := given[name]; d.word == "param" && d.value == nil && !has {
			c.add(f, "%s needs the parameter %s", target.name, name)
		}
	}
}

// parameters compares a file of parameters with its template.
func (c *checker) parameters(name string, text []byte, target *file) {
	var values struct{ Parameters map[string]any }
	if err := json.Unmarshal(text, &values); err != nil || target == nil {
		c.add(&file{name: name}, "%v, for %v", err, target)
		return
	}
	c.compare(&file{name: name}, target, values.Parameters)
}

// Mistakes that are planted in the templates of one kind, and a word of what is
// said of each.
var planted = []struct{ kind, file, old, new, want string }{
	{azd.App, "infra/jobs.bicep", "  }\n}\n", "  }\n", "no Bicep"},
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
	{azd.App, "infra/main.bicep", "modules/logs.bicep", "modules/log.bicep", "there is no file"},
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
