package azd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/azd"
)

var kinds = []string{azd.Functions, azd.App, azd.Job}

// program is one with values that all kinds take.
func program(kind string) azd.Program {
	return azd.Program{Kind: kind, App: "night-report", Queue: "night-report-alarm", Package: "./jobs", Go: "1.26", Root: "..", Here: "deploy", Timeout: 1800}
}

func filesOf(t *testing.T, p azd.Program) map[string][]byte {
	t.Helper()
	files, err := p.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The templates are Bicep, and say nothing that the platform's types do not have.
func TestTemplates(t *testing.T) {
	t.Parallel()
	known := readTable(t)
	all := map[string][]byte{}
	for _, kind := range kinds {
		for name, text := range filesOf(t, program(kind)) {
			all[kind+"/"+name] = text
		}
	}
	mistakes := check(known, all, parse(t, all))
	for _, text := range mistakes {
		t.Error(text)
	}
	t.Logf("%d files, %d resource types in the table", len(all), len(known.types))
}

// What the deployment has to have, whatever else it has: identities in place of
// keys, and a rule that counts visible messages alone.
func TestPromises(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		var infra strings.Builder
		for name, text := range filesOf(t, program(kind)) {
			for _, word := range []string{"AccountKey", "connectionString", "SharedAccess", "password", "listKeys().keys"} {
				if bytes.Contains(text, []byte(word)) {
					t.Errorf("%s: %s has %s", kind, name, word)
				}
			}
			if strings.HasSuffix(name, ".bicep") {
				infra.Write(text)
			}
		}
		wants := map[string]int{"allowSharedKeyAccess: false": 1, "value: 'queue'": 1}
		if kind != azd.Functions {
			maps.Copy(wants, map[string]int{"queueLengthStrategy: 'visibleonly'": 1, "identity: identityId": 1, "type: 'azure-queue'": 1, "adminUserEnabled: false": 1})
		}
		for text, least := range wants {
			if n := strings.Count(infra.String(), text); n < least {
				t.Errorf("%s: %q is there %d times, want %d", kind, text, n, least)
			}
		}
	}
}

// The commands of the README work on a machine that has what it names: azd refuses a service of the language custom until
// that is switched on, and its hooks run Go.
func TestReadmeHasWhatIsNeeded(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		files := filesOf(t, program(kind))
		readme := string(files["README.md"])
		before, _, _ := strings.Cut(readme, "\nazd up\n")
		for word, want := range map[string]string{"language: custom": "\nazd config set alpha.language.custom on ", "go run ": "[azd](https://aka.ms/azd) and Go"} {
			if bytes.Contains(files["azure.yaml"], []byte(word)) != strings.Contains(before, want) {
				t.Errorf("%s: azure.yaml has %q, and README.md before azd up should have %q:\n%s", kind, word, want, before)
			}
		}
	}
}

// YAML and JSON are what they should be, whatever the names are.
func TestNamesAreEscaped(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"..", "../..", `../a b's "c"`, "../$HOME `x` \\"} {
		for _, kind := range kinds {
			p := program(kind)
			p.Root, p.Here = root, "de ploy/\"x\""
			for name, text := range filesOf(t, p) {
				if m := regexp.MustCompile(`project: (".*") #`).FindSubmatch(text); m != nil { // YAML reads the strings of JSON
					var got string
					if err := json.Unmarshal(m[1], &got); err != nil || got != root {
						t.Errorf("%s: the project is %s: got %q, %v, want %q", kind, m[1], got, err, root)
					}
				}
				var v any
				if strings.HasSuffix(name, ".json") {
					if err := json.Unmarshal(text, &v); err != nil {
						t.Errorf("%s: %s: %v", kind, name, err)
					}
				}
			}
		}
	}
	p := program(azd.Functions)
	p.Root = `../a b's $(touch x)`
	if text := filesOf(t, p)["azure.yaml"]; !bytes.Contains(text, []byte(`cd -- '../a b'\''s $(touch x)'`)) {
		t.Errorf("got %s", text)
	}
}

// What the files could not say is refused, with what is allowed.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*azd.Program){
		"want functions, containerapp": func(p *azd.Program) { p.Kind = "vm" },
		"name of the app":              func(p *azd.Program) { p.App = "Night'" },
		"queue is named":               func(p *azd.Program) { p.Queue = "a--b" },
		"3 to 56 lower-case letters":   func(p *azd.Program) { p.Queue = strings.Repeat("a", 57) },
		"main package":                 func(p *azd.Program) { p.Package = "./jobs; rm -rf ~" },
		"outside":                      func(p *azd.Program) { p.Package = "./../x" },
		"release of Go":                func(p *azd.Program) { p.Go = "devel +1" },
		"control character":            func(p *azd.Program) { p.Root = "../a\nb" },
	} {
		p := program(azd.App)
		change(&p)
		if want == "outside" {
			want = "main package"
		}
		if _, err := p.Files(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a word of %q", err, want)
		}
	}
}

