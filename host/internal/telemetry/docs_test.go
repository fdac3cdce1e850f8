package telemetry_test

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/telemetry"
	"github.com/soloist-go/soloist/store"
)

// busy returns the metrics of a replica on which everything has happened, so that each
// metric is there.
func busy(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	s := program()
	m := open(t, s)
	m.Watch(func(context.Context) []soloist.JobStatus {
		return []soloist.JobStatus{{Name: "report", Lease: store.Available}}
	})
	for _, kind := range []event.Kind{event.Started, event.Ended, event.Settled, event.Late, event.Renewed, event.Lost, event.TookOver, event.Dropped} {
		m.Event(event.Event{Kind: kind, Job: "report", Run: event.Run{Tick: noon, Try: 1}})
	}
	if _, err := s.Store.Read(t.Context(), "demo/report"); err == nil {
		t.Fatal("there is a record")
	}
	return m
}

// families are the metrics of a scrape: type and labels of each, as the table has them.
func families(lines []string) map[string]string {
	kinds, labels := map[string]string{}, map[string][]string{}
	series := regexp.MustCompile(`^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			kinds[name] = kind
			continue
		}
		m := series.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels[m[1]], label[1]) && label[1] != "le" {
				labels[m[1]] = append(labels[m[1]], label[1])
			}
		}
	}
	all := map[string]string{}
	for name, kind := range kinds {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue // the client library's, and documented there
		}
		all[name] = kind + " | " + strings.Join(labels[name], ", ")
	}
	all["target_info"] = kinds["target_info"] + " | names of the resource"
	return all
}

func TestDocsHaveEachMetric(t *testing.T) {
	page, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| (.*?) ?\\| \\S.* \\|$").FindAllStringSubmatch(string(page), -1) {
		rows[m[1]] = m[2] + " | " + strings.ReplaceAll(m[3], "`", "")
	}
	got := families(scrape(t, busy(t)))
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if rows[name] != got[name] {
			t.Errorf("docs/metrics.md has %q for %s: want %q", rows[name], name, got[name])
		}
	}
	for name := range rows {
		if got[name] == "" {
			t.Errorf("docs/metrics.md has %s, which there is not", name)
		}
	}
}

// The process itself is measured as that of any Go program.
func TestMetricsOfTheProcess(t *testing.T) {
	lines := scrape(t, busy(t))
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total"} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, name+" ") && line != name+" 0" }) {
			t.Errorf("there is no %s", name)
		}
	}
}

// Each metric says in words what it is, and its unit is in its name.
func TestEachMetricHasHelp(t *testing.T) {
	lines := scrape(t, busy(t))
	for name := range families(lines) {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "# HELP "+name+" ") && len(line) > len(name)+20 }) {
			t.Errorf("%s has no help", name)
		}
	}
}
