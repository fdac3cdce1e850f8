package house_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withoutExample are the functions, methods and types that need no example, and why: of a type, none of its methods does.
var withoutExample = map[string]string{
	"Run.FinishIn":        "it needs a database",
	"Run.SaveIn":          "it needs a database",
	"host Main":           "it ends the process; its example says how it is called",
	"host Program.Main":   "it ends the process, as Main does",
	"host/storetest Test": "it needs a testing.T; the package comment has the whole test",
	"host/azure Queue":    "a program opens it, and package host calls it",
	"host/azure Store":    "a program opens it, and Scheduler and package host call it",
	"host/local Dir":      "a program makes it, and Scheduler and package host call it",
	"host/local Memory":   "a program makes it, and Scheduler and package host call it",
	"host/postgres Store": "a program opens it, and Scheduler and package host call it",
}

// Whoever reads about a function sees how it is used, in an example that is run; for a method, in an example of its type.
func TestEachVerbHasAnExample(t *testing.T) {
	known := map[string]bool{}
	modules := []string{"host/otel", "host/postgres"} // of their own, and published with this one
	for _, dir := range append(modules, slices.Collect(maps.Keys(imports(t, false)))...) {
		if strings.Contains("/"+dir+"/", "/internal/") {
			continue
		}
		name, verbs, examples := publicAPI(t, dir)
		if name == "main" {
			continue
		}
		for _, verb := range verbs {
			owner, _, _ := strings.Cut(verb, ".")
			shown := slices.ContainsFunc(examples, func(e *doc.Example) bool { return shows(e, name, verb) })
			key, ofOwner := strings.TrimPrefix(dir+" "+verb, ". "), strings.TrimPrefix(dir+" "+owner, ". ")
			known[key], known[ofOwner] = true, true
			switch {
			case !shown && withoutExample[key] == "" && withoutExample[ofOwner] == "":
				t.Errorf("%s: no example with output uses %s", dir, verb)
			case shown && withoutExample[key] != "":
				t.Errorf("%s: an example uses %s, so it is no exception", dir, verb)
			}
		}
	}
	for what := range withoutExample {
		if !known[what] {
			t.Errorf("%s is an exception, and does not exist", what)
		}
	}
}

// publicAPI returns the name of a package, its exported functions and methods, as F and T.M, and its examples that have output.
func publicAPI(t *testing.T, dir string) (name string, verbs []string, examples []*doc.Example) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			examples = append(examples, doc.Examples(f)...)
			continue
		}
		name = f.Name.Name
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.IsExported() {
				verb := fn.Name.Name
				if fn.Recv != nil {
					verb = receiver(fn) + "." + verb
				}
				if ast.IsExported(verb) {
					verbs = append(verbs, verb)
				}
			}
		}
	}
	return name, verbs, slices.DeleteFunc(examples, func(e *doc.Example) bool { return e.Output == "" })
}

// receiver returns the name of the type that a method is of.
func receiver(fn *ast.FuncDecl) string {
	at := fn.Recv.List[0].Type
	if pointer, ok := at.(*ast.StarExpr); ok {
		at = pointer.X
	}
	return at.(*ast.Ident).Name
}

// shows reports whether an example uses a function of a package or, in an example of its type, a method.
func shows(e *doc.Example, name, verb string) (found bool) {
	owner, method, isMethod := strings.Cut(verb, ".")
	if isMethod && e.Name != owner && !strings.HasPrefix(e.Name, owner+"_") {
		return false
	}
	ast.Inspect(e.Code, func(n ast.Node) bool {
		if at, ok := n.(*ast.SelectorExpr); ok {
			x, _ := at.X.(*ast.Ident)
			ofPackage := x != nil && x.Name == name
			found = found || isMethod && !ofPackage && at.Sel.Name == method || !isMethod && ofPackage && at.Sel.Name == verb
		}
		return true
	})
	return found
}
