package host_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/sim"
)

// Secrets, easily recognised. The key is base64, of "do-not-tell-anybody!".
const (
	hiddenKey       = "ZG8tbm90LXRlbGwtYW55Ym9keSE="
	hiddenSignature = "DoNotTellThisSignature"
)

// A rule refuses some requests to a service, with a status and a code.
type rule func(r *http.Request) (status int, code string)

func always(status int, code string) rule {
	return func(*http.Request) (int, string) { return status, code }
}

// authorized is a rule for requests that show credentials: doctor's first shows
// none, and is answered by any account.
func authorized(status int, code string) rule {
	return func(r *http.Request) (int, string) {
		if r.Header.Get("Authorization") == "" && !r.URL.Query().Has("sig") {
			return 0, ""
		}
		return status, code
	}
}

// toWrite is a rule for those who may only read.
func toWrite(status int, code string) rule {
	return func(r *http.Request) (int, string) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return 0, ""
		}
		return status, code
	}
}

func toMakeContainers(status int, code string) rule {
	return func(r *http.Request) (int, string) {
		if r.Method == http.MethodPut && r.URL.Query().Get("restype") == "container" {
			return status, code
		}
		return 0, ""
	}
}

// ruled is a simulated service with a rule.
type ruled struct {
	sim.Blob
	rule rule
}

func (s *ruled) Do(r *http.Request) (*http.Response, error) {
	if s.rule != nil {
		if status, code := s.rule(r); status != 0 {
			return sim.Refusal(r, time.Now(), status, code), nil
		}
	}
	return s.Blob.Do(r)
}

