package telemetry_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/internal/nightly"
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

// Rules and dashboard ask for metrics and labels that there are, and for each metric but
// the name of the target there is a rule or a panel.
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
	for name := range known {
		if !used[name] && name != "target_info" {
			t.Errorf("no rule and no panel has %s", name)
		}
	}
}

func TestDashboardIsADashboard(t *testing.T) {
	var board struct {
		Title  string
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, deploy+"grafana/soloist.json")), &board); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if p.Title == "" || len(p.Targets) == 0 || p.Targets[0].Expr == "" || ids[p.ID] {
			t.Errorf("got the panel %+v", p)
		}
		ids[p.ID] = true
	}
	if board.Title == "" || len(ids) < 10 {
		t.Errorf("got %d panels", len(ids))
	}
}

// The alerts of Azure Monitor look for texts that the program logs.
func TestAzureAlertsLookForTextsOfTheLog(t *testing.T) {
	var template struct {
		Variables struct {
			Alerts []struct{ Name, Text, Where string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, deploy+"azuremonitor.json")), &template); err != nil {
		t.Fatal(err)
	}
	log := read(t, "../../../event.go") + read(t, "../../../store/record.go") + `"WARN" "ERROR"`
	texts := 0
	for _, a := range template.Variables.Alerts {
		if strings.Contains(a.Where, "'run ended'") && !strings.Contains(a.Where, "'WARN'") {
			t.Errorf("%s looks at no level: a stop abandons each singleton, which is no warning", a.Name)
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

// What Prometheus says of the metrics and of the rules.
func TestPromtool(t *testing.T) {
	nightly.Only(t, "starts promtool")
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool: apt-get install prometheus")
	}
	check := exec.Command(tool, "check", "metrics")
	check.Stdin = strings.NewReader(strings.Join(scrape(t, busy(t)), "\n") + "\n")
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