// All kinds of resources take the names, and the host of Functions tells them
// apart.
func TestNames(t *testing.T) {
	t.Parallel()
	rule := regexp.MustCompile(`^[a-z](-?[a-z0-9])+$`)
	for app, want := range map[string]string{"jobs": "jobs", "a": "a-jobs", "9": "jobs-9", "a--b-": "a-b", "night-report-of-the-month": "night-report-of-th", "0-0-0-0-0-0-0-0-0": "jobs-0-0-0-0-0-0-0", "seventeen-chars-x-y": "seventeen-chars-x"} {
		p := azd.Program{App: app}
		if got := p.Name(); got != want || !rule.MatchString(got) || len(got) > 18 {
			t.Errorf("%s: got %q, want %q", app, got, want)
		}
	}
}

// A file that differs stays as it is, and so does all beside it.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	files := filesOf(t, program(azd.App))
	written, err := azd.Write(dir, files, false)
	if err != nil || len(written) != len(files) {
		t.Fatalf("got %q, %v", written, err)
	}
	if written, err := azd.Write(dir, files, false); err != nil || len(written) != 0 {
		t.Errorf("again: got %q, %v, want nothing to be written", written, err)
	}
	change := func() {
		if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM mine\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "azure.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	change()
	if _, err := azd.Write(dir, files, false); err == nil || !strings.Contains(err.Error(), "Dockerfile in ") {
		t.Errorf("got %v, want a word on the Dockerfile", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "azure.yaml")); err == nil {
		t.Error("one file was refused, and another written")
	}
	if written, err := azd.Write(dir, files, true); err != nil || !slices.Equal(written, []string{"Dockerfile", "azure.yaml"}) {
		t.Errorf("got %q, %v", written, err)
	}
}

// A link in the directory leads nowhere else.
func TestLinkOutside(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "infra")); err != nil {
		t.Skip(err)
	}
	if _, err := azd.Write(dir, filesOf(t, program(azd.App)), true); err == nil {
		t.Error("it wrote through a link")
	}
	if there, _ := os.ReadDir(outside); len(there) != 0 {
		t.Errorf("got %v outside", there)
	}
}

// A link in place of a file is refused, and a file with a second name is replaced: what that name leads to stays.
func TestWriteReplacesFiles(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(other, []byte("mine"), 0o600), os.Link(other, filepath.Join(dir, "azure.yaml"))); err != nil {
		t.Skip(err)
	}
	files := filesOf(t, program(azd.App))
	if _, err := azd.Write(dir, files, true); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "azure.yaml")), os.Symlink("Dockerfile", filepath.Join(dir, "azure.yaml"))); err != nil {
		t.Fatal(err)
	}
	if _, err := azd.Write(dir, files, true); err == nil || !strings.Contains(err.Error(), "azure.yaml is a symbolic link") {
		t.Errorf("a link: got %v", err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "mine" {
		t.Errorf("the other file has %q, %v", text, err)
	}
}

// The module is found from a directory that need not be there.
func TestLocate(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var p azd.Program
	if err := p.Locate(filepath.Join(root, "deploy")); err == nil || !strings.Contains(err.Error(), "not within a Go module") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string][2]string{"a/b": {"../..", "a/b"}, ".": {".", "."}} {
		if err := p.Locate(filepath.Join(root, filepath.FromSlash(dir))); err != nil || p.Root != want[0] || p.Here != want[1] {
			t.Errorf("%s: got %q and %q, %v, want %q", dir, p.Root, p.Here, err, want)
		}
	}
}

// The probes are those of the manifests in deploy, and so are the rules.
func TestFitsManifests(t *testing.T) {
	t.Parallel()
	said := regexp.MustCompile(`(?m)^ *(?:- )?(type|path|port|periodSeconds|timeoutSeconds|failureThreshold|pollingInterval|cooldownPeriod|queueLength|queueLengthStrategy|timezone|start|end|desiredReplicas|terminationGracePeriodSeconds|minReplicas|maxReplicas|minExecutions|maxExecutions|parallelism|cronExpression): *(?:["'](.*?)["']|([^ \n]+(?: \S+)*?))(?: #.*)?$`)
	values := func(text string) (all []string) {
		for _, m := range said.FindAllStringSubmatch(text, -1) {
			all = append(all, m[1]+" "+m[2]+m[3])
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	for kind, manifests := range map[string][]string{azd.App: {"containerapp-alarm.yaml"}, azd.Job: {"job-alarm.yaml", "job-daily.yaml"}} {
		var text strings.Builder
		for _, name := range manifests {
			b, err := os.ReadFile("../../../deploy/" + name)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(b)
		}
		want := values(text.String())
		if got := values(string(filesOf(t, program(kind))["infra/jobs.bicep"])); len(want) < 8 || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want those of %q: %q", kind, got, manifests, want)
		}
	}
}