func (s *ruled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.URL.Host = r.Host
	resp, err := s.Do(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	io.Copy(w, resp.Body)
}

// served returns the address of a handler.
func served(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// encrypted returns the https address of a handler with a certificate.
func encrypted(t *testing.T, until time.Time, host string) string {
	t.Helper()
	cert, key := azurite.Certificate(t, until, host)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(new(ruled))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail, as they should
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func byKey(url string) string {
	return "SOLOIST_STORAGE=AccountName=shopstore;AccountKey=" + hiddenKey + ";BlobEndpoint=" + url + "/shopstore"
}

func bySignature(url, more string) string {
	return "SOLOIST_STORAGE=" + url + "/shopstore?sv=2025-01-05&sig=" + hiddenSignature + more
}

// byIdentity opens a store over a service for the identity of a platform. The
// client library keeps tokens by client id for the whole process, hence a new
// id for each.
func byIdentity(t *testing.T, s *ruled, p *azurite.Platform, more ...string) soloist.Store {
	t.Helper()
	environment(t, append(p.Environment(), more...)...)
	return opened(t, azure.Config{AccountName: "shopstore", Credential: "managedidentity", ClientID: newUUID()}, s)
}

// opened is a store of a service in the public cloud.
func opened(t *testing.T, c azure.Config, s *ruled) soloist.Store {
	t.Helper()
	c.Transport = send(func(r *http.Request) (*http.Response, error) {
		switch {
		case strings.HasPrefix(r.URL.Host, "127.0.0.1:"):
			return http.DefaultClient.Do(r)
		case r.URL.Host == "169.254.169.254": // where virtual machines ask, and what one without an identity gets
			return sim.Refusal(r, time.Now(), http.StatusBadRequest, "invalid_request"), nil
		}
		return s.Do(r)
	})
	store, err := azure.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

type send func(*http.Request) (*http.Response, error)

func (f send) Do(r *http.Request) (*http.Response, error) { return f(r) }

// A setup is one that is broken, or is not.
type setup struct {
	what string
	make func(t *testing.T, p *host.Program) (env []string)

	code  int
	check string   // the only one that fails; empty: none does
	says  []string // each is in the line of that check, or in a warning
}

var dayLater = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)

var setups = []setup{
	{"a key that is good", func(t *testing.T, _ *host.Program) []string { return []string{byKey(served(t, new(ruled)))} },
		0, "", []string{"account key of account shopstore", "has been created", "within a second"}},
	{"no storage in Container Apps", func(*testing.T, *host.Program) []string { return []string{"CONTAINER_APP_NAME=shop"} },
		2, "settings", []string{"SOLOIST_STORAGE is not set, nor is AzureWebJobsStorage", "Azure Container Apps; app shop"}},
	{"a connection string that was cut", func(*testing.T, *host.Program) []string {
		return []string{"AzureWebJobsStorage=AccountName=shopstore;AccountKey=" + hiddenKey[:9]}
	}, 2, "settings", []string{"AzureWebJobsStorage", "AccountKey is not base64"}},
	{"a key in the place of everything", func(*testing.T, *host.Program) []string {
		return []string{"SOLOIST_STORAGE=" + strings.TrimSuffix(hiddenKey, "=")}
	},
		2, "settings", []string{"want memory:, dir:PATH, a blob service URL or a connection string"}},
	{"an unknown host", func(*testing.T, *host.Program) []string {
		return []string{bySignature("https://shopstore.invalid", "")}
	},
		1, "dns", []string{"shopstore.invalid cannot be looked up"}},
	{"a port where nothing listens", func(t *testing.T, _ *host.Program) []string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ln.Close()
		return []string{byKey("http://" + ln.Addr().String())}
	}, 1, "connection", []string{"refused", "firewalls"}},
	{"a certificate that is not trusted", func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(encrypted(t, time.Now().Add(time.Hour), "127.0.0.1"))}
	}, 1, "connection", []string{"not trusted", "SSL_CERT_FILE", "ca-certificates"}},
	{"a certificate that has expired", func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(encrypted(t, time.Now().Add(-time.Hour), "127.0.0.1"))}
	}, 1, "connection", []string{"has expired", "clock"}},
	{"a certificate of another host", func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(encrypted(t, time.Now().Add(time.Hour), "other.example"))}
	}, 1, "connection", []string{"for another name"}},
	{"https where http is spoken", func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(strings.Replace(served(t, new(ruled)), "http:", "https:", 1))}
	}, 1, "connection", []string{"does not speak TLS"}},
	{"a proxy that answers with a page", func(t *testing.T, _ *host.Program) []string {
		return []string{bySignature(served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "<html>Sign in to see %s", r.URL)
		})), "")}
	}, 1, "service", []string{"not the Blob service answers", "text/html", "proxy"}},
	{"an account for https only", func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(served(t, &ruled{rule: always(400, "AccountRequiresHttps")}))}
	}, 1, "service", []string{"use https"}},
	{"a clock 20 minutes ahead", func(t *testing.T, p *host.Program) []string {
		p.Now = func() time.Time { return time.Now().Add(20 * time.Minute) }
		return []string{byKey(served(t, &ruled{rule: authorized(403, "AuthenticationFailed")}))}
	}, 1, "clock", []string{"ahead of the service", "NTP"}},
	{"a clock 20 minutes behind", func(t *testing.T, p *host.Program) []string {
		p.Now = func() time.Time { return time.Now().Add(-20 * time.Minute) }
		return []string{bySignature(served(t, new(ruled)), "")}
	}, 1, "clock", []string{"behind the service, which takes no key"}},
	{"a clock 10 seconds behind", func(t *testing.T, p *host.Program) []string {
		p.Now = func() time.Time { return time.Now().Add(-10 * time.Second) }
		return []string{byKey(served(t, new(ruled)))}
	}, 0, "", []string{"warn  clock", "behind the service", "NTP"}},
	{"a key that is wrong", func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(served(t, &ruled{rule: authorized(403, "AuthenticationFailed")}))}
	}, 1, "container", []string{"403 AuthenticationFailed", "key is wrong, or was replaced", "show-connection-string --name shopstore"}},
	{"an account that refuses keys", func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(served(t, &ruled{rule: authorized(403, "KeyBasedAuthenticationNotPermitted")}))}
	}, 1, "container", []string{"takes no keys", "AzureWebJobsStorage__credential=managedidentity", "--allow-shared-key-access true"}},
	{"network rules, or a signature", func(t *testing.T, p *host.Program) []string {
		p.Store = opened(t, azure.Config{ServiceURL: "https://shopstore.blob.core.windows.net/?sv=1&sig=" + hiddenSignature}, &ruled{rule: always(403, "AuthorizationFailure")})
		return nil
	}, 1, "container", []string{"the signature does not allow this", "network-rule add"}},
	{"an account that is not there", func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(served(t, &ruled{rule: always(404, "ResourceNotFound")}))}
	}, 1, "container", []string{"no such account", "check the URL"}},
	{"network rules", func(t *testing.T, p *host.Program) []string {
		p.Store = opened(t, azure.Config{ConnectionString: "AccountName=shopstore;AccountKey=" + hiddenKey}, &ruled{rule: always(403, "AuthorizationFailure")})
		return nil
	}, 1, "container", []string{"network rules", "az storage account network-rule add --account-name shopstore"}},
	{"an account that is disabled", func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(served(t, &ruled{rule: authorized(403, "AccountIsDisabled")}))}
	}, 1, "container", []string{"is disabled"}},
	{"a signature that has expired", func(t *testing.T, _ *host.Program) []string {
		return []string{bySignature(served(t, new(ruled)), "&sp=rcwd&se=2026-01-02T03:04:05Z")}
	}, 1, "credentials", []string{"until 2026-01-02T03:04:05Z has expired", "az storage container generate-sas"}},
	{"a signature that expires soon", func(t *testing.T, _ *host.Program) []string {
		return []string{bySignature(served(t, new(ruled)), "&sp=rcwd&se="+dayLater)}
	}, 0, "", []string{"warn  credentials", dayLater + ", soon"}},
	{"a signature to read", func(t *testing.T, _ *host.Program) []string {
		return []string{bySignature(served(t, new(ruled)), "&sp=rl&sr=c")}
	}, 1, "credentials", []string{"does not allow to read and write (sp=rl)", "--permissions rcwd"}},
	{"a signature for queues", func(t *testing.T, _ *host.Program) []string {
		return []string{bySignature(served(t, new(ruled)), "&sp=rwdlac&ss=q&srt=sco")}
	}, 1, "credentials", []string{"not for the Blob service"}},
	{"a signature for containers without their blobs", func(t *testing.T, _ *host.Program) []string {
		return []string{bySignature(served(t, new(ruled)), "&sp=rwdlac&ss=b&srt=sc")}
	}, 1, "credentials", []string{"srt=sc lacks o"}},
	{"a signature by a policy that lacks a right", func(t *testing.T, _ *host.Program) []string {
		s := &ruled{}
		containerOf(t, s)
		s.rule = toWrite(403, "AuthorizationPermissionMismatch")
		return []string{bySignature(served(t, s), "&si=policy&sr=c")}
	}, 1, "create", []string{"the signature does not allow this", "generate-sas"}},
	{"a signature that may not delete", func(t *testing.T, _ *host.Program) []string {
		return []string{bySignature(served(t, &ruled{rule: func(r *http.Request) (int, string) {
			if r.Method == http.MethodDelete {
				return 403, "AuthorizationPermissionMismatch"
			}
			return 0, ""
		}}), "&sp=rcw&sr=c")}
	}, 0, "", []string{"warn  delete", "is left behind"}},
	{"an identity that is good", func(t *testing.T, p *host.Program) []string {
		p.Store = byIdentity(t, new(ruled), azurite.NewPlatform(t))
		return nil
	}, 0, "", []string{"a token until", "for principal " + azurite.Principal}},
	{"an identity without the role", func(t *testing.T, p *host.Program) []string {
		p.Store = byIdentity(t, &ruled{rule: authorized(403, "AuthorizationPermissionMismatch")}, azurite.NewPlatform(t))
		return nil
	}, 1, "container", []string{"403 AuthorizationPermissionMismatch", `grant the identity the role "Storage Blob Data Contributor"`,
		`az role assignment create --assignee-object-id ` + azurite.Principal + ` --assignee-principal-type ServicePrincipal --role "Storage Blob Data Contributor" ` +
			`--scope "$(az storage account show --name shopstore --query id -o tsv)/blobServices/default/containers/soloist"`}},
	{"an identity with the role of a reader", func(t *testing.T, p *host.Program) []string {
		s := &ruled{}
		containerOf(t, s)
		s.rule = toWrite(403, "AuthorizationPermissionMismatch")
		p.Store = byIdentity(t, s, azurite.NewPlatform(t))
		return nil
	}, 1, "create", []string{"az role assignment create"}},
	{"an identity of another tenant", func(t *testing.T, p *host.Program) []string {
		p.Store = byIdentity(t, &ruled{rule: authorized(401, "InvalidAuthenticationInfo")}, azurite.NewPlatform(t))
		return nil
	}, 1, "container", []string{"of one tenant"}},
	{"an identity that the platform does not know", func(t *testing.T, p *host.Program) []string {
		p.Store = byIdentity(t, new(ruled), azurite.NewPlatform(t), "IDENTITY_HEADER=another")
		return nil
	}, 1, "credentials", []string{"no token for the identity (400)", "az containerapp identity show", "AzureWebJobsStorage__clientId"}},
	{"an app without an identity", func(t *testing.T, p *host.Program) []string {
		p.Store = byIdentity(t, new(ruled), azurite.NewPlatform(t), "IDENTITY_ENDPOINT=", "IDENTITY_HEADER=")
		return nil
	}, 1, "credentials", []string{"no token for the identity", "IDENTITY_ENDPOINT is not set", "az containerapp identity assign"}},
	{"an identity endpoint that is down", func(t *testing.T, p *host.Program) []string {
		platform := azurite.NewPlatform(t)
		platform.Break(true)
		p.Store = byIdentity(t, new(ruled), platform)
		return nil
	}, 1, "credentials", []string{"no token for the identity", "az containerapp identity show"}},
	{"an identity endpoint that hangs", func(t *testing.T, p *host.Program) []string {
		platform := azurite.NewPlatform(t)
		platform.Give(time.Hour, time.Minute)
		p.Store = byIdentity(t, new(ruled), platform)
		return nil
	}, 1, "credentials", []string{"no token for the identity: its source has not answered: no answer within 10s", "az containerapp identity show"}},
	{"a container that is missing and may not be created", func(t *testing.T, _ *host.Program) []string {
		return []string{bySignature(served(t, &ruled{rule: toMakeContainers(403, "AuthorizationPermissionMismatch")}), "")}
	}, 1, "container", []string{"is missing, and it cannot be created", "az storage container create --name soloist --account-name shopstore"}},
	{"a container that an identity may not create", func(t *testing.T, p *host.Program) []string {
		p.Store = byIdentity(t, &ruled{rule: toMakeContainers(403, "AuthorizationPermissionMismatch")}, azurite.NewPlatform(t))
		return nil
	}, 1, "container", []string{"az storage container create", `--scope "$(az storage account show --name shopstore --query id -o tsv)"`}},
	{"a container under an immutability policy", func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(served(t, &ruled{rule: func(r *http.Request) (int, string) {
			if r.URL.Query().Get("comp") == "metadata" {
				return 409, "BlobImmutableDueToPolicy"
			}
			return 0, ""
		}}))}
	}, 1, "claim", []string{"immutability policy", "SOLOIST_CONTAINER"}},
	{"a service that is busy", func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(served(t, &ruled{rule: authorized(503, "ServerBusy")}))}
	}, 1, "container", []string{"503 ServerBusy", "try again"}},
	{"a file in the place of the directory", func(t *testing.T, _ *host.Program) []string {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"SOLOIST_STORAGE=dir:" + path}
	}, 1, "create", []string{"a file stands where the store's directory should be"}},
	{"a directory that is not writable", func(t *testing.T, _ *host.Program) []string {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		if f, err := os.Create(filepath.Join(dir, "try")); err == nil {
			f.Close()
			t.Skip("this user writes everywhere")
		}
		return []string{"SOLOIST_STORAGE=dir:" + filepath.Join(dir, "store")}
	}, 1, "create", []string{"give this user the right"}},
	{"a directory in Container Apps", func(t *testing.T, _ *host.Program) []string {
		return []string{"CONTAINER_APP_NAME=demo", "SOLOIST_STORAGE=dir:" + t.TempDir()}
	}, 0, "", []string{"warn  storage", "unless each replica mounts"}},
	{"memory", func(*testing.T, *host.Program) []string { return []string{"SOLOIST_STORAGE=memory:"} },
		0, "", []string{"warn  storage", "more than one replica"}},
	{"a setting that is misspelt", func(*testing.T, *host.Program) []string {
		return []string{"SOLOIST_STORAGE=memory:", "SOLOIST_LAESE=20s"}
	},
		0, "", []string{"warn  settings", "SOLOIST_LEASE meant"}},
	{"another app's record", withRecord(`{"schema":1,"app":"other","job":"beat","epoch":1,"created":"2026-01-01T00:00:00Z","through":"2026-01-01T00:00:00Z","status":"idle"}`),
		1, "record", []string{`beat: the record belongs to "other/beat"`, "choose another SOLOIST_APP"}},
	{"a record of a newer program", withRecord(`{"schema":9,"app":"demo","job":"beat"}`),
		1, "record", []string{"schema 9", "update the program"}},
	{"a record that is none", withRecord(`hello`), 1, "record", []string{"not JSON", "the job not run"}},
	{"a blob of something else", func(t *testing.T, p *host.Program) []string {
		s := &ruled{}
		containerOf(t, s)
		r, _ := http.NewRequest(http.MethodPut, "https://shopstore.blob.core.windows.net/soloist/demo/beat", strings.NewReader("x"))
		r.Header.Set("x-ms-blob-type", "BlockBlob")
		s.Do(r)
		return []string{byKey(served(t, s))}
	}, 1, "record", []string{"something else made it"}},
}

