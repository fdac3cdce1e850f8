package azd_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

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
		for _, symbol := range slices.Sorted(maps.Keys(f.resources)) {
			c.resource(f, f.resources[symbol])
		}
		for _, symbol := range slices.Sorted(maps.Keys(f.modules)) {
			c.module(f, f.modules[symbol])
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
func (c *checker) resource(f *file, r resource) {
	if c.table.types[r.kind] == nil {
		c.add(f, r.body.Line, "%s is not in the table", r.kind)
		return
	}
	entries := f.entries("", r.body)
	paths := map[string]bool{"": true}
	for _, e := range entries {
		paths[e.path] = true
		c.entry(f, r, e)
	}
	if r.existing {
		return
	}
	for at := range paths {
		for _, name := range c.table.required(r.kind, at) {
			if !paths[strings.TrimPrefix(at+"."+name, ".")] {
				c.add(f, r.body.Line, "%s: %q needs %s", r.kind, at, name)
			}
		}
	}
}

func (c *checker) entry(f *file, r resource, e entry) {
	if slices.Contains(words, e.path) {
		return
	}
	p, ok := c.table.find(r.kind, e.path)
	switch {
	case !ok:
		c.add(f, e.line, "%s has no %s", r.kind, e.path)
	case p.read:
		c.add(f, e.line, "%s of %s is for reading", e.path, r.kind)
	case e.kind != "" && p.kind != "any" && e.kind != p.kind:
		c.add(f, e.line, "%s of %s is of kind %s: want %s", e.path, r.kind, e.kind, p.kind)
	case e.text != "" && p.values != nil && !slices.Contains(p.values, e.text):
		c.add(f, e.line, "%s of %s is %q: want %s", e.path, r.kind, e.text, strings.Join(p.values, " or "))
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
			if !f.declares(n.Text) && !slices.Contains(loops, n.Text) {
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
	for _, name := range slices.Concat(slices.Collect(maps.Keys(f.params)), slices.Collect(maps.Keys(f.vars))) {
		if !used[name] {
			c.add(f, 1, "nothing uses %s", name)
		}
	}
}

func (f *file) declares(name string) bool {
	_, isParam := f.params[name]
	_, isVar := f.vars[name]
	_, isResource := f.resources[name]
	_, isModule := f.modules[name]
	return isParam || isVar || isResource || isModule
}

// reads looks at what is read from resources and modules.
func (c *checker) reads(f *file) {
	f.tree.each(func(n node) {
		chain := n.chain()
		if n.Type != "member_expression" || len(chain) < 2 {
			return
		}
		if r, ok := f.resources[chain[0]]; ok {
			path := strings.Join(chain[1:], ".")
			if _, known := c.table.find(r.kind, path); !known && path != "id" && path != "name" && path != "listKeys" {
				c.add(f, n.Line, "%s has no %s to read", r.kind, path)
			}
		}
		if m, ok := f.modules[chain[0]]; ok && len(chain) == 3 {
			if target := c.target(f, m); target != nil && !target.outputs[chain[2]] {
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
		if n.Type != "variable_declaration" && n.Type != "object_property" && n.Type != "array" && n.Type != "arguments" {
			return
		}
		for _, v := range n.Of {
			if text, _ := v.literal(); guid.MatchString(text) && (n.Type != "variable_declaration" || c.table.roles[n.Of[0].Text] != text) {
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
	for _, e := range f.entries("", body(m.last())) {
		if name, ok := strings.CutPrefix(e.path, "params."); ok && !strings.ContainsAny(name, ".[") {
			given[name] = true
		}
	}
	c.compare(f, m.Line, target, given)
}

func (c *checker) compare(f *file, line int, target *file, given map[string]bool) {
	for name := range given {
		if _, known := target.params[name]; !known {
			c.add(f, line, "%s has no parameter %s", target.name, name)
		}
	}
	for name, preset := range target.params {
		if !preset && !given[name] {
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
