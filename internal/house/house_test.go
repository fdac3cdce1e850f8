// Package house_test checks how the packages of the module are built, what they import, and that the comparison has its sources.
package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMain has the tests run at the root of the module.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

const module = "github.com/soloist-go/soloist"

// imports returns, for each package directory of the module, what it imports.
// Tests count for withTests alone.
func imports(t *testing.T, withTests bool) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && p != ".") {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && d.IsDir() && p != "." {
			return filepath.SkipDir // a module of its own, whose weight users do not get
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") && !withTests {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := path.Clean(filepath.ToSlash(filepath.Dir(p)))
		if all[dir] == nil {
			all[dir] = map[string]bool{}
		}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			all[dir][name] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// required returns the modules that go.mod names as direct requirements.
func required(t *testing.T) (modules []string) {
	t.Helper()
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\s*(?:require )?([a-z0-9.]+\.[a-z]+/\S+) v\S+$`).FindAllStringSubmatch(string(b), -1) {
		modules = append(modules, m[1])
	}
	return modules
}

func TestEachModuleHasOneImporter(t *testing.T) {
	modules := required(t)
	if len(modules) < 5 {
		t.Fatalf("go.mod names only %q", modules)
	}
	importers := map[string][]string{}
	for dir, names := range imports(t, true) {
		for name := range names {
			for _, m := range modules {
				if name == m || strings.HasPrefix(name, m+"/") {
					importers[m] = append(importers[m], dir)
				}
			}
		}
	}
	for _, m := range modules {
		dirs := slices.Compact(slices.Sorted(slices.Values(importers[m])))
		if len(dirs) != 1 {
			t.Errorf("%s is imported by %q, want exactly one package", m, dirs)
		}
	}
}

func TestArrowsPointOneWay(t *testing.T) {
	allowed := map[string][]string{ // what a room of this module may import of it
		".":                    {"calendar", "event", "internal/control", "internal/desk", "internal/elapsed", "internal/entry", "internal/fields", "internal/lease", "internal/logqueue", "internal/mutex", "internal/plan", "internal/queue", "internal/record", "internal/runner", "internal/schedule", "internal/spread", "internal/strangers", "internal/supervise", "internal/ticks", "store"},
		"calendar":             {"internal/schedule"},
		"calendar/holidays":    {"calendar"},
		"calendar/ical":        {"calendar"},
		"deploy/helm":          {},
		"jobs":                 {".", "host"},
		"event":                {},
		"host/azure":           {"store", "internal/alarm", "internal/descriptors", "internal/examine"},
		"host/local":           {"store", "internal/elapsed", "internal/safefile"},
		"host/storetest":       {"store"},
		"internal/alarm":       {"internal/document", "store", "internal/ontime"},
		"internal/azurite":     {"internal/nightly"},
		"internal/blobtest":    {},
		"internal/control":     {"internal/document", "store", "internal/instant", "internal/lease", "internal/record"},
		"internal/desk":        {"internal/control", "internal/record", "internal/runner"},
		"internal/descriptors": {},
		"internal/duration":    {},
		"internal/elapsed":     {},
		"internal/document":    {"internal/ontime", "store"},
		"internal/entry":       {},
		"internal/examine":     {},
		"internal/fields":      {},
		"internal/functions":   {"internal/proctest"},
		"internal/history":     {"event", "store", "internal/record"},
		"internal/instant":     {},
		"internal/lease":       {"event", "store", "internal/instant", "internal/record"},
		"internal/logqueue":    {"internal/queue"},
		"internal/mutex":       {"event", "internal/instant", "internal/lease", "internal/plan", "internal/record", "internal/runner", "internal/supervise", "internal/swept", "store"},
		"internal/near":        {},
		"internal/nightly":     {},
		"internal/ontime":      {},
		"internal/plan":        {"store", "internal/instant", "event", "internal/record"},
		"internal/postgres":    {},
		"internal/proctest":    {".", "store", "host/azure", "host/local", "internal/azurite", "internal/record"},
		"internal/queue":       {},
		"internal/record":      {"event", "store"},
		"internal/reads":       {"store", "internal/lease", "internal/plan"},
		"internal/runner":      {"event", "store", "internal/control", "internal/instant", "internal/lease", "internal/ontime", "internal/plan", "internal/reads", "internal/supervise", "internal/swept", "internal/record"},
		"internal/safefile":    {},
		"internal/schedule":    {"internal/near", "internal/duration"},
		"internal/sim":         {".", "calendar", "event", "host/azure", "host/local", "internal/alarm", "internal/blobtest", "internal/desk", "internal/entry", "internal/history", "internal/record", "internal/sim/draw", "internal/sim/trace", "internal/sim/world", "internal/supervise", "store"},
		"internal/sim/world":   {"event", "store", "host/azure", "internal/alarm", "internal/blobtest", "internal/entry", "internal/sim/draw", "internal/sim/trace", "internal/record"},
		"internal/sim/draw":    {".", "internal/entry", "internal/sim/trace"},
		"internal/sim/judge":   {".", "event", "internal/entry", "internal/instant", "internal/sim/trace", "internal/record"},
		"internal/sim/trace":   {".", "internal/record"},
		"internal/spread":      {"event", "store", "internal/instant", "internal/lease", "internal/record"},
		"internal/ticks":       {"calendar", "internal/schedule"},
		"internal/supervise":   {"event", "store", "internal/instant", "internal/lease", "internal/plan", "internal/record"},
		"internal/strangers":   {"store", "internal/entry", "internal/lease", "internal/record"},
		"internal/swept":       {"internal/document", "internal/entry", "store"},
		"store":                {},

		"internal/alarm/alarmtest": {"internal/alarm"},

		"host":                    {".", "event", "host/internal/alert", "host/internal/app", "host/internal/azd", "host/internal/before", "host/internal/doctor", "host/internal/format", "host/internal/functions", "host/internal/locks", "host/internal/logging", "host/internal/past", "host/internal/presence", "host/internal/telemetry", "host/internal/view", "host/internal/watch", "host/internal/web", "host/internal/why", "host/local", "internal/alarm", "internal/desk", "internal/elapsed", "internal/history", "internal/near", "internal/record", "internal/schedule", "store"},
		"host/internal/alert":     {".", "event", "host/internal/format", "internal/desk", "internal/document", "internal/ontime", "internal/queue", "internal/record", "store"},
		"host/internal/app":       {".", "event", "host/azure", "host/internal/before", "host/internal/format", "host/internal/logging", "host/internal/presence", "host/internal/telemetry", "host/local", "internal/alarm", "internal/desk", "internal/fields", "internal/lease", "internal/logqueue", "internal/near", "internal/record", "internal/schedule", "internal/ticks", "store", "internal/examine"},
		"host/internal/before":    {".", "host/internal/format", "internal/supervise"},
		"host/internal/doctor":    {"host/internal/app", "host/internal/format", "host/internal/functions", "host/internal/view", "host/local", "internal/alarm", "internal/desk", "internal/schedule", "store", "internal/examine"},
		"host/internal/format":    {"event", "internal/duration"},
		"host/internal/functions": {".", "store", "internal/safefile", "host/internal/app", "host/internal/format", "host/internal/view", "host/internal/watch", "host/internal/web", "internal/schedule", "internal/ticks", "event"},
		"host/internal/locks":     {"store", "host/internal/format", "internal/entry", "event", "internal/record"},
		"host/internal/logging":   {"host/internal/format", "internal/logqueue"},
		"host/internal/past":      {"event", "host/internal/app", "host/internal/format", "internal/desk", "internal/history"},
		"host/internal/presence":  {"internal/document", "store", "internal/ontime"},
		"host/internal/telemetry": {".", "event", "internal/desk", "internal/record", "store"},
		"host/internal/azd":       {"deploy/helm", "internal/safefile"},
		"host/internal/view":      {".", "calendar", "event", "host/internal/app", "host/internal/format", "host/internal/locks", "host/internal/past", "host/internal/presence", "internal/desk", "internal/record", "internal/ticks", "store"},
		"host/internal/watch":     {".", "store", "host/internal/format", "internal/ontime"},
		"host/internal/why":       {".", "calendar", "event", "host/internal/app", "host/internal/format", "host/internal/past", "host/internal/presence", "internal/desk", "internal/history", "internal/instant", "internal/record", "internal/ticks"},
		"host/internal/web":       {".", "event", "host/internal/app", "host/internal/format", "host/internal/locks", "host/internal/past", "host/internal/presence", "host/internal/view", "host/internal/why", "internal/descriptors", "internal/desk", "internal/record", "store"},
	}
	all := imports(t, false)
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		for name := range all[dir] {
			rest, ours := strings.CutPrefix(name, module)
			if !ours {
				continue
			}
			room := path.Join(".", rest)
			if !slices.Contains(allowed[dir], room) {
				t.Errorf("%s imports %s", dir, room)
			}
		}
	}
	for _, name := range []string{"net/http", "flag", "os"} {
		if all["."][name] {
			t.Errorf("the root imports %s: where it runs is the business of host", name)
		}
	}
}

// The core emits events. The root alone makes lines of them, so no room of the core has a
// logger, and nothing that it does can wait for a log.
func TestCoreHasNoLogger(t *testing.T) {
	all := imports(t, false)
	for _, room := range []string{"event", "internal/lease", "internal/plan", "internal/runner", "internal/supervise"} {
		for _, name := range []string{"log", "log/slog", module + "/internal/logqueue", module + "/internal/queue"} {
			if all[room][name] {
				t.Errorf("%s imports %s: emit an event", room, name)
			}
		}
	}
}

// Decisions are pure: they wait for nothing, share nothing, and reach no store but
// through the values of its contract.
func TestPlanIsPure(t *testing.T) {
	pure := []string{"cmp", "crypto/rand", "fmt", "maps", "slices", "strings", "time", module + "/event", module + "/internal/instant", module + "/internal/record", module + "/store"}
	for name := range imports(t, false)["internal/plan"] {
		if !slices.Contains(pure, name) {
			t.Errorf("internal/plan imports %s: want nothing but %q", name, pure)
		}
	}
	for file, calls := range impure(t, "internal/plan") {
		t.Errorf("%s uses %q: a decision has no clock, goroutine or channel of its own", file, calls)
	}
}

// impure returns, for each file of a package, what it uses beyond values: the clock, timers,
// goroutines and channels.
func impure(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files: %v", dir, err)
	}
	found := map[string][]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				found[name] = append(found[name], "go")
			case *ast.ChanType:
				found[name] = append(found[name], "chan")
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}, n.Sel.Name) {
					found[name] = append(found[name], "time."+n.Sel.Name)
				}
			}
			return true
		})
	}
	return found
}
