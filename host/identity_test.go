package host_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
)

// child runs a command of the program "beat" in a process of its own, whose
// environment is this one and nothing else.
func child(t *testing.T, env []string, args ...string) result {
	t.Helper()
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("Go looks at SSL_CERT_FILE on other systems only")
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), proctest.Self(), args...)
	cmd.Env = append([]string{"TEST_PROGRAM=beat", "PATH=", "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()}, env...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, time.Second
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// A real service that looks at credentials, and programs that come to it as they do on a platform. It takes long to start, so all
// of this is one test.
func TestOverAzurite(t *testing.T) {
	t.Parallel()
	server, certificate := azurite.StartSecure(t)
	trusted, uri, managed := "SSL_CERT_FILE="+certificate, "AzureWebJobsStorage__blobServiceUri="+server.URL, "AzureWebJobsStorage__credential=managedidentity"
	signed := "SOLOIST_STORAGE=" + server.URL + "?" + azurite.Signature("rwdlac", time.Now().Add(30*24*time.Hour))
	keyed := func(old, other string) []string {
		return []string{trusted, "SOLOIST_STORAGE=" + strings.ReplaceAll(server.ConnectionString(), old, other)}
	}

	// A program with the environment of Container Apps and no key anywhere does its work. So do the other forms of the settings.
	common := []string{trusted, "CONTAINER_APP_NAME=shop", "CONTAINER_APP_REVISION=shop--20mh1s9", "CONTAINER_APP_REPLICA_NAME=shop--20mh1s9-86c8c4b497-zx9bq"}
	for what, tt := range map[string]struct {
		env    []string
		client string // of the request for a token; "-": there is none
	}{
		"system identity":                   {[]string{uri, managed}, ""},
		"default identity":                  {[]string{uri, "AZURE_CLIENT_ID=0badcafe-0000-4000-8000-000000000002"}, "0badcafe-0000-4000-8000-000000000002"},
		"our own URL, identity of the host": {[]string{"SOLOIST_STORAGE=" + server.URL, "AzureWebJobsStorage__accountName=elsewhere", managed}, ""},
		"plain value wins":                  {[]string{uri, managed, "AzureWebJobsStorage=" + server.ConnectionString()}, "-"},
		"signature in a URL":                {[]string{signed}, "-"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			platform := azurite.NewPlatform(t)
			env := slices.Concat(platform.Environment(), common, tt.env, []string{"SOLOIST_CONTAINER=" + strings.ToLower(rand.Text())})
			untold(t, child(t, env, "doctor").wants(t, "doctor", 0, "app shop, replica shop--20mh1s9-86c8c4b497-zx9bq"), platform)
			untold(t, ticked(t, env), platform)
			asked := platform.Asked()
			wantEqual(t, "tokens are asked for", len(asked) > 0, tt.client != "-")
			for _, q := range asked {
				wantEqual(t, "token for client", q.Get("client_id"), tt.client)
			}
		})
	}

	platform := azurite.NewPlatform(t)
	system := append(platform.Environment(), trusted, uri, managed)
	for what, tt := range map[string]struct {
		env  []string
		life time.Duration
		code int
		says string
	}{
		"nothing is broken": {system, time.Hour, 0, "ok    release"},
		"wrong key":         {keyed(azurite.Key, hiddenKey), 0, 1, "key is wrong, or was replaced"},
		"wrong account":     {keyed(azurite.Account, "nobodys"), 0, 1, "no such account"},
		"signature changed": {[]string{trusted, signed + "x"}, 0, 1, "the signature does not allow this"},
		"token expired":     {system, -time.Minute, 1, "has expired already"},
	} {
		platform.Give(tt.life)
		got := child(t, tt.env, "doctor").wants(t, what, tt.code, tt.says)
		untold(t, got, platform)
		wantEqual(t, what+": failures", strings.Count(got.out, "FAIL"), tt.code)
	}

	// The typical slips: in the app and the container.
	env := append(keyed("", ""), "SOLOIST_CONTAINER=slips", "SOLOIST_APP=shop")
	ticked(t, env)
	env[3] = "SOLOIST_APP=shpo"
	child(t, env, "status").wants(t, "app", 1, `no records of app "shpo" in https://`, "did you mean SOLOIST_APP=shop?")
	env[2] = "SOLOIST_CONTAINER=tiks"
	child(t, env, "history").wants(t, "container", 1, "/tiks\n  it does not exist: check SOLOIST_APP, SOLOIST_CONTAINER")
}

func untold(t *testing.T, got result, p *azurite.Platform) {
	t.Helper()
	secretless(t, got.out+got.err, p.Secrets()...)
}

// ticked calls the program until a tick has been run, a second after the other,
// and returns what that call came to.
func ticked(t *testing.T, env []string) result {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		got := child(t, env, "tick", "--json")
		if got.code != 0 || time.Now().After(deadline) {
			t.Fatalf("tick: got %+v", got)
		}
		if strings.Contains(got.out, "succeeded") {
			return got
		}
	}
}

// A job may change the working directory of the process. The store has to stay
// the one that the other replicas use, or each of them runs the tick.
func TestChdirLeavesStoreWhereItIs(t *testing.T) {
	for setting, dir := range map[string]string{"": ".soloist", "dir:records": "records"} {
		environment(t, "SOLOIST_STORAGE="+setting)
		home, elsewhere := t.TempDir(), t.TempDir()
		t.Chdir(home)
		s := open(t, host.Program{Work: work()[:1]})
		t.Chdir(elsewhere)
		s.tick()
		s.wait()
		wantEqual(t, "files in the new working directory", names(tree(t, elsewhere)), nil)
		if _, err := os.Stat(filepath.Join(home, dir, "demo", "beat.d")); err != nil {
			t.Errorf("%q: the first working directory has no entry: %v", setting, err)
		}
	}
}

// An account that does not exist is a name that cannot be looked up.
func TestStatusOfAnotherAccount(t *testing.T) {
	environment(t, bySignature("https://shpostore.invalid", ""))
	got := wantLines(t, host.Program{Work: work()}, "status", 1, "demo: shpostore.invalid cannot be looked up: ")
	wantEqual(t, "how often it is told what to do", strings.Count(got.err, "check the name of the account in SOLOIST_STORAGE"), 1)
	wantEqual(t, "jobs that are unknown", strings.Count(got.out, " unknown "), 3)
	secretless(t, got.out+got.err)
}