// containerOf makes the container.
func containerOf(t *testing.T, s *ruled) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPut, "https://shopstore.blob.core.windows.net/soloist?restype=container", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := s.Do(r); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatal("no container")
	}
}

// withRecord has one under a job's name.
func withRecord(text string) func(*testing.T, *host.Program) []string {
	return func(t *testing.T, p *host.Program) []string {
		p.Store = &local.Memory{}
		if _, err := p.Store.Create(t.Context(), "demo/beat", []byte(text)); err != nil {
			t.Fatal(err)
		}
		return nil
	}
}

func newUUID() string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", os.Getpid(), time.Now().UnixNano()&(1<<48-1))
}

// diagnosis is what doctor prints as JSON.
type diagnosis struct {
	OK                   bool
	App, Platform, Store string
	Checks               []struct{ Check, Result, Text, Advice string }
}

// TestDoctor: each set-up is told apart, by one failure that says what to do.
func TestDoctor(t *testing.T) {
	for _, tt := range setups {
		t.Run(tt.what, func(t *testing.T) {
			p := host.Program{Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1m", Do: do}}}
			environment(t, tt.make(t, &p)...)
			begin := time.Now()
			got := run(t.Context(), p, "doctor")
			took := time.Since(begin)
			if took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			if got.code != tt.code || got.err != "" {
				t.Errorf("got %+v, want code %d", got, tt.code)
			}
			var failed []string
			telling := ""
			for text := range strings.Lines(got.out) {
				result, rest, _ := strings.Cut(text, " ")
				switch result {
				case "FAIL":
					failed = append(failed, strings.Fields(rest)[0])
					telling += text
				case "warn", "ok":
					telling += text
				}
			}
			if tt.check == "" && failed != nil || tt.check != "" && !slices.Equal(failed, []string{tt.check}) {
				t.Errorf("%q failed, want %q:\n%s", failed, tt.check, got.out)
			}
			for _, want := range tt.says {
				if !strings.Contains(telling, want) {
					t.Errorf("no %q in\n%s", want, got.out)
				}
			}
			secretless(t, got.out)
			if took > 5*time.Second { // once is enough
				return
			}
			inJSON(t, run(t.Context(), p, "doctor", "--json"), tt.code, tt.check)
		})
	}
}

// inJSON: the same, for programs.
func inJSON(t *testing.T, got result, code int, check string) {
	t.Helper()
	secretless(t, got.out+got.err)
	var v diagnosis
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || got.code != code || v.OK != (code == 0) || v.App == "" || v.Platform == "" {
		t.Errorf("as JSON: code %d, %v:\n%s", got.code, err, got.out)
	}
	for _, c := range v.Checks {
		if c.Result == "FAIL" && c.Check != check || c.Text == "" || strings.Contains(c.Text+c.Advice, "\n") {
			t.Errorf("as JSON: %+v", c)
		}
	}
}

// secretless: neither a key, nor a signature, nor the header that gets tokens,
// nor a token, which begins like any JSON in base64.
func secretless(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{hiddenKey[:9], hiddenSignature, "DoNotTellThisIdentityHeader", "eyJ", azurite.Key[:20]} {
		if strings.Contains(text, secret) {
			t.Errorf("tells %q:\n%s", secret, text)
		}
	}
}

// All mistakes at once, and what can be looked at is.
func TestDoctorOfManyMistakes(t *testing.T) {
	environment(t, "SOLOIST_STORAGE=memory:", "SOLOIST_LEASE=3x", "SOLOIST_GRACE=-1s", "SOLOIST_APP=No", "SOLOIST_ADMIN_TOKEN="+hiddenSignature+" ")
	got := run(t.Context(), host.Program{Work: work()}, "doctor")
	for _, want := range []string{"SOLOIST_LEASE is \"3x\": want", "SOLOIST_GRACE is \"-1s\": want", "SOLOIST_APP is \"No\": want", "SOLOIST_ADMIN_TOKEN (not shown)", "ok    release"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("no %q in\n%s", want, got.out)
		}
	}
	if got.code != 2 || strings.Count(got.out, "FAIL") != 4 {
		t.Errorf("got %+v", got)
	}
	secretless(t, got.out)
}

