// Package kubernetes_test compares what deploy-files kubernetes writes with the types of Kubernetes, and the manifest with what
// Helm makes of the chart. Helm and kubeconform are tools of this module. The types are those that kubectl-validate has in its
// module, so nothing is asked of a network that the module proxy does not have.
package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// versions are the oldest one that Chart.yaml allows, and the newest that kubectl-validate has.
var versions = []string{"1.27", "1.30"}

const image = "registry.example.com/reports:1.4.0"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// command runs one and returns what it prints, and whether it succeeded.
func command(t *testing.T, dir, stdin string, args ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), err == nil
}

// written returns the directory that deploy-files has written.
func written(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/reports\n"), 0o644))
	out, ok := command(t, "../..", "", "run", "./jobs", "deploy-files", "kubernetes", dir, "--image", image, "--package", "./jobs")
	if !ok {
		t.Fatal(out)
	}
	return dir
}

func manifest(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(written(t), "kubernetes.yaml"))
	must(t, err)
	return string(text)
}

// schemas writes the types of a version as JSON schemas that refuse unknown fields, and returns where.
func schemas(t *testing.T, version string) string {
	t.Helper()
	out, _ := command(t, ".", "", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kubectl-validate")
	from, to := filepath.Join(strings.TrimSpace(out), "pkg/openapiclient/builtins", version), t.TempDir()
	for file, suffix := range map[string]string{"api/v1": "v1", "apis/apps/v1": "apps-v1", "apis/policy/v1": "policy-v1"} {
		text, err := os.ReadFile(filepath.Join(from, file+".json"))
		must(t, err)
		text = bytes.ReplaceAll(text, []byte("#/components/schemas/"), []byte("#/definitions/"))
		var api struct {
			Components struct{ Schemas map[string]any }
		}
		must(t, json.Unmarshal(text, &api))
		close(api.Components.Schemas)
		for name, schema := range api.Components.Schemas {
			for _, kind := range kinds(schema) {
				schema := map[string]any{"$ref": "#/definitions/" + name, "definitions": api.Components.Schemas}
				text, err := json.Marshal(schema)
				must(t, err)
				must(t, os.WriteFile(filepath.Join(to, strings.ToLower(kind)+"-"+suffix+".json"), text, 0o644))
			}
		}
	}
	return to
}

// close has each object take no fields but its own.
func close(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, open := v["additionalProperties"]; !open && v["type"] == "object" && v["properties"] != nil {
			v["additionalProperties"] = false
		}
		for _, below := range v {
			close(below)
		}
	case []any:
		for _, below := range v {
			close(below)
		}
	}
}

// kinds are those whose schema this is, of one group alone.
func kinds(schema any) (names []string) {
	s, _ := schema.(map[string]any)
	all, _ := s["x-kubernetes-group-version-kind"].([]any)
	if len(all) != 1 {
		return nil
	}
	kind, _ := all[0].(map[string]any)
	return []string{kind["kind"].(string)}
}

// kubeconform returns what it says of a manifest, and whether that is right.
func kubeconform(t *testing.T, schemas, manifest string) (string, bool) {
	t.Helper()
	return command(t, ".", manifest, "tool", "kubeconform", "-strict", "-summary",
		"-schema-location", filepath.Join(schemas, "{{.ResourceKind}}{{.KindSuffix}}.json"))
}

func TestManifestFitsTypes(t *testing.T) {
	text := manifest(t)
	for _, version := range versions {
		out, ok := kubeconform(t, schemas(t, version), text)
		if !ok || !strings.Contains(out, "3 resources found parsing stdin - Valid: 3, Invalid: 0, Errors: 0, Skipped: 0") {
			t.Errorf("%s: %s", version, out)
		}
	}
}

// What kubectl or the API would refuse, and what they would silently drop.
func TestWrongManifestIsFound(t *testing.T) {
	text, types := manifest(t), schemas(t, versions[0])
	for old, change := range map[string][2]string{
		"terminationGracePeriodSeconds: 45": {"terminationGracePeriod: 45", "terminationGracePeriod"},
		"maxUnavailable: 1\n":               {"maxUnavailble: 1\n", "maxUnavailble"},
		"replicas: 2":                       {`replicas: "2"`, "/spec/replicas"},
		"- topologyKey: kubernetes.io/":     {"- topology: kubernetes.io/", "topologyKey"},
		"periodSeconds: 2\n":                {"periodSeconds: 2\n            periodSeconds: 3\n", "already set"},
		"kind: PodDisruptionBudget":         {"kind: PodDisruptionBudgets", "could not find schema"},
	} {
		wrong := strings.Replace(text, old, change[0], 1)
		if out, ok := kubeconform(t, types, wrong); wrong == text || ok || !strings.Contains(out, change[1]) {
			t.Errorf("%s: got %v, %s, want a word of %q", change[0], ok, out, change[1])
		}
	}
}

// objects are those of a manifest, by kind.
func objects(t *testing.T, manifest string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, text := range regexp.MustCompile(`(?m)^---$`).Split(manifest, -1) {
		var object map[string]any
		if must(t, yaml.Unmarshal([]byte(text), &object)); object != nil {
			all[object["kind"].(string)] = object
		}
	}
	return all
}

