package azd_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/soloist-go/soloist/host/internal/azd"
	"github.com/soloist-go/soloist/internal/nightly"
)

// A node is one of a syntax tree, as testdata/parse.mjs writes it.
type node struct {
	Type, Field, Text string
	Line              int
	Of                []node
}

// installed says whether node and the grammar are there, and puts the grammar
// there the first time.
var installed = sync.OnceValue(func() error {
	// npm writes this file last.
	const mark = "testdata/node_modules/.package-lock.json"
	lock, err := os.Stat("testdata/package-lock.json")
	if err != nil {
		return err
	}
	if done, err := os.Stat(mark); err == nil && !done.ModTime().Before(lock.ModTime()) {
		return nil
	}
	out, err := exec.Command("npm", "ci", "--prefix", "testdata", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error").CombinedOutput()
	if err != nil {
		return fmt.Errorf("npm ci: %w: %s", err, out)
	}
	return nil
})

// parse reads Bicep files, by path, with a grammar of Bicep.
func parse(t *testing.T, files map[string][]byte) map[string]node {
	t.Helper()
	nightly.Only(t, "starts Node")
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("needs node and npm: apt-get install nodejs npm")
	}
	must(t, installed())
	texts := map[string]string{}
	for name, text := range files {
		if path.Ext(name) == ".bicep" {
			texts[name] = string(text)
		}
	}
	in, err := json.Marshal(texts)
	must(t, err)
	var complaint bytes.Buffer
	c := exec.Command("node", "testdata/parse.mjs")
	c.Stdin, c.Stderr = bytes.NewReader(in), &complaint
	out, err := c.Output()
	if err != nil {
		t.Fatalf("node: %v: %s", err, complaint.String())
	}
	var trees map[string]node
	must(t, json.Unmarshal(out, &trees))
	return trees
}

// each calls f with a node and all below it.
func (n node) each(f func(node)) {
	f(n)
	for _, c := range n.Of {
		c.each(f)
	}
}

// child is the first one of a type; its type is empty if there is none.
func (n node) child(kind string) node {
	for _, c := range n.Of {
		if c.Type == kind {
			return c
		}
	}
	return node{}
}

// last is the last of what a node consists of, such as the value of a
// declaration.
func (n node) last() node {
	if len(n.Of) == 0 {
		return node{}
	}
	return n.Of[len(n.Of)-1]
}

// literal is a string without interpolation.
func (n node) literal() (text string, ok bool) {
	if n.Type != "string" {
		return "", false
	}
	for _, c := range n.Of {
		if c.Type != "string_content" && c.Type != "escape_sequence" {
			return "", false
		}
		text += c.Text
	}
	return text, true
}

// chain are the names of a member expression: a.b.c.
func (n node) chain() []string {
	switch n.Type {
	case "identifier", "property_identifier":
		return []string{n.Text}
	case "member_expression":
		var all []string
		for _, c := range n.Of {
			part := c.chain()
			if part == nil {
				return nil
			}
			all = append(all, part...)
		}
		return all
	}
	return nil
}

// A file is what a Bicep file declares.
type file struct {
	name     string
	tree     node
	declared map[string]node // parameters, variables, resources and modules
	outputs  map[string]bool
}

// The types of declarations.
const (
	parameter = "parameter_declaration"
	variable  = "variable_declaration"
	resource  = "resource_declaration"
	module    = "module_declaration"
	output    = "output_declaration"
)

func newFile(name string, tree node) *file {
	f := &file{name, tree, map[string]node{}, map[string]bool{}}
	for _, d := range tree.Of {
		switch symbol := d.child("identifier").Text; d.Type {
		case parameter, variable, resource, module:
			f.declared[symbol] = d
		case output:
			f.outputs[symbol] = true
		}
	}
	return f
}

// value is what a name of a variable stands for, or the node.
func (f *file) value(n node) node {
	for n.Type == "identifier" && f.declared[n.Text].Type == variable {
		n = f.declared[n.Text].last()
	}
	return n
}

// kind is the type of a resource, with its API version.
func (n node) kind() string {
	kind, _ := n.child("string").literal()
	return kind
}

// body is the object of a declaration, within its loop or condition.
func (n node) body() node {
	for n = n.last(); n.Type == "for_statement" || n.Type == "if_statement"; {
		n = n.last()
	}
	return n
}

// An entry is a property that an object has, by its path: a.b[].c.
type entry struct {
	path, kind, text string
	line             int
}

// entries are the properties of an object and of those in it.
func (f *file) entries(at string, n node) (all []entry) {
	switch n = f.value(n); n.Type {
	case "object":
		for _, p := range n.Of {
			key := p.Of[0].Text
			if p.Of[0].Type == "string" {
				if text, ok := p.Of[0].literal(); ok {
					key = text
				} else {
					key = "*"
				}
			}
			to := strings.TrimPrefix(at+"."+key, ".")
			v := p.last()
			text, _ := v.literal()
			all = append(append(all, entry{to, f.kindOf(v), text, p.Line}), f.entries(to, v)...)
		}
	case "array":
		for _, c := range n.Of {
			all = append(all, entry{at + "[]", f.kindOf(c), "", c.Line})
			all = append(all, f.entries(at+"[]", c)...)
		}
	case "ternary_expression":
		all = append(f.entries(at, n.Of[1]), f.entries(at, n.Of[2])...)
	}
	return all
}