// A service that takes the connection and says no more.
func TestDoctorOfSilence(t *testing.T) {
	environment(t, bySignature(served(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})), ""))
	begin := time.Now()
	got := run(t.Context(), host.Program{Work: work()}, "doctor")
	if took := time.Since(begin); got.code != 1 || !strings.Contains(got.out, "FAIL  service      no answer: no answer within 5s") || took > 15*time.Second {
		t.Errorf("after %s: got %+v", took, got)
	}
}

// slow takes its time for everything, and hears of no end of a context.
type slow struct {
	soloist.Store
	takes time.Duration
}

func (s slow) Create(ctx context.Context, name string, record []byte) (soloist.Entry, error) {
	time.Sleep(s.takes)
	return s.Store.Create(ctx, name, record)
}

func (s slow) Read(ctx context.Context, name string) (soloist.Entry, error) {
	time.Sleep(s.takes)
	return s.Store.Read(ctx, name)
}

func (s slow) Examine(string, func() time.Time) (all []azure.Check) {
	for range 3 {
		all = append(all, azure.Check{Name: "check", Do: func(context.Context) azure.Finding {
			time.Sleep(min(s.takes, 4900*time.Millisecond))
			return azure.Finding{Text: "slow"}
		}})
	}
	return all
}

func (s slow) Delete(ctx context.Context, name string) error {
	time.Sleep(s.takes)
	return s.Store.(*local.Memory).Delete(ctx, name)
}

