package host_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
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

// TestIdentityInContainerApps: a program with the environment of Container Apps
// and no key anywhere does its work. So do the other forms of the settings.
func TestIdentityInContainerApps(t *testing.T) {
	t.Parallel()
	server, certificate := azurite.StartSecure(t)
	common := []string{"SSL_CERT_FILE=" + certificate, "CONTAINER_APP_NAME=shop",
		"CONTAINER_APP_REVISION=shop--20mh1s9", "CONTAINER_APP_REPLICA_NAME=shop--20mh1s9-86c8c4b497-zx9bq"}
	system := []string{"AzureWebJobsStorage__blobServiceUri=" + server.URL, "AzureWebJobsStorage__credential=managedidentity"}
	tests := []struct {
		what   string
		env    []string
		client string // of the request for a token; "-": there is none
	}{
		{"system identity", system, ""},
		{"user-assigned identity", append(system, "AzureWebJobsStorage__clientId=0badcafe-0000-4000-8000-000000000001"), "0badcafe-0000-4000-8000-000000000001"},
		{"default identity", []string{"AzureWebJobsStorage__blobServiceUri=" + server.URL, "AZURE_CLIENT_ID=0badcafe-0000-4000-8000-000000000002"}, "0badcafe-0000-4000-8000-000000000002"},
		{"URL of our own, identity of the host", []string{"SOLOIST_STORAGE=" + server.URL, "AzureWebJobsStorage__accountName=elsewhere", "AzureWebJobsStorage__credential=managedidentity"}, ""},
		{"plain value wins", append(system, "AzureWebJobsStorage__accountName=elsewhere", "AzureWebJobsStorage="+server.ConnectionString()), "-"},
		{"signature in a URL", []string{"SOLOIST_STORAGE=" + server.URL + "?" + azurite.Signature("rwdlac", time.Now().Add(30*24*time.Hour))}, "-"},
		{"signature in a connection string", []string{"AzureWebJobsStorage=BlobEndpoint=" + server.URL + ";SharedAccessSignature=" + azurite.Signature("rwdlac", time.Now().Add(30*24*time.Hour))}, "-"},
	}
	for i, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			platform := azurite.NewPlatform(t)
			env := slices.Concat(platform.Environment(), common, tt.env, []string{"SOLOIST_CONTAINER=box-" + string(rune('a'+i))})
			if got := child(t, env, "doctor"); got.code != 0 || !strings.Contains(got.out, "app shop, replica shop--20mh1s9-86c8c4b497-zx9bq") {
				t.Errorf("doctor: got %+v", got)
			} else {
				untold(t, got, platform)
			}
			untold(t, ticked(t, env), platform)
			asked := platform.Asked()
			if none := tt.client == "-"; none != (len(asked) == 0) {
				t.Errorf("%d tokens asked for", len(asked))
			}
			for _, q := range asked {
				wantEqual(t, "token for client", q.Get("client_id"), tt.client)
			}
		})
	}
}

func untold(t *testing.T, got result, p *azurite.Platform) {
	t.Helper()
	secretless(t, got.out+got.err)
	for _, secret := range p.Secrets() {
		wantText(t, "tells a token or what gets one", got.out+got.err, "!"+secret)
	}
}

// What is broken against a service that looks at credentials.
func TestDoctorOverAzurite(t *testing.T) {
	t.Parallel()
	server, certificate := azurite.StartSecure(t)
	platform := azurite.NewPlatform(t)
	system := append(platform.Environment(), "AzureWebJobsStorage__blobServiceUri="+server.URL, "AzureWebJobsStorage__credential=managedidentity")
	trusted := "SSL_CERT_FILE=" + certificate
	tests := []struct {
		what  string
		env   []string
		life  time.Duration
		check string
		says  string
	}{
		{"nothing", append(system, trusted), time.Hour, "", "ok    release"},
		{"certificate not trusted", system, time.Hour, "connection", "SSL_CERT_FILE"},
		{"wrong key", []string{trusted, "SOLOIST_STORAGE=" + strings.ReplaceAll(server.ConnectionString(), azurite.Key, hiddenKey)}, 0, "container", "key is wrong, or was replaced"},
		{"wrong account", []string{trusted, "SOLOIST_STORAGE=" + strings.ReplaceAll(server.ConnectionString(), azurite.Account, "nobodys")}, 0, "container", "no such account"},
		{"expired signature", []string{trusted, "SOLOIST_STORAGE=" + server.URL + "?" + azurite.Signature("rwdlac", time.Now().Add(-time.Minute))}, 0, "credentials", "has expired"},
		{"signature changed", []string{trusted, "SOLOIST_STORAGE=" + server.URL + "?" + azurite.Signature("rwdlac", time.Now().Add(time.Hour)) + "x"}, 0, "container", "the signature does not allow this"},
		{"token that has expired", append(system, trusted), -time.Minute, "credentials", "has expired already"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			platform.Give(tt.life)
			got := child(t, tt.env, "doctor")
			untold(t, got, platform)
			want := 0
			if tt.check != "" {
				want = 1
			}
			if got.code != want || !strings.Contains(got.out, tt.says) || strings.Count(got.out, "FAIL") != want || tt.check != "" && !strings.Contains(got.out, "FAIL  "+tt.check+" ") {
				t.Errorf("got %+v, want %s to fail and %q", got, tt.check, tt.says)
			}
		})
	}
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
		s := open(t, host.Program{Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1h", Do: do}}})
		t.Chdir(elsewhere)
		s.tick()
		s.wait()
		if all, err := os.ReadDir(elsewhere); err != nil || len(all) > 0 {
			t.Errorf("%q: the new working directory has %v, %v, want nothing", setting, all, err)
		}
		if _, err := os.Stat(filepath.Join(home, dir, "demo", "beat.d")); err != nil {
			t.Errorf("%q: the first working directory has no entry: %v", setting, err)
		}
	}
}

// The typical slips: in the key, the container and the app.
func TestStatusOfAnotherContainer(t *testing.T) {
	t.Parallel()
	env := []string{"AzureWebJobsStorage=" + azurite.Shared(t).ConnectionString(), "SOLOIST_CONTAINER=slips", "SOLOIST_APP=shop"}
	ticked(t, env)
	wrong := slices.Concat(env[1:], []string{strings.ReplaceAll(env[0], azurite.Key, hiddenKey)})
	child(t, wrong, "doctor").wants(t, "doctor, with a wrong key", 1, "emulator says this of a wrong key")
	env[2] = "SOLOIST_APP=shpo"
	child(t, env, "status").wants(t, "app", 1, `no records of app "shpo" in http://127.0.0.1`, "did you mean SOLOIST_APP=shop?")
	env[1] = "SOLOIST_CONTAINER=tiks"
	child(t, env, "history").wants(t, "container", 1, "/tiks\n  it does not exist: check SOLOIST_APP, SOLOIST_CONTAINER")
}

// An account that does not exist is a name that cannot be looked up.
func TestStatusOfAnotherAccount(t *testing.T) {
	environment(t, bySignature("https://shpostore.invalid", ""))
	got := run(t.Context(), host.Program{Work: work()}, "status")
	if got.code != 1 || strings.Count(got.out, " unknown ") != 3 || !strings.Contains(got.err, "there is no such host: check the name of the account in SOLOIST_STORAGE") {
		t.Errorf("got %+v", got)
	}
	secretless(t, got.out+got.err)
}
