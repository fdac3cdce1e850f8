package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestMovingNamesSettings wants each name in the right column of docs/moving.md to be one of the API, or to be a variable.
func TestMovingNamesSettings(t *testing.T) {
	names, text := exported(t, ".", "host"), words(t, "host/internal/app/settings.go")
	b, err := os.ReadFile("docs/moving.md")
	if err != nil {
		t.Fatal(err)
	}
	code, name, seen := regexp.MustCompile("`[^`]+`"), regexp.MustCompile(`(?:\w+\.)?\b[A-Z]\w+`), 0
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 2 {
			continue
		}
		for _, span := range code.FindAllString(cells[1], -1) {
			for _, n := range name.FindAllString(strings.ReplaceAll(span, "<NAME>", ""), -1) {
				switch pkg, of, qualified := strings.Cut(n, "."); {
				case strings.HasPrefix(n, "SOLOIST_"):
					seen++
					if strings.HasPrefix(n, "SOLOIST_JOB_") { // those of a job are read by their last word
						n = n[strings.LastIndex(n, "_")+1:]
					}
					if !strings.Contains(text, `envconfig:"`+n+`"`) {
						t.Errorf("%s: there is no variable %s", line, n)
					}
				case pkg == "exec" || pkg == "time" || pkg == "context" || n == "L" || n == "H": // Go's, and letters of schedules
				default:
					seen++
					if !qualified {
						of = n
					}
					if !names[of] {
						t.Errorf("%s: there is no %s", line, n)
					}
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d names, want 50 at least", seen)
	}
}

// exported returns what the packages in those directories declare and export, with fields and methods.
func exported(t *testing.T, dirs ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					names[n.Name.Name] = true
				case *ast.FuncDecl:
					names[n.Name.Name] = true
				case *ast.ValueSpec:
					for _, id := range n.Names {
						names[id.Name] = true
					}
				case *ast.Field:
					for _, id := range n.Names {
						names[id.Name] = true
					}
				}
				return true
			})
		}
	}
	return names
}
