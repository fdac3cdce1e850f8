package azd_test

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/azd"
	"github.com/soloist-go/soloist/internal/nightly"
)

var kinds = []string{azd.Functions, azd.App, azd.Job, azd.AlwaysOn} // those of azd

// program is one with values that all kinds take.
func program(kind string) azd.Program {
	p := azd.Program{Kind: kind, App: "night-report", Queue: "night-report-alarm", Package: "./jobs", Go: "1.26", Root: "..", Here: "deploy", Timeout: 1800}
	if p.StaysUp() {
		p.Queue = ""
	}
	if kind == azd.Kubernetes {
		p.Image = "registry.example.com/reports:1.4.0"
	}
	return p
}

// must ends a test that cannot go on.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantText wants each of these parts in a text.
func wantText(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s does not say %q", what, part)
		}
	}
}

func filesOf(t *testing.T, p azd.Program) map[string][]byte {
	t.Helper()
	files, err := p.Files()
	must(t, err)
	return files
}

// The templates are Bicep, and say nothing that the platform's types do not have.
func TestTemplates(t *testing.T) {
	t.Parallel()
	known := readTable(t)
	for _, kind := range kinds {
		for _, text := range check(known, filesOf(t, program(kind))) {
			t.Errorf("%s: %s", kind, text)
		}
	}
}

// What the files of a deployment have to say, whatever else they say. Each run of blanks and line ends counts as one blank.
func TestFilesSay(t *testing.T) {
	t.Parallel()
	const jobs, main, storage, environment = "infra/jobs.bicep", "infra/main.bicep", "infra/modules/storage.bicep", "infra/modules/environment.bicep"
	rule := []string{"queueLengthStrategy: 'visibleonly'", "identity: identityId", "type: 'azure-queue'", "value: 'queue'"}
	for _, test := range []struct {
		kind, file string
		says       []string
	}{
		// Identities in place of keys, and a rule that counts visible messages alone.
		{azd.App, storage, []string{"allowSharedKeyAccess: false"}},
		{azd.Functions, storage, []string{"allowSharedKeyAccess: false"}},
		{azd.App, environment, []string{"adminUserEnabled: false"}},
		{azd.App, jobs, rule},
		{azd.Job, jobs, rule},
		// A first message on Flex Consumption takes up to two minutes: the lead is longer than that, and the stay longer than the
		// lead. The hook that writes the functions has the same settings as the app, so that functionTimeout has room for them.
		{azd.Functions, "infra/modules/functions.bicep", []string{"name: 'SOLOIST_ALARM_LEAD' value: '150s'", "name: 'SOLOIST_STAY' value: '180s'",
			"value: 'queue'", "siteUpdateStrategy: { type: updateStrategy }"}},
		{azd.Functions, "azure.yaml", []string{"SOLOIST_ALARM_LEAD=150s", "SOLOIST_STAY=180s"}},
		// A deployment can let runs come to their end.
		{azd.Functions, main, []string{" updateStrategy: updateStrategy "}},
		{azd.Functions, "infra/main.parameters.json", []string{`"updateStrategy": {"value": "${JOBS_UPDATE_STRATEGY=Recreate}"}`}},
		// The platform ends an execution two minutes after the program has ended its pass by itself, and not while it writes
		// outcomes. Of the manifests deploy/check looks at that.
		{azd.Job, jobs, []string{"value: '${tickTimeout}s'", "var replicaTimeout = tickTimeout + 120 ",
			"] } } replicaTimeout: replicaTimeout ", "replicaCompletionCount: 1 } replicaTimeout: replicaTimeout "}}, // of the two jobs
		{azd.Job, "infra/jobs.parameters.json", []string{`"tickTimeout": {"value": 1800}`}},
	} {
		text := strings.Join(strings.Fields(string(filesOf(t, program(test.kind))[test.file])), " ")
		wantText(t, test.kind+": "+test.file, text, test.says...)
	}
	for _, kind := range kinds {
		for name, text := range filesOf(t, program(kind)) {
			if word := regexp.MustCompile(`AccountKey|connectionString|SharedAccess|password|listKeys\(\).keys`).Find(text); word != nil {
				t.Errorf("%s: %s has %s", kind, name, word)
			}
		}
	}
}

