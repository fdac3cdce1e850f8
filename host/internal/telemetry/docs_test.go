package telemetry_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/telemetry"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/store"
)

const deploy = "../../../deploy/"

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// busy returns the metrics of a replica on which everything has happened, so that each
// metric is there.
func busy(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	s := program()
	m := open(t, s)
	m.Watch(func(context.Context) []desk.Status {
		return []desk.Status{{Name: "report", Lease: store.Available}}
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
			continue // the library's, and documented there
		}
		all[name] = kind + " | " + strings.Join(labels[name], ", ")
	}
	all["target_info"] = kinds["target_info"] + " | names of the resource"
	return all
}

// The page has type and labels of each metric, and each metric says in words what it is. The process itself is measured as that
// of any Go program.
func TestDocsHaveEachMetric(t *testing.T) {
	rows := map[string]string{}
	table := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| (.*?) ?\\| \\S.* \\|$")
	for _, m := range table.FindAllStringSubmatch(read(t, "../../../docs/metrics.md"), -1) {
		rows[m[1]] = m[2] + " | " + strings.ReplaceAll(m[3], "`", "")
	}
	lines := scrape(t, busy(t))
	got := families(lines)
	all := maps.Clone(rows)
	maps.Copy(all, got)
	for name := range all {
		if rows[name] != got[name] {
			t.Errorf("docs/metrics.md has %q for %s: want %q", rows[name], name, got[name])
		}
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "# HELP "+name+" ") && len(line) > len(name)+20 }) {
			t.Errorf("%s has no help", name)
		}
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total"} {
		if !slices.ContainsFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, name+" ") && (line != name+" 0" || name == "process_cpu_seconds_total") // it may have used none yet
		}) {
			t.Errorf("there is no %s", name)
		}
	}
}

// Rules and dashboard ask for metrics and labels that there are, and for each metric but
// the name of the target there is a rule or a panel. The dashboard is one: each panel has an id of its own.
func TestDeployAsksForMetricsThatThereAre(t *testing.T) {
	known := families(scrape(t, busy(t)))
	used := map[string]bool{}
	for _, file := range []string{"prometheus/rules.yaml", "grafana/soloist.json"} {
		text := read(t, deploy+file)
		for _, name := range regexp.MustCompile(`\bsoloist_\w+`).FindAllString(text, -1) {
			family := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if known[name] == "" && !strings.HasPrefix(known[family], "histogram") {
				t.Errorf("%s asks for %s, which there is not", file, name)
			}
			used[name], used[family] = true, true
		}
		for _, list := range regexp.MustCompile(`\bby \(([^)]*)\)`).FindAllStringSubmatch(text, -1) {
			for label := range strings.SplitSeq(list[1], ", ") {
				if !slices.Contains([]string{"job", "le", "job_name", "outcome", "operation", "result", "reason"}, label) {
					t.Errorf("%s asks for the label %s", file, label)
				}
			}
		}
	}
	var board struct{ Panels []struct{ ID int } }
	ids := map[int]bool{}
	if err := json.Unmarshal([]byte(read(t, deploy+"grafana/soloist.json")), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		ids[p.ID] = true
	}
	if len(ids) < 10 || len(ids) < len(board.Panels) {
		t.Errorf("the dashboard has %d panels with %d ids", len(board.Panels), len(ids))
	}
	for name := range known {
		if !used[name] && name != "target_info" {
			t.Errorf("no rule and no panel has %s", name)
		}
	}
}

// The alerts of Azure Monitor look for values that the program logs.
func TestAzureAlertsLookForTextsOfTheLog(t *testing.T) {
	var template struct {
		Variables struct {
			Alerts []struct{ Name, Text, Where string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, deploy+"azuremonitor.json")), &template); err != nil {
		t.Fatal(err)
	}
	log := read(t, "../../../event.go") + read(t, "../../../event/outcome.go") + `"WARN" "ERROR"`
	texts := 0
	for _, a := range template.Variables.Alerts {
		if strings.Contains(a.Where, "line.event") && !strings.Contains(a.Where, "'WARN'") {
			t.Errorf("%s looks at no level: a stop abandons each singleton, which is no warning, and debug lines repeat others", a.Name)
		}
		for _, text := range regexp.MustCompile(`'([^']+)'`).FindAllStringSubmatch(a.Where, -1) {
			texts++
			if !strings.Contains(log, `"`+text[1]+`"`) {
				t.Errorf("%s looks for %q, which the program does not log", a.Name, text[1])
			}
		}
	}
	if texts < 5 {
		t.Errorf("found %d texts", texts)
	}
}

// ours are the lines of a scrape without those of the library, which have no help.
func ours(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "go_") || strings.HasPrefix(line, "process_") })
}

// What Prometheus says of the metrics and of the rules.
func TestPromtool(t *testing.T) {
	nightly.Only(t, "starts promtool")
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool: apt-get install prometheus")
	}
	check := exec.Command(tool, "check", "metrics")
	check.Stdin = strings.NewReader(strings.Join(ours(scrape(t, busy(t))), "\n") + "\n")
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("check metrics: %v: %s", err, out)
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml", "rules_day_test.yaml"}} {
		c := exec.Command(tool, args...)
		c.Dir = filepath.FromSlash(deploy + "prometheus")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", args, err, out)
		}
	}
	tests := read(t, deploy+"prometheus/rules_test.yaml") + read(t, deploy+"prometheus/rules_day_test.yaml")
	for _, name := range regexp.MustCompile(`(?m)- alert: (\w+)`).FindAllStringSubmatch(read(t, deploy+"prometheus/rules.yaml"), -1) {
		if !strings.Contains(tests, "alertname: "+name[1]) {
			t.Errorf("the alert %s has no test", name[1])
		}
	}
}

// A caller chooses between plain text and gzip, and nothing else: each further form would be a rendering of its own.
func TestScrapeForms(t *testing.T) {
	m := open(t, program())
	for encoding, zipped := range map[string]bool{"": false, "gzip": true, "zstd, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "zstd": false} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Accept", "application/openmetrics-text,application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
		r.Header.Set("Accept-Encoding", encoding)
		m.ServeHTTP(w, r)
		body := io.Reader(w.Body)
		if zipped {
			var err error
			if body, err = gzip.NewReader(w.Body); err != nil {
				t.Fatalf("%q: %v", encoding, err)
			}
		}
		text, err := io.ReadAll(body)
		if err != nil || !strings.Contains(string(text), "\nsoloist_running") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") ||
			(w.Header().Get("Content-Encoding") == "gzip") != zipped {
			t.Errorf("%q: got %v, %v, %.100q", encoding, w.Header(), err, text)
		}
	}
}
