package azd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"testing"

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
	if err := installed(); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for name, text := range files {
		if path.Ext(name) == ".bicep" {
			texts[name] = string(text)
		}
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	var complaint bytes.Buffer
	c := exec.Command("node", "testdata/parse.mjs")
	c.Stdin, c.Stderr = bytes.NewReader(in), &complaint
	out, err := c.Output()
	if err != nil {
		t.Fatalf("node: %v: %s", err, complaint.String())
	}
	var trees map[string]node
	if err := json.Unmarshal(out, &trees); err != nil {
		t.Fatal(err)
	}
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
	name      string
	tree      node
	params    map[string]bool // by name: it has a default
	vars      map[string]node
	resources map[string]resource
	modules   map[string]node
	outputs   map[string]bool
}

type resource struct {
	kind     string // with its API version
	existing bool
	body     node
}

func newFile(name string, tree node) *file {
	f := &file{name: name, tree: tree, params: map[string]bool{}, vars: map[string]node{}, resources: map[string]resource{}, modules: map[string]node{}, outputs: map[string]bool{}}
	for _, d := range tree.Of {
		symbol := d.child("identifier").Text
		switch d.Type {
		case "parameter_declaration":
			f.params[symbol] = d.last().Type != "type"
		case "variable_declaration":
			f.vars[symbol] = d.last()
		case "resource_declaration":
			kind, _ := d.child("string").literal()
			f.resources[symbol] = resource{kind, d.child("existing").Type != "", body(d.last())}
		case "module_declaration":
			f.modules[symbol] = d
		case "output_declaration":
			f.outputs[symbol] = true
		}
	}
	return f
}

// body is the object of a declaration, within its loop or condition.
func body(n node) node {
	for n.Type == "for_statement" || n.Type == "if_statement" {
		n = n.last()
	}
	return n
}

// An entry is a property that an object has, by its path: a.b[].c.
type entry struct {
	path, kind, text string
	line             int
}

// entries are the properties of an object and of those in it. A name of a
// variable stands for its value.
func (f *file) entries(at string, n node) (all []entry) {
	switch n.Type {
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
	case "identifier":
		if v, ok := f.vars[n.Text]; ok {
			all = f.entries(at, v)
		}
	}
	return all
}

// kindOf is the kind of a value, empty where it is computed.
func (f *file) kindOf(n node) string {
	switch n.Type {
	case "string", "boolean", "object", "array":
		return n.Type
	case "number":
		return "integer"
	case "identifier":
		if v, ok := f.vars[n.Text]; ok {
			return f.kindOf(v)
		}
	}
	return ""
}