func (s slow) Lease(name, id string) soloist.Lease {
	return slowLease{s.Store.Lease(name, id), s.takes}
}

type slowLease struct {
	soloist.Lease
	takes time.Duration
}

func (l slowLease) Acquire(ctx context.Context, d time.Duration, etag string) (soloist.Stamp, error) {
	time.Sleep(l.takes)
	return l.Lease.Acquire(ctx, d, etag)
}

func (l slowLease) Renew(ctx context.Context) (soloist.Stamp, error) {
	time.Sleep(l.takes)
	return l.Lease.Renew(ctx)
}

func (l slowLease) Write(ctx context.Context, etag string, record []byte) (soloist.Stamp, error) {
	time.Sleep(l.takes)
	return l.Lease.Write(ctx, etag, record)
}

func (l slowLease) Save(ctx context.Context, etag string, record, checkpoint []byte) (soloist.Stamp, error) {
	time.Sleep(l.takes)
	return l.Lease.(soloist.Keeper).Save(ctx, etag, record, checkpoint)
}

func (l slowLease) Load(ctx context.Context, etag string) ([]byte, error) {
	time.Sleep(l.takes)
	return l.Lease.(soloist.Keeper).Load(ctx, etag)
}

func (l slowLease) Release(ctx context.Context) error {
	time.Sleep(l.takes)
	return l.Lease.Release(ctx)
}

