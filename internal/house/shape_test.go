package house_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A room is small enough to be known: few files with one idea each, few methods on one type. Types that need each other
// can only be understood, and changed, all at once. A struct of many fields hides which of them belong together.
const (
	maxFiles   = 14
	maxMethods = 40
	maxFields  = 15
)

// thick are packages that still have more files. A number here only becomes smaller.
var thick = map[string]int{"internal/runner": 18, "internal/sim": 25, "internal/sim/draw": 15}

// broad are types that still have more methods. A number here only becomes smaller.
var broad = map[string]int{"Cluster": 101}

// wide are structs that may have more fields. Job is a form that users fill in: its fields
// are the settings of a job, and most programs set three of them. A status is a form that they read, and a record one that replicas do;
// a Definition and an Event of the log of a simulation are forms too.
var wide = map[string]int{"Job": 20, "JobStatus": 27, "Status": 21, "Record": 18, "Policy": 17, "Event": 37, "Definition": 39}

// mutual are the types that may need each other. A run has locks, and what holds a lock is a run.
var mutual = map[string][]string{".": {"Lock", "Run"}}

func TestRoomsAreSmall(t *testing.T) {
	core := []string{".", "event", "store", "internal/alarm", "internal/control", "internal/entry", "internal/history", "internal/lease", "internal/logqueue", "internal/mutex", "internal/plan",
		"internal/queue", "internal/runner", "internal/schedule", "internal/spread", "internal/supervise", "internal/ticks", "calendar"}
	for _, dir := range slices.Sorted(maps.Keys(imports(t, false))) {
		r := newRoom(t, dir)
		if most := max(maxFiles, thick[dir]); r.files > most {
			t.Errorf("%s has %d files: want at most %d; merge those that are about one thing, or move a part that stands for itself", dir, r.files, most)
		}
		for name, n := range r.methods {
			if n > max(maxMethods, broad[name]) {
				t.Errorf("%s: %s has %d methods: want at most %d; give what they need to a type of its own", dir, name, n, max(maxMethods, broad[name]))
			}
		}
		if !slices.Contains(core, dir) {
			continue
		}
		if cycle := r.types.cycle(); len(cycle) > 1 && !slices.Equal(cycle, mutual[dir]) {
			t.Errorf("%s: the types %q need each other: pass a value in place of one of them", dir, cycle)
		}
		for name, n := range r.fields {
			if n > max(maxFields, wide[name]) {
				t.Errorf("%s: %s has %d fields: want at most %d; put those that belong together into a struct of their own", dir, name, n, max(maxFields, wide[name]))
			}
		}
	}
}

// A graph has, of each name, the names that it uses.
type graph map[string]map[string]bool

func (g graph) add(from, to string) {
	if from == "" || to == "" || from == to {
		return
	}
	if g[from] == nil {
		g[from] = map[string]bool{}
	}
	g[from][to] = true
}

// reach adds to seen what can be reached from a name.
func (g graph) reach(from string, seen map[string]bool) map[string]bool {
	for to := range g[from] {
		if !seen[to] {
			seen[to] = true
			g.reach(to, seen)
		}
	}
	return seen
}

// cycle returns the most names that can all reach each other, empty if none can.
func (g graph) cycle() (largest []string) {
	reached := map[string]map[string]bool{}
	for from := range g {
		reached[from] = g.reach(from, map[string]bool{})
	}
	for _, from := range slices.Sorted(maps.Keys(g)) {
		var all []string
		for _, to := range slices.Sorted(maps.Keys(reached[from])) {
			if reached[to][from] {
				all = append(all, to)
			}
		}
		if len(all) > len(largest) {
			largest = all
		}
	}
	return largest
}

// A room is how a package is built.
type room struct {
	files   int
	types   graph          // a type uses what its declaration and its methods name
	methods map[string]int // of each type
	fields  map[string]int // of each struct, with those of embedded ones
}

// emptyPackages stands in for all packages that are imported. Names of the package itself resolve
// all the same, and nothing else counts.
type emptyPackages struct{}

func (emptyPackages) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, filepath.Base(name))
	p.MarkComplete()
	return p, nil
}

func newRoom(t *testing.T, dir string) *room {
	t.Helper()
	set, files := token.NewFileSet(), []*ast.File(nil)
	names, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range names {
		if ok, _ := build.Default.MatchFile(dir, filepath.Base(name)); !ok || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: emptyPackages{}, Error: func(error) {}} // there are many: the imports are empty
	p, _ := config.Check(dir, set, files, info)
	r := &room{files: len(files), types: graph{}, methods: map[string]int{}, fields: map[string]int{}}
	for _, f := range files {
		for _, d := range f.Decls {
			if m, ok := d.(*ast.FuncDecl); ok && m.Recv != nil {
				r.methods[ownerOf(info.Defs[m.Name])]++
			}
			for owner, part := range parts(info, d) {
				ast.Inspect(part, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok && belongs(info.Uses[id], p) {
						r.types.add(owner, ownerOf(info.Uses[id]))
					}
					return true
				})
			}
		}
	}
	for _, name := range p.Scope().Names() {
		if s, ok := p.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok {
			r.fields[name] = countFields(s)
		}
	}
	return r
}

// parts returns the parts of a declaration by the type that owns them, empty for none.
func parts(info *types.Info, d ast.Decl) map[string]ast.Node {
	general, ok := d.(*ast.GenDecl)
	if f, isFunc := d.(*ast.FuncDecl); isFunc {
		return map[string]ast.Node{ownerOf(info.Defs[f.Name]): f}
	} else if !ok || general.Tok != token.TYPE {
		return map[string]ast.Node{"": d}
	}
	all := map[string]ast.Node{}
	for _, s := range general.Specs {
		all[s.(*ast.TypeSpec).Name.Name] = s
	}
	return all
}

// belongs reports whether an object is the package's: a name of it, a method or a field.
func belongs(o types.Object, p *types.Package) bool {
	if o == nil || o.Pkg() != p || !o.Pos().IsValid() {
		return false
	}
	v, isVar := o.(*types.Var)
	return o.Parent() == p.Scope() || isVar && v.IsField() || ownerOf(o) != ""
}

// ownerOf returns the type that an object is, or whose method it is; empty: neither.
func ownerOf(o types.Object) string {
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
		at := f.Signature().Recv().Type()
		if pointer, ok := at.(*types.Pointer); ok {
			at = pointer.Elem()
		}
		if named, ok := at.(*types.Named); ok {
			return named.Obj().Name()
		}
	}
	if name, ok := o.(*types.TypeName); ok && o.Parent() == o.Pkg().Scope() {
		return name.Name()
	}
	return ""
}

// countFields counts the fields of a struct and of those that are embedded in it. A pointer is one field.
func countFields(s *types.Struct) (n int) {
	for f := range s.Fields() {
		if inner, ok := f.Type().Underlying().(*types.Struct); ok && f.Embedded() {
			n += countFields(inner)
			continue
		}
		n++
	}
	return n
}