// helm runs a command of Helm on the chart in a directory. A Helm that Go has built knows no cluster, and takes it for an old one.
func helm(t *testing.T, dir string, args ...string) (string, bool) {
	t.Helper()
	return command(t, ".", "", append([]string{"tool", "helm"}, append(args, filepath.Join(dir, "chart"), "--kube-version", versions[0])...)...)
}

func TestChartIsManifest(t *testing.T) {
	dir := written(t)
	if out, ok := helm(t, dir, "lint", "--strict"); !ok {
		t.Error(out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "kubernetes.yaml"))
	must(t, err)
	out, ok := helm(t, dir, "template", "jobs")
	want := objects(t, string(text))
	if got := objects(t, out); !ok || len(want) != 3 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %s, want %s", out, text)
	}
}

// What other values make fits the types, too, and has these lines.
func TestValues(t *testing.T) {
	dir, types := written(t), schemas(t, versions[0])
	for values, lines := range map[string][]string{
		"storage=https://a.blob.core.windows.net,identityClientId=00000000-0000-0000-0000-00000000000a": {
			`value: "https://a.blob.core.windows.net"`, `azure.workload.identity/client-id: "00000000-0000-0000-0000-00000000000a"`,
			`azure.workload.identity/use: "true"`, "value: WorkloadIdentityCredential", "!key: SOLOIST_STORAGE"},
		"storage=dir:/data/records,volumeClaim=records": {"mountPath: /data", `claimName: "records"`, "fsGroup: 65532", "podAffinity:", "!topologySpread"},
		"storage=postgres://db.example.com/jobs":        {`value: "postgres://db.example.com/jobs"`},
		"grace=600,replicas=3":                          {`value: "600s"`, "terminationGracePeriodSeconds: 620", "replicas: 3"},
		"imagePullSecrets={acr},nodeSelector.pool=jobs,settings.SOLOIST_LOG_LEVEL=debug,tolerations[0].operator=Exists": {
			`- name: "acr"`, `nodeSelector: {"pool":"jobs"}`, `tolerations: [{"operator":"Exists"}]`, "- name: SOLOIST_LOG_LEVEL\n              value: \"debug\""},
		"secretSettings=null": {"!SOLOIST_READ_TOKEN", "key: SOLOIST_STORAGE"},
	} {
		out, ok := helm(t, dir, "template", "jobs", "--set", values)
		said, valid := kubeconform(t, types, out)
		if !ok || !valid {
			t.Errorf("%s: %s%s", values, out, said)
		}
		for _, line := range lines {
			line, never := strings.CutPrefix(line, "!")
			if strings.Contains(out, line) == never {
				t.Errorf("%s: is %q there: %v", values, line, never)
			}
		}
	}
}

// What would run each tick in each pod, lose records, write a secret into the cluster's objects, or start nothing, is refused.
func TestWrongValuesAreRefused(t *testing.T) {
	dir := written(t)
	for values, want := range map[string]string{
		"storage=memory:":                                 "each pod would run each tick",
		"storage=dir:.soloist":                            "neither a URL nor dir:/data/NAME",
		"storage=AccountName=a;AccountKey=ab9":            "neither a URL nor dir:/data/NAME",
		"storage=postgres://jobs:ab9@db/jobs":             "has a secret in it",
		"storage=https://example.com?sig=ab9":             "has a secret in it",
		"storage=dir:/data/records":                       "without a volumeClaim",
		"volumeClaim=records":                             `volumeClaim is "records", but`,
		"storage=https://example.com,volumeClaim=records": `volumeClaim is "records", but`,
		"replicas=0":                                      "at '/replicas'",
		"image=jobs":                                      `image is "jobs": want a tag`,
		"app=Night":                                       "at '/app'",
		"grace=25s":                                       "at '/grace'",
		"identityClientId=CLIENT_ID":                      "at '/identityClientId'",
		"settings.SOLOIST_ALARM=queue":                    "settings has SOLOIST_ALARM: an alarm",
		"settings.SOLOIST_ADMIN_TOKEN=ab9":                "settings has SOLOIST_ADMIN_TOKEN, which is a secret",
		"settings.SOLOIST_APP=other":                      "SOLOIST_APP cannot be in settings",
		"secretSettings={SOLOIST_STORAGE}":                "SOLOIST_STORAGE cannot be in",
		"replica=3":                                       "'replica' not allowed",
	} {
		if out, ok := helm(t, dir, "template", "jobs", "--set", values); ok || !strings.Contains(out, want) || strings.Contains(out, "ab9") {
			t.Errorf("%s: got %s, want %q, and no secret", values, out, want)
		}
	}
}

// All values have a rule, and the rules name no others.
func TestSchemaHasAllValues(t *testing.T) {
	dir := filepath.Join(written(t), "chart")
	var values map[string]any
	var schema struct{ Properties map[string]any }
	for name, to := range map[string]any{"values.yaml": &values, "values.schema.json": &schema} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		must(t, yaml.Unmarshal(text, to))
	}
	delete(schema.Properties, "global") // which Helm adds
	got, want := slices.Sorted(maps.Keys(schema.Properties)), slices.Sorted(maps.Keys(values))
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("got rules for %q, want %q", got, want)
	}
}
