package azd_test

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/azd"
	"github.com/soloist-go/soloist/internal/nightly"
)

// What azd runs before it packs a Functions app builds the program, for the
// system of the platform, and the functions of an alarm, also in a directory whose name a shell could take for more.
func TestHook(t *testing.T) {
	t.Parallel()
	nightly.Only(t, "builds programs")
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	module, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "a b's $(touch x)")
	p := program(azd.Functions)
	p.Root = filepath.ToSlash(module)
	files := filesOf(t, p)
	if _, err := azd.Write(dir, files, false); err != nil {
		t.Fatal(err)
	}
	_, script, found := strings.Cut(string(files["azure.yaml"]), "run: |\n")
	script, _, _ = strings.Cut(script, "      # The alarm was set by")
	if !found {
		t.Fatalf("got %s", files["azure.yaml"])
	}
	c := exec.Command(shell)
	c.Dir, c.Stdin = dir, strings.NewReader(script) // the margin of YAML is no matter to a shell
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
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
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	for _, kind := range kinds {
		bin, dir := t.TempDir(), t.TempDir()
		p := program(kind)
		p.Root = filepath.ToSlash(dir)
		for name, script := range map[string]string{
			"go":    `echo "$@ $SOLOIST_APP $SOLOIST_ALARM $SOLOIST_ALARM_QUEUE $SOLOIST_STORAGE $AZURE_TOKEN_CREDENTIALS" >>calls; [ "$(wc -l <calls)" -ge 3 ]`,
			"sleep": "",
		} {
			if err := os.WriteFile(filepath.Join(bin, name), []byte("#!"+shell+"\n"+script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		_, hook, _ := strings.Cut(string(filesOf(t, p)["azure.yaml"]), "postdeploy:")
		_, script, found := strings.Cut(hook, "run: |\n")
		c := exec.Command(shell)
		c.Dir, c.Stdin = dir, strings.NewReader(script)
		c.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "JOBS_STORAGE_URL=https://st.blob.core.windows.net/")
		out, err := c.CombinedOutput()
		calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
		want := strings.Repeat("run ./jobs wake night-report queue night-report-alarm https://st.blob.core.windows.net/ AzureDeveloperCLICredential\n", 3)
		if err != nil || !found || string(calls) != want {
			t.Errorf("%s: got %q, %v: %s, want three calls, of which two fail: %q", kind, calls, err, out, want)
		}
	}
}