// Whatever hangs, and however slowly all else goes, it takes less than a minute.
func TestDoctorIsBounded(t *testing.T) {
	environment(t)
	for takes, want := range map[time.Duration]string{
		time.Hour:               "FAIL  create       no answer within 5s",
		4900 * time.Millisecond: "warn  create",
		2 * time.Second:         "ok    create",
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			got := run(t.Context(), host.Program{Work: work(), Store: slow{&local.Memory{}, takes}}, "doctor")
			if took := time.Since(begin); took > time.Minute || !strings.Contains(got.out, want) {
				t.Errorf("%s: took %s, want %q:\n%s", takes, took, want, got.out)
			}
			time.Sleep(4 * time.Hour) // what was left behind ends
		})
	}
}

// A stop ends it at once, and the scratch entry goes away all the same.
func TestDoctorIsStopped(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		store := &local.Memory{}
		ctx, cancel := context.WithTimeout(t.Context(), 7500*time.Millisecond) // in the checkpoint
		defer cancel()
		names := &namer{Store: slow{store, time.Second}}
		got := run(ctx, host.Program{Work: work(), Store: names}, "doctor")
		if got.code != 1 || names.name == "" {
			t.Errorf("got %+v", got)
		}
		time.Sleep(time.Minute)
		if _, err := store.Read(t.Context(), names.name); err == nil {
			t.Errorf("%s is left", names.name)
		}
	})
}

