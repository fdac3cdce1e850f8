package azd_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/azd"
)

// deploy/azuremonitor.json and alerts.bicep are the same alerts: the rules, their properties, the version of the type.
func TestAlertsFitBicep(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(top + "/deploy/azuremonitor.json")
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Variables struct {
			Lines  string
			Alerts []struct {
				Name, Text, Where string
				Severity          int
			}
		}
		Resources []struct {
			Type, APIVersion, Kind string
			Properties             map[string]any
		}
	}
	if err := json.Unmarshal(b, &template); err != nil {
		t.Fatal(err)
	}
	module := string(filesOf(t, program(azd.App))["infra/modules/alerts.bicep"])
	if n := strings.Count(module, "    where: "); n != len(template.Variables.Alerts) {
		t.Errorf("azuremonitor.json has %d alerts, alerts.bicep %d", len(template.Variables.Alerts), n)
	}
	for _, a := range template.Variables.Alerts {
		text, _ := json.Marshal(a.Severity)
		want := "  {\n    name: '" + strings.TrimPrefix(a.Name, "soloist-") + "'\n    text: '" + a.Text + "'\n    severity: " + string(text) +
			"\n    where: '" + strings.ReplaceAll(strings.TrimPrefix(a.Where, " | "), "'", `"`) + "'\n  }\n"
		if !strings.Contains(module, want) {
			t.Errorf("alerts.bicep has no\n%s", want)
		}
	}
	rule := template.Resources[0]
	_, body, found := strings.Cut(module, "resource alerts '"+rule.Type+"@"+rule.APIVersion+"'")
	if !found || !strings.Contains(body, "kind: '"+rule.Kind+"'") {
		t.Errorf("alerts.bicep has no %s@%s of the kind %s", rule.Type, rule.APIVersion, rule.Kind)
	}
	if got, want := bicepPairs(body), pairs("", rule.Properties); !slices.Equal(got, want) {
		t.Errorf("alerts.bicep has %q, want what azuremonitor.json has, %q", got, want)
	}
	lines := strings.NewReplacer("[concat('", "lines: '", "')]", "'", "', parameters('appName'), '", "${resourceName}").Replace(template.Variables.Lines)
	for _, kind := range []string{azd.App, azd.Job} {
		if !bytes.Contains(filesOf(t, program(kind))["infra/main.bicep"], []byte(lines+"\n")) {
			t.Errorf("%s has no %s", kind, lines)
		}
	}
}

// pairs are the names of all properties, with their values where these are the same in all rules.
func pairs(name string, v any) (all []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(append(all, key), pairs(key, v[key])...)
		}
	case []any:
		for _, e := range v {
			all = append(all, pairs(name, e)...)
		}
	case string:
		if !strings.HasPrefix(v, "[") {
			all = []string{name + " " + v}
		}
	default:
		text, _ := json.Marshal(v)
		all = []string{name + " " + string(text)}
	}
	slices.Sort(all)
	return all
}

// bicepPairs are the same for the properties of the resource alerts.
func bicepPairs(body string) (all []string) {
	_, body, _ = strings.Cut(body, "    properties: {\n")
	key := ""
	for _, m := range regexp.MustCompile(`(?m)^ +(?:(\w+):)? ?(.*)$`).FindAllStringSubmatch(body, -1) {
		if m[1] != "" {
			key = m[1]
			all = append(all, key)
		}
		value := strings.Trim(m[2], "'")
		if fixed := value == m[2] && !regexp.MustCompile(`^(true|false|\d+)$`).MatchString(value); !fixed && !strings.Contains(value, "${") {
			all = append(all, key+" "+value)
		}
	}
	slices.Sort(all)
	return all
}