// A program that stays up has nothing of an alarm: no queue, no role for messages, no setting, no hook.
func TestAlwaysOnHasNoAlarm(t *testing.T) {
	t.Parallel()
	for name, text := range filesOf(t, program(azd.AlwaysOn)) {
		if word := regexp.MustCompile(`SOLOIST_ALARM|SOLOIST_STAY|azure-queue|cooldownPeriod|hooks:|wakes it up|minReplicas: [01]\n`).Find(text); word != nil {
			t.Errorf("%s has %s", name, word)
		}
	}
	files := filesOf(t, program(azd.AlwaysOn))
	wantText(t, "main.parameters.json", string(files["infra/main.parameters.json"]), `"queueName": {"value": ""}`)
	wantText(t, "storage.bicep", string(files["infra/modules/storage.bicep"]), "queueServices@2024-01-01' = if (!empty(queueName)) {",
		"queues@2024-01-01' = if (!empty(queueName)) {")
	wantText(t, "identity.bicep", string(files["infra/modules/identity.bicep"]), "empty(queueName) ? [] : [storageQueueDataContributor]",
		"if (!empty(deployerId) && !empty(queueName)) {")
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

// The manifest and the chart have the values of the program, and the probes, the address and the time to stop are those of
// Container Apps. proof/kubernetes compares both with the types of Kubernetes and with what Helm makes of the chart.
func TestKubernetesFitsContainerApps(t *testing.T) {
	t.Parallel()
	files := filesOf(t, program(azd.Kubernetes))
	manifest := string(files["kubernetes.yaml"])
	wantText(t, "values.yaml", string(files["chart/values.yaml"]), `
image: "registry.example.com/reports:1.4.0"
`, `
app: "night-report"
`, `
secret: "night-report"
`)
	wantText(t, "Chart.yaml", string(files["chart/Chart.yaml"]), `
name: "night-report"
`)
	wantText(t, "kubernetes.yaml", manifest, `image: "registry.example.com/reports:1.4.0"`, `value: "night-report"`, "runAsNonRoot: true",
		"runAsUser: 65532", "readOnlyRootFilesystem: true", "allowPrivilegeEscalation: false", "drop: [ALL]", "  replicas: 2\n",
		"key: SOLOIST_STORAGE", "key: SOLOIST_READ_TOKEN", "key: SOLOIST_ADMIN_TOKEN")
	app, err := os.ReadFile(top + "/deploy/containerapp.yaml")
	must(t, err)
	said := regexp.MustCompile(`(terminationGracePeriodSeconds|path|periodSeconds|timeoutSeconds|failureThreshold|SOLOIST_(?:GRACE|ADDR)\s+value): (\S+)`)
	values := func(text string) (all []string) {
		for _, m := range said.FindAllStringSubmatch(text, -1) {
			all = append(all, strings.Join(strings.Fields(m[1]), " ")+" "+strings.Trim(m[2], `"`))
		}
		return all
	}
	if got, want := values(manifest), values(string(app)); len(want) != 15 || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
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
		`main package is "./jobs; rm`:  func(p *azd.Program) { p.Package = "./jobs; rm -rf ~" },
		`main package is "./../x"`:     func(p *azd.Program) { p.Package = "./../x" },
		"release of Go":                func(p *azd.Program) { p.Go = "devel +1" },
		"control character":            func(p *azd.Program) { p.Root = "../a\nb" },
		"name it with --image":         func(p *azd.Program) { p.Kind = azd.Kubernetes },
		`image is "jobs": name it`:     func(p *azd.Program) { p.Kind, p.Image = azd.Kubernetes, "jobs" },
		"containerapp has no --image":  func(p *azd.Program) { p.Image = "jobs:1" },
	} {
		p := program(azd.App)
		change(&p)
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

// A link in the directory leads nowhere else.
func TestWriteFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "infra")); err != nil {
		t.Skip(err)
	}
	_, err := azd.Write(dir, filesOf(t, program(azd.App)), true)
	if there, _ := os.ReadDir(outside); err == nil || len(there) > 0 {
		t.Errorf("it wrote through a link: %v, %v", there, err)
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
	must(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module x\n"), 0o644))
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
	for kind, manifests := range map[string][]string{azd.App: {"containerapp-alarm.yaml"}, azd.AlwaysOn: {"containerapp.yaml"}, azd.Job: {"job-alarm.yaml", "job-daily.yaml"}} {
		var text strings.Builder
		for _, name := range manifests {
			b, err := os.ReadFile("../../../deploy/" + name)
			must(t, err)
			text.Write(b)
		}
		want := values(text.String())
		if got := values(string(filesOf(t, program(kind))["infra/jobs.bicep"])); len(want) < 8 || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want those of %q: %q", kind, got, manifests, want)
		}
	}
}

