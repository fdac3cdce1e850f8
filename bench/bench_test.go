//go:build linux

package main

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/bench/internal/database"
)

func TestWrongArgumentsSayWhatIsAllowed(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-scenarios two", "want some of one,twenty"},
		{"-peers cron", "want some of soloist,ahead,clientgo"},
		{"-ticks -1", "want 1 to 3600"},
		{"-lease 3s,500ms", `"500ms": want whole seconds from 1s to 60s`},
		{"-lease 3", `"3": want whole seconds`},
		{"one", "-h lists them"},
	} {
		if _, err := parse(strings.Fields(c.args), io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.args, err, c.want)
		}
	}
	o, err := parse(strings.Fields("-scenarios skew,leader -peers soloist,blob -ticks 3 -lease 5s,2s"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if got := o.scenarios[0].batches(o); len(got) != 2 || len(got[0]) != 5 || got[0][4].skew != 2*time.Second || got[1][0].peer != "blob" || got[0][0].ticks != 3 {
		t.Errorf("got %+v of skew, want five fleets of each peer", got)
	}
	if got := o.scenarios[1].batches(o); len(got) != 1 || len(got[0]) != 4 || got[0][3].lease != 2*time.Second || got[0][3].label() != "leader 2s" {
		t.Errorf("got %+v of leader, want two fleets of two peers at once", got)
	}
	if o, err = parse(strings.Fields("-scenarios idle -peers river,dbos"), io.Discard); err != nil {
		t.Fatal(err)
	}
	got := o.scenarios[0].batches(o)
	if len(got) != 1 || len(got[0]) != 6 || len(got[0][5].jobs) != 1000 || !got[0][5].idle {
		t.Fatalf("got %+v of idle, want three fleets of two peers at once", got)
	}
	if next := time.Until(got[0][0].jobs[0].Next(time.Now())); next < 11*time.Hour {
		t.Errorf("a job of idle is due in %s, want it hours from now", next)
	}
}

func TestTable(t *testing.T) {
	of := func(peer string, delay time.Duration) row {
		return row{spec: spec{scenario: "one", peer: peer}, Report: Report{Ticks: 3, Runs: 3, Delays: []time.Duration{delay, delay, 2 * delay}, Shares: map[string]int{"r0": 3}}}
	}
	all := table{of("clientgo", 2*ms), of("soloist", 5*ms)}
	all[1].Twice, all[1].Lost, all[1].calls = 1, 2, map[string]float64{"acquire": 3, "read": 4, "document": 9}
	all[1].Faults = []Fault{{What: "kill", Next: 3 * time.Second}, {What: "kill", Next: 5 * time.Second}, {What: "term", Next: -1}}
	many := of("river", 5*ms)
	many.Ticks = 1000
	idle := row{spec: spec{scenario: "idle", variant: "10 jobs", peer: "dbos"}, calls: map[string]float64{"statement": 7200}}
	all = append(all, many, idle)
	var b strings.Builder
	all.print(&b)
	for _, want := range []string{
		"| one | clientgo | 3 | 0 | 0 | 2.0 ms | 4.0 ms | - | 4.0 ms | 1.0 x | 100 % |",
		"| one | soloist | 3 | 1 | 2 | 5.0 ms | 10.0 ms | - | 10.0 ms | 2.5 x |",
		"| one | river | 1000 | 0 | 0 | 5.0 ms | 10.0 ms | 10.0 ms | 10.0 ms |",
		"| 7.00: acquire 3.00, read 4.00, document 9.00 | next run after kill 3.0 s, at most 5.0 s |",
		"| idle 10 jobs | dbos | 0 |",
		"| 7200 an hour: statement 7200 |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// A program of a peer has only its own libraries, or its memory would be that of others too.
func TestEachModuleHasOneImporter(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	direct, _, _ := strings.Cut(string(mod[strings.Index(string(mod), "require ("):]), ")")
	importers := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^\s+(\S+) v\S+$`).FindAllStringSubmatch(direct, -1) {
		importers[m[1]] = nil
	}
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...").Output()
	if err != nil || len(importers) < 8 {
		t.Fatalf("%d modules, %v", len(importers), err)
	}
	for line := range strings.Lines(string(out)) {
		names := strings.Fields(line)
		for m := range importers {
			if slices.ContainsFunc(names[1:], func(name string) bool { return name == m || strings.HasPrefix(name, m+"/") }) {
				importers[m] = append(importers[m], names[0])
			}
		}
	}
	delete(importers, "github.com/soloist-go/soloist") // it is what the bench is for
	for m, dirs := range importers {
		if len(dirs) != 1 {
			t.Errorf("%s is imported by %q, want exactly one package", m, dirs)
		}
	}
}

func TestGrowthSharesAreSinceTheMomentBefore(t *testing.T) {
	at := func(updates, hot int64) []database.Table {
		return []database.Table{{Name: "entry", Updates: updates, Hot: hot, Size: 8 << 10}, {Name: "log"}}
	}
	all := table{{spec: spec{peer: "river"}}, {spec: spec{peer: "postgres"}, growth: []moment{
		{tables: at(200, 100)}, {after: time.Minute, tables: at(600, 490), before: at(200, 100)},
	}}}
	var b strings.Builder
	all.printGrowth(&b)
	for _, want := range []string{
		"| postgres | 0s | entry | 0 | 200 | 100 | 50.00 % | 0 | 8 | 0 | 0 |",
		"| postgres | 1m0s | entry | 0 | 600 | 490 | 97.50 % | 0 | 8 | 0 | 0 |",
		"| postgres | 1m0s | log | 0 | 0 | 0 | - |",
	} {
		if strings.Count(b.String(), want) != 1 {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if heads := strings.Count(b.String(), "| peer |"); heads != 1 {
		t.Errorf("%d heads in\n%s", heads, b.String())
	}
}