// kindOf is the kind of a value, empty where it is computed.
func (f *file) kindOf(n node) string {
	switch n = f.value(n); n.Type {
	case "string", "boolean", "object", "array":
		return n.Type
	case "number":
		return "integer"
	}
	return ""
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

// tableLine is a type, a role, or a property of the type before it.
var tableLine = regexp.MustCompile(`^(?:([A-Za-z.]+(?:/[A-Za-z]+)+@\d{4}-\d\d-\d\d) https://\S+` +
	`|role (\w+) ([0-9a-f-]{36}) https://\S+` +
	`|  ([\w.*\[\]-]+)(!|\?)? (string|integer|boolean|object|array|number|any)(?: (\S+))?)$`)

// readTable reads testdata/types.txt, which says itself how it is written.
func readTable(t *testing.T) *table {
	t.Helper()
	f, err := os.Open("testdata/types.txt")
	must(t, err)
	defer f.Close()
	all := &table{types: map[string]map[string]property{}, roles: map[string]string{}}
	current := map[string]property(nil)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := tableLine.FindStringSubmatch(line)
		switch {
		case m == nil || m[4] != "" && current == nil:
			t.Fatalf("testdata/types.txt:%d: %q is no line of the table", n, line)
		case m[1] != "":
			current = map[string]property{}
			all.types[m[1]] = current
		case m[2] != "":
			all.roles[m[2]] = m[3]
		default:
			p := property{kind: m[6], required: m[5] == "!", read: m[5] == "?"}
			if m[7] != "" {
				p.values = strings.Split(m[7], "|")
			}
			current[m[4]] = p
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
	files    map[string][]byte
	all      map[string]*file
	mistakes []string
}

// check returns the mistakes of a set of files.
func check(known *table, files map[string][]byte, trees map[string]node) []string {
	c := &checker{table: known, files: files, all: map[string]*file{}}
	for name, tree := range trees {
		c.all[name] = newFile(name, tree)
	}
	for _, name := range slices.Sorted(maps.Keys(c.all)) {
		f := c.all[name]
		c.grammar(f)
		c.symbols(f)
		c.reads(f)
		c.roles(f)
		for _, symbol := range slices.Sorted(maps.Keys(f.declared)) {
			switch d := f.declared[symbol]; d.Type {
			case resource:
				c.resource(f, d)
			case module:
				c.module(f, d)
			}
		}
	}
	c.parameters()
	return c.mistakes
}

func (c *checker) add(f *file, line int, format string, args ...any) {
	c.mistakes = append(c.mistakes, fmt.Sprintf("%s:%d: %s", f.name, line, fmt.Sprintf(format, args...)))
}

func (c *checker) grammar(f *file) {
	f.tree.each(func(n node) {
		if n.Type == "ERROR" || n.Type == "MISSING" {
			c.add(f, n.Line, "no Bicep")
		}
	})
}

// resource compares the properties of a resource with the table.
func (c *checker) resource(f *file, d node) {
	kind, body := d.kind(), d.body()
	if c.table.types[kind] == nil {
		c.add(f, body.Line, "%s is not in the table", kind)
		return
	}
	paths := map[string]bool{"": true}
	for _, e := range f.entries("", body) {
		paths[e.path] = true
		c.entry(f, kind, e)
	}
	if d.child("existing").Type != "" {
		return
	}
	for at := range paths {
		for _, name := range c.table.required(kind, at) {
			if !paths[strings.TrimPrefix(at+"."+name, ".")] {
				c.add(f, body.Line, "%s: %q needs %s", kind, at, name)
			}
		}
	}
}

func (c *checker) entry(f *file, kind string, e entry) {
	if slices.Contains(words, e.path) {
		return
	}
	p, ok := c.table.find(kind, e.path)
	switch {
	case !ok:
		c.add(f, e.line, "%s has no %s", kind, e.path)
	case p.read:
		c.add(f, e.line, "%s of %s is for reading", e.path, kind)
	case e.kind != "" && p.kind != "any" && e.kind != p.kind:
		c.add(f, e.line, "%s of %s is of kind %s: want %s", e.path, kind, e.kind, p.kind)
	case e.text != "" && p.values != nil && !slices.Contains(p.values, e.text):
		c.add(f, e.line, "%s of %s is %q: want %s", e.path, kind, e.text, strings.Join(p.values, " or "))
	}
}

// symbols looks for names that nothing declares, and for parameters and
// variables that nothing uses.
func (c *checker) symbols(f *file) {
	used := map[string]bool{}
	var walk func(n node, loops []string)
	walk = func(n node, loops []string) {
		of := n.Of
		switch {
		case n.Type == "identifier":
			used[n.Text] = true
			if f.declared[n.Text].Type == "" && !slices.Contains(loops, n.Text) {
				c.add(f, n.Line, "nothing declares %s", n.Text)
			}
		case n.Type == "object_property" && n.Of[0].Type == "identifier":
			of = of[1:]
		case n.Type == "call_expression" && n.Of[0].Type == "identifier":
			if of = of[1:]; !slices.Contains(functions, n.Of[0].Text) {
				c.add(f, n.Line, "%s is no function that is known here", n.Of[0].Text)
			}
		case strings.HasSuffix(n.Type, "_declaration"):
			of = of[1:]
		case n.Type == "for_statement":
			loops, of = append(slices.Clone(loops), n.Of[0].Text), of[1:]
		}
		for _, child := range of {
			walk(child, loops)
		}
	}
	walk(f.tree, nil)
	for name, d := range f.declared {
		if !used[name] && (d.Type == parameter || d.Type == variable) {
			c.add(f, d.Line, "nothing uses %s", name)
		}
	}
}

// reads looks at what is read from resources and modules.
func (c *checker) reads(f *file) {
	f.tree.each(func(n node) {
		chain := n.chain()
		if n.Type != "member_expression" || len(chain) < 2 {
			return
		}
		switch d := f.declared[chain[0]]; d.Type {
		case resource:
			path := strings.Join(chain[1:], ".")
			if _, known := c.table.find(d.kind(), path); !known && path != "id" && path != "name" && path != "listKeys" {
				c.add(f, n.Line, "%s has no %s to read", d.kind(), path)
			}
		case module:
			if target := c.target(f, d); target != nil && len(chain) == 3 && !target.outputs[chain[2]] {
				c.add(f, n.Line, "%s has no output %s", target.name, chain[2])
			}
		}
	})
}

var guid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// roles compares the ids of roles with the table: a variable has the name of
// its role.
func (c *checker) roles(f *file) {
	f.tree.each(func(n node) {
		if n.Type != variable && n.Type != "object_property" && n.Type != "array" && n.Type != "arguments" {
			return
		}
		for _, v := range n.Of {
			if text, _ := v.literal(); guid.MatchString(text) && (n.Type != variable || c.table.roles[n.Of[0].Text] != text) {
				c.add(f, n.Line, "%s is not the id of the role %s", text, n.Of[0].Text)
			}
		}
	})
}

func (c *checker) target(f *file, m node) *file {
	name, _ := m.child("string").literal()
	return c.all[path.Join(path.Dir(f.name), name)]
}

// module compares the parameters of a module with what it asks for.
func (c *checker) module(f *file, m node) {
	target := c.target(f, m)
	if target == nil {
		c.add(f, m.Line, "there is no such file")
		return
	}
	given := map[string]bool{}
	for _, e := range f.entries("", m.body()) {
		if name, ok := strings.CutPrefix(e.path, "params."); ok && !strings.ContainsAny(name, ".[") {
			given[name] = true
		}
	}
	c.compare(f, m.Line, target, given)
}

func (c *checker) compare(f *file, line int, target *file, given map[string]bool) {
	for name := range given {
		if target.declared[name].Type != parameter {
			c.add(f, line, "%s has no parameter %s", target.name, name)
		}
	}
	for name, d := range target.declared {
		if preset := d.last().Type != "type"; d.Type == parameter && !preset && !given[name] {
			c.add(f, line, "%s needs the parameter %s", target.name, name)
		}
	}
}

// parameters compares the files of parameters with their templates.
func (c *checker) parameters() {
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		start, ok := strings.CutSuffix(name, ".parameters.json")
		if !ok {
			continue
		}
		var values struct {
			Parameters map[string]struct{ Value any }
		}
		target := c.all[start+".bicep"]
		if err := json.Unmarshal(c.files[name], &values); err != nil || target == nil {
			c.mistakes = append(c.mistakes, fmt.Sprintf("%s: %v, for %v", name, err, target))
			continue
		}
		given := map[string]bool{}
		for name := range values.Parameters {
			given[name] = true
		}
		c.compare(&file{name: name}, 1, target, given)
	}
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
	known, sets, all := readTable(t), make([]map[string][]byte, len(planted)), map[string][]byte{}
	for i, m := range planted {
		files := filesOf(t, program(m.kind))
		if !bytes.Contains(files[m.file], []byte(m.old)) {
			t.Fatalf("%s of %s has no %q", m.file, m.kind, m.old)
		}
		sets[i] = maps.Clone(files)
		sets[i][m.file] = bytes.Replace(files[m.file], []byte(m.old), []byte(m.new), 1)
		for name, text := range sets[i] {
			all[fmt.Sprintf("%d/%s", i, name)] = text
		}
	}
	trees := parse(t, all)
	for i, m := range planted {
		its := map[string]node{}
		for name := range sets[i] {
			if tree, ok := trees[fmt.Sprintf("%d/%s", i, name)]; ok {
				its[name] = tree
			}
		}
		if got := strings.Join(check(known, sets[i], its), "\n"); !strings.Contains(got, m.want) {
			t.Errorf("%q in place of %q in %s of %s: got %q, want a word of %q", m.new, m.old, m.file, m.kind, got, m.want)
		}
	}
}