// namer tells the name of what was created last.
type namer struct {
	soloist.Store
	name string
}

func (n *namer) Create(ctx context.Context, name string, record []byte) (soloist.Entry, error) {
	n.name = name
	return n.Store.Create(ctx, name, record)
}

func (n *namer) Delete(ctx context.Context, name string) error {
	return n.Store.(slow).Delete(ctx, name)
}

// Nothing is left behind, and jobs' entries are as they were.
func TestDoctorLeavesNothing(t *testing.T) {
	s := &ruled{}
	containerOf(t, s)
	environment(t, byKey(served(t, s)))
	p := host.Program{Work: work()}
	if got := run(t.Context(), p, "tick"); got.code != 0 {
		t.Fatal(got)
	}
	made := len(s.Log())
	if got := run(t.Context(), p, "doctor"); got.code != 0 || strings.Count(got.out, "ok    record ") != 3 {
		t.Fatalf("got %+v", got)
	}
	deleted := false
	for _, op := range s.Log()[made:] {
		if scratch := strings.HasPrefix(op.Blob, "soloist/demo/.doctor-"); !scratch && op.Op != "head" && op.Op != "unknown" {
			t.Errorf("%s of %s", op.Op, op.Blob)
		} else if scratch && op.Op == "delete" {
			deleted = op.Status == http.StatusAccepted
		}
	}
	if !deleted {
		t.Error("the scratch blob is left")
	}
}

// In a directory, which cannot delete, one entry serves each call.
func TestDoctorOfADirectory(t *testing.T) {
	dir := t.TempDir()
	environment(t, "SOLOIST_STORAGE=dir:"+dir)
	for range 3 {
		if got := run(t.Context(), host.Program{Work: work()}, "doctor"); got.code != 0 {
			t.Errorf("got %+v", got)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "demo", "*"))
	if err != nil || len(files) > 2 {
		t.Errorf("%q are left: %v", files, err)
	}
}