// deploy/azuremonitor.json and alerts.bicep are the same alerts: the rules, their properties, the version of the type.
func TestAlertsFitBicep(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(top + "/deploy/azuremonitor.json")
	must(t, err)
	var template struct {
		Variables struct {
			Lines  string
			Alerts json.RawMessage
		}
		Resources []struct {
			Type, APIVersion, Kind string
			Properties             json.RawMessage
		}
	}
	must(t, json.Unmarshal(b, &template))
	spaced := func(text string) string {
		text = regexp.MustCompile(`([][{}])|(?m:^ *//.*$)`).ReplaceAllString(text, " $1 ")
		return strings.Join(strings.Fields(text), " ")
	}
	inBicep := func(text json.RawMessage) string {
		s := strings.NewReplacer(`"soloist-`, `"`, `" | `, `"`, `["[parameters('actionGroupId')]"]`, "empty(email) ? [] : [mail.id]",
			`"[parameters('workspaceId')]"`, "workspaceId", `"[concat(variables('lines'), variables('alerts')[copyIndex()].where)]"`,
			`"${lines} | ${rule.where}"`).Replace(string(text))
		s = regexp.MustCompile(`"\[variables\('alerts'\)\[copyIndex\(\)\](\.\w+)\]"`).ReplaceAllString(s, "rule$1")
		s = regexp.MustCompile(`,(\s+["{])`).ReplaceAllString(s, "$1")
		s = regexp.MustCompile(`"(\w+)":`).ReplaceAllString(s, "$1:")
		return spaced(strings.NewReplacer(`"`, "'", "'", `"`).Replace(s))
	}
	const name = "infra/modules/alerts.bicep"
	rule := template.Resources[0]
	wantText(t, name, spaced(string(filesOf(t, program(azd.App))[name])), "var rules = "+inBicep(template.Variables.Alerts)+" resource",
		spaced(fmt.Sprintf("resource alerts '%s@%s' = [ for rule in rules: {", rule.Type, rule.APIVersion)),
		fmt.Sprintf("kind: '%s' properties: ", rule.Kind)+inBicep(rule.Properties))
	lines := strings.NewReplacer("[concat('", "lines: '", "')]", "'", "', parameters('appName'), '", "${resourceName}").Replace(template.Variables.Lines)
	for _, kind := range []string{azd.App, azd.Job, azd.AlwaysOn} {
		if !bytes.Contains(filesOf(t, program(kind))["infra/main.bicep"], []byte(lines+"\n")) {
			t.Errorf("%s has no %s", kind, lines)
		}
	}
}

// hook runs a script of azure.yaml, from a line on up to another, as azd does.
func hook(t *testing.T, dir string, yaml []byte, from, to string, env ...string) {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	_, script, found := strings.Cut(string(yaml), from)
	_, script, runs := strings.Cut(script, "run: |\n")
	script, _, _ = strings.Cut(script, to)
	if !found || !runs {
		t.Fatalf("got %s", yaml)
	}
	c := exec.Command(shell)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	c.Stdin = strings.NewReader(script) // the margin of YAML is no matter to a shell
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// What azd runs before it packs a Functions app builds the program, for the
// system of the platform, and the functions of an alarm, also in a directory whose name a shell could take for more.
func TestHook(t *testing.T) {
	t.Parallel()
	nightly.Only(t, "builds programs")
	module, err := filepath.Abs("../../..")
	must(t, err)
	dir := filepath.Join(t.TempDir(), "a b's $(touch x)")
	p := program(azd.Functions)
	p.Root = filepath.ToSlash(module)
	files := filesOf(t, p)
	_, err = azd.Write(dir, files, false)
	must(t, err)
	hook(t, dir, files["azure.yaml"], "", "      # The alarm was set by")
	info, err := buildinfo.ReadFile(filepath.Join(dir, "app", "jobs"))
	if err != nil || !strings.HasSuffix(info.Path, "/jobs") {
		t.Errorf("got %v, %v, want the program", info, err)
	}
	trigger, err := os.ReadFile(filepath.Join(dir, "app", "alarm", "function.json"))
	if err != nil || !bytes.Contains(trigger, []byte(`"night-report-alarm"`)) {
		t.Errorf("got %s, %v, want the queue of the alarm", trigger, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "app", "tick", "function.json")); err != nil {
		t.Errorf("there is no net: %v", err)
	}
}

// What azd runs after a deployment wakes the program up, and tries again where
// the role is too young.
func TestWakeHook(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{azd.Functions, azd.App, azd.Job} {
		bin, dir := t.TempDir(), t.TempDir()
		p := program(kind)
		p.Root = filepath.ToSlash(dir)
		for name, script := range map[string]string{
			"go":    `echo "$@ $SOLOIST_APP $SOLOIST_ALARM $SOLOIST_ALARM_QUEUE $SOLOIST_STORAGE $AZURE_TOKEN_CREDENTIALS" >>calls; [ "$(wc -l <calls)" -ge 3 ]`,
			"sleep": "",
		} {
			must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
		}
		hook(t, dir, filesOf(t, p)["azure.yaml"], "postdeploy:", "\x00",
			"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "JOBS_STORAGE_URL=https://st.blob.core.windows.net/")
		calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
		want := strings.Repeat("run ./jobs wake night-report queue night-report-alarm https://st.blob.core.windows.net/ AzureDeveloperCLICredential\n", 3)
		if string(calls) != want {
			t.Errorf("%s: got %q, want three calls, of which two fail: %q", kind, calls, want)
		}
	}
}
