package host_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

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
			got := run(t.Context(), p, "doctor")
			if got.code != tt.code || got.err != "" {
				t.Errorf("got %+v, want code %d", got, tt.code)
			}
			var failed []string
			var telling strings.Builder
			for text := range strings.Lines(got.out) {
				result, rest, _ := strings.Cut(text, " ")
				switch result {
				case "FAIL":
					failed = append(failed, strings.Fields(rest)[0])
					telling.WriteString(text)
				case "warn", "ok":
					telling.WriteString(text)
				}
			}
			if failed = slices.Compact(failed); tt.check == "" && failed != nil || tt.check != "" && !slices.Equal(failed, []string{tt.check}) {
				t.Errorf("%q failed, want %q:\n%s", failed, tt.check, got.out)
			}
			wantText(t, "doctor", telling.String(), tt.says...)
			secretless(t, got.out)
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
		wantText(t, "tells", text, "!"+secret)
	}
}

// A default in the place of a wrong setting is another place, whose state is no
// answer.
func TestDoctorTestsNoOtherPlace(t *testing.T) {
	for _, setting := range []string{"SOLOIST_CONTAINER=My_Container", "SOLOIST_APP=My App"} {
		t.Run(setting, func(t *testing.T) {
			var asked atomic.Int32
			url := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.WriteHeader(http.StatusForbidden)
			}))
			environment(t, byKey(url), setting)
			got := run(t.Context(), host.Program{Work: work()}, "doctor")
			name, _, _ := strings.Cut(setting, "=")
			if got.code != 2 || asked.Load() != 0 || strings.Count(got.out, "FAIL") != 1 || !strings.Contains(got.out, "FAIL  settings     "+name+" is ") ||
				!strings.Contains(got.out, "\nskip  storage      "+name+" has to be right first") {
				t.Errorf("got %d requests and %+v", asked.Load(), got)
			}
		})
	}
}

// Nothing is left behind, and jobs' entries are as they were.
func TestDoctorLeavesNothing(t *testing.T) {
	s := withContainer(t, nil)
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
		reads := op.Op == "head" || op.Op == "get" && (op.Blob == "soloist/demo/.control" || op.Blob == "soloist/demo/.replicas")
		if scratch := strings.HasPrefix(op.Blob, "soloist/demo/.doctor-"); !scratch && !reads && op.Op != "unknown" {
			t.Errorf("%s of %s", op.Op, op.Blob)
		} else if scratch && op.Op == "delete" {
			deleted = op.Status == http.StatusAccepted
		}
	}
	if !deleted {
		t.Error("the scratch blob is left")
	}
}

// slow is a gate at which everything takes its time, and hears of no end of a
// context.
func slow(takes time.Duration) gate {
	return func(string, string) error { time.Sleep(takes); return nil }
}

// Whatever hangs, and however slowly all else goes, it takes less than a minute. A cold token takes longer than an answer.
func TestDoctorIsBounded(t *testing.T) {
	environment(t)
	for takes, want := range map[time.Duration]string{
		time.Hour:               "FAIL  create       no answer within 5s",
		4900 * time.Millisecond: "warn  create",
		2 * time.Second:         "ok    create",
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			check := azure.Check{Name: "check", Do: func(context.Context) azure.Finding {
				time.Sleep(min(takes, 4900*time.Millisecond))
				return azure.Finding{Text: "slow"}
			}}
			token := azure.Check{Name: "credentials", Do: func(context.Context) azure.Finding {
				time.Sleep(min(2*takes, 8*time.Second))
				return azure.Finding{Text: "slow"}
			}}
			backend := examined{deletes{newGated(&local.Memory{}, slow(takes))}, []azure.Check{check, token, check}}
			got := run(t.Context(), host.Program{Work: work(), Store: backend}, "doctor")
			if took := time.Since(begin); took > time.Minute || !strings.Contains(got.out, want) {
				t.Errorf("%s: took %s, want %q:\n%s", takes, took, want, got.out)
			}
			time.Sleep(4 * time.Hour) // what was left behind ends
		})
	}
}

// A stop ends it at once, and the scratch entry goes away all the same.
func TestDoctorIsStopped(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		backend := &local.Memory{}
		ctx, cancel := context.WithTimeout(t.Context(), 7500*time.Millisecond) // in the middle
		defer cancel()
		var created string
		names := newGated(backend, func(op, name string) error {
			if op == "create" {
				created = name
			}
			return slow(time.Second)(op, name)
		})
		got := run(ctx, host.Program{Work: work(), Store: deletes{names}}, "doctor")
		if got.code != 1 || created == "" {
			t.Errorf("got %+v", got)
		}
		time.Sleep(time.Minute)
		if _, err := backend.Read(t.Context(), created); err == nil {
			t.Errorf("%s is left", created)
		}
	})
}

// Whenever a second doctor comes, both find that all is well.
func TestDoctorBesideAnother(t *testing.T) {
	environment(t)
	fired := true
	for n := 1; fired; n++ {
		dir := local.Dir{Path: t.TempDir()}
		calm := host.Program{Work: work(), Store: dir}
		calls := 0
		fired = false
		both := host.Program{Work: work(), Store: newGated(dir, func(_, name string) error {
			if !strings.Contains(name, "/.doctor") {
				return nil // not doctor's own entry
			}
			if calls++; calls == n {
				fired = true
				wantLines(t, calm, "doctor", 0)
			}
			return nil
		})}
		if got := run(t.Context(), both, "doctor"); got.code != 0 || strings.Contains(got.out, "FAIL") {
			t.Errorf("with another before call %d: got %+v", n, got)
		}
		if files, err := filepath.Glob(filepath.Join(dir.Path, "demo", "*")); err != nil || len(files) > 4 {
			t.Errorf("with another before call %d: %q are left, %v", n, files, err)
		}
		if n > 100 {
			t.Fatal("no end of calls")
		}
	}
}

// A killed doctor keeps its entry leased for a while. Where each entry is leased,
// doctor fails and says so.
func TestDoctorBesideTooMany(t *testing.T) {
	environment(t)
	backend := local.Dir{Path: t.TempDir()}
	p := host.Program{Work: work(), Store: backend}
	for n := range 9 {
		wantLines(t, p, "doctor", 0)
		name := "demo/.doctor"
		if n > 0 {
			name = fmt.Sprintf("demo/.doctor-%d", n+1)
		}
		e, err := backend.Read(t.Context(), name)
		if err == nil {
			_, err = backend.Lease(name, newUUID()).Acquire(t.Context(), time.Minute, e.ETag)
		}
		must(t, err)
	}
	wantLines(t, p, "doctor", 1, "FAIL  acquire", store.ErrHeld.Error())
}

// doctor looks at the queue, and compares the alarm that is pending with the next tick.
func TestDoctorOfAlarm(t *testing.T) {
	refused := func(alarmtest.Call) alarmtest.Fate { return alarmtest.Fate{Err: errors.New("refused")} }
	for _, test := range []struct {
		name string
		env  []string
		make func(t *testing.T, w *woken)
		says []string
		code int
	}{
		{"pending", nil, func(t *testing.T, w *woken) { run(t.Context(), w.Program, "tick") },
			[]string{"ok    queue        ", "a message was put and deleted", "ok    alarm        pending for 2000-01-01 00:59:00Z, for the tick of 2000-01-01 01:00:00Z", "ok    rule"}, 0},
		{"none yet", nil, func(*testing.T, *woken) {},
			[]string{"FAIL  alarm        none is pending, and a replica is wanted at 2000-01-01 01:00:00Z", "start a replica once"}, 1},
		{"queue refused", nil, func(_ *testing.T, w *woken) { w.queue.Meet = refused },
			[]string{"FAIL  queue        refused", "skip  alarm        nothing to learn before the queue can be used"}, 1},
		{"gone", nil, func(t *testing.T, w *woken) {
			run(t.Context(), w.Program, "tick")
			time.Sleep(59*time.Minute + 30*time.Second)
		},
			[]string{"warn  alarm        the last one was for 2000-01-01 00:59:00Z and is gone"}, 0},
		{"another queue", nil, func(t *testing.T, w *woken) {
			w.queue.Name = "https://a/before"
			run(t.Context(), w.Program, "tick")
			w.queue.Name = "https://a/after"
		},
			[]string{"FAIL  alarm        the one that was set last is in another queue, https://a/before, and a replica is wanted at 2000-01-01 01:00:00Z", "start a replica once"}, 1},
		{"a container that ends", []string{"CONTAINER_APP_NAME=demo"}, func(t *testing.T, w *woken) { run(t.Context(), w.Program, "tick") },
			[]string{"warn  rule         the platform starts a container of an app again", "set SOLOIST_STAY=0"}, 0},
		{"a container that stays", []string{"CONTAINER_APP_NAME=demo", "SOLOIST_STAY=0"}, func(t *testing.T, w *woken) { run(t.Context(), w.Program, "tick") },
			[]string{"ok    rule         the rule that starts a replica cannot be seen from inside; see it with: az containerapp show"}, 0},
	} {
		bubble(t, append(test.env, "SOLOIST_ALARM=queue"), func(t *testing.T) {
			w := newWoken("@hourly")
			test.make(t, w)
			before := len(w.queue.All())
			got := run(t.Context(), w.Program, "doctor")
			wantText(t, test.name, got.out, test.says...)
			if got.code != test.code || len(w.queue.All()) != before {
				t.Errorf("%s: got %+v, and left the messages %+v", test.name, got, w.queue.All())
			}
		})
	}
}

func TestDoctorWarnsOfFailingJob(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{soloist.Job{Name: "sad", Schedule: "@every 1m", Do: fail}}}
		for range 3 {
			run(t.Context(), p, "tick")
			time.Sleep(time.Minute)
		}
		wantLines(t, p, "doctor", 0, "warn  record", "sad: failing x2", "demo history sad")
	})
}

// A setup is one that is broken, or is not.
type setup struct {
	what string
	make maker

	code  int
	check string   // the only one that fails; empty: none does
	says  []string // each is in the line of that check, or in a warning
}

var setups = []setup{
	{"a key that is good", withKey(nil), 0, "", []string{"account key of account shopstore", "has been created", "within a second"}},
	{"no storage in Container Apps", withSettings("CONTAINER_APP_NAME=shop"),
		2, "settings", []string{"SOLOIST_STORAGE is not set, nor is AzureWebJobsStorage", "Azure Container Apps; app shop"}},
	{"a key in the place of everything", withSettings("SOLOIST_STORAGE=" + strings.TrimSuffix(hiddenKey, "=")),
		2, "settings", []string{"want memory:, dir:PATH, a blob service URL or a connection string"}},
	{"an unknown host", withSettings(bySignature("https://shopstore.invalid", "")), 1, "dns", []string{"shopstore.invalid cannot be looked up"}},
	{"a port where nothing listens", func(t *testing.T, _ *host.Program) []string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		ln.Close()
		return []string{byKey("http://" + ln.Addr().String())}
	}, 1, "connection", []string{"refused", "firewalls"}},
	{"a certificate that is not trusted", withCertificate(time.Hour, "127.0.0.1"),
		1, "connection", []string{"not trusted", "SSL_CERT_FILE", "ca-certificates"}},
	{"a certificate that has expired", withCertificate(-time.Hour, "127.0.0.1"), 1, "connection", []string{"has expired", "clock"}},
	{"a proxy that answers with a page", func(t *testing.T, _ *host.Program) []string {
		return []string{bySignature(served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "<html>Sign in to see %s", r.URL)
		})), "")}
	}, 1, "service", []string{"not the Blob service answers", "text/html", "proxy"}},
	{"an account for https only", withKey(always(400, "AccountRequiresHttps")), 1, "service", []string{"use https"}},
	{"a clock 20 minutes ahead", withClock(20*time.Minute, withKey(authorized(403, "AuthenticationFailed"))),
		1, "clock", []string{"ahead of the service", "NTP"}},
	{"a clock 20 minutes behind", withClock(-20*time.Minute, withSignature(nil, "")), 1, "clock", []string{"behind the service, which takes no key"}},
	{"a clock 10 seconds behind", withClock(-10*time.Second, withKey(nil)), 0, "", []string{"warn  clock", "behind the service", "NTP"}},
	{"a key that is wrong", withKey(authorized(403, "AuthenticationFailed")),
		1, "container", []string{"403 AuthenticationFailed", "key is wrong, or was replaced", "show-connection-string --name shopstore"}},
	{"an account that is not there", withKey(always(404, "ResourceNotFound")), 1, "container", []string{"no such account", "check the URL"}},
	{"a signature by a policy that lacks a right", func(t *testing.T, _ *host.Program) []string {
		return []string{bySignature(served(t, withContainer(t, on(http.MethodPut, "", 403, "AuthorizationPermissionMismatch"))), "&si=policy&sr=c")}
	}, 1, "create", []string{"the signature does not allow this", "generate-sas"}},
	{"a signature that may not delete", withSignature(on(http.MethodDelete, "", 403, "AuthorizationPermissionMismatch"), "&sp=rcw&sr=c"),
		0, "", []string{"warn  delete", "is left behind"}},
	{"a container that is missing and may not be created", withSignature(on(http.MethodPut, "restype=container", 403, "AuthorizationPermissionMismatch"), ""),
		1, "container", []string{"is missing, and it cannot be created", "az storage container-rm create --name soloist --storage-account shopstore"}},
	{"a container under an immutability policy", withKey(on(http.MethodPut, "comp=metadata", 409, "BlobImmutableDueToPolicy")),
		1, "claim", []string{"immutability policy", "SOLOIST_CONTAINER"}},
	{"a file in the place of the directory", func(t *testing.T, _ *host.Program) []string {
		path := filepath.Join(t.TempDir(), "file")
		file(t, path, "")
		return []string{"SOLOIST_STORAGE=dir:" + path}
	}, 1, "create", []string{"a file stands where the store's directory should be"}},
	{"a directory that is not writable", func(t *testing.T, _ *host.Program) []string {
		return []string{"SOLOIST_STORAGE=dir:" + filepath.Join(unwritable(t), "store")}
	}, 1, "create", []string{"or choose another directory"}},
	{"a directory in Container Apps", func(t *testing.T, _ *host.Program) []string {
		return []string{"CONTAINER_APP_NAME=demo", "SOLOIST_STORAGE=dir:" + t.TempDir()}
	}, 0, "", []string{"warn  storage", "unless each replica mounts"}},
	{"memory", withSettings("SOLOIST_STORAGE=memory:"), 0, "", []string{"warn  storage", "more than one replica"}},
	{"many mistakes", withSettings("SOLOIST_STORAGE=memory:", "SOLOIST_LEASE=3x", "SOLOIST_GRACE=-1s", "SOLOIST_ADMIN_TOKEN="+hiddenSignature+" "),
		2, "settings", []string{`SOLOIST_LEASE is "3x": want`, `SOLOIST_GRACE is "-1s": want`, "SOLOIST_ADMIN_TOKEN (not shown)", "ok    release"}},
	{"a setting that is misspelt", withSettings("SOLOIST_STORAGE=memory:", "SOLOIST_LAESE=20s"),
		0, "", []string{"warn  settings", "did you mean SOLOIST_LEASE?"}},
	{"another app's record", withRecord(`{"schema":1,"app":"other","job":"beat","token":1,"created":"2026-01-01T00:00:00Z","watermark":"2026-01-01T00:00:00Z","run":{"status":"idle"}}`),
		1, "record", []string{`beat: the record belongs to "other/beat"`, "choose another SOLOIST_APP"}},
	{"a record that is none", withRecord(`hello`), 1, "record", []string{"not JSON", "the job not run"}},
	{"a checkpoint of another tool", withBlob(strings.Repeat("x", 1<<20+1),
		"x-ms-meta-record", `{"schema":1,"app":"demo","job":"beat","token":1,"created":"2026-01-01T00:00:00Z","watermark":"2026-01-01T00:00:00Z","run":{"status":"idle"}}`),
		1, "record", []string{"checkpoint has 1048577 bytes", "have the job save a new one"}},
	{"an account that keeps versions", func(t *testing.T, _ *host.Program) []string {
		s := withContainer(t, nil)
		return []string{byKey(served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut && r.URL.Query().Get("comp") != "lease" {
				w.Header().Set("x-ms-version-id", "2026-11-21T02:30:00.1234567Z")
			}
			s.ServeHTTP(w, r)
		})))}
	}, 0, "", []string{"warn  versions", "a lifecycle rule"}},
	{"a blob of something else", withBlob("x"), 1, "record", []string{"something else made it"}},
}

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

// when is a rule for the requests that match.
func when(matches func(*http.Request) bool, status int, code string) rule {
	return func(r *http.Request) (int, string) {
		if matches(r) {
			return status, code
		}
		return 0, ""
	}
}

// authorized is a rule for requests that show credentials: doctor's first shows
// none, and is answered by any account.
func authorized(status int, code string) rule {
	return when(func(r *http.Request) bool { return r.Header.Get("Authorization") != "" || r.URL.Query().Has("sig") }, status, code)
}

// on is a rule for requests of a method with such a query.
func on(method, query string, status int, code string) rule {
	return when(func(r *http.Request) bool { return r.Method == method && strings.Contains(r.URL.RawQuery, query) }, status, code)
}

// ruled is a simulated service with a rule.
type ruled struct {
	blobtest.Blob
	rule rule
}

func (s *ruled) Do(r *http.Request) (*http.Response, error) {
	if s.rule != nil {
		if status, code := s.rule(r); status != 0 {
			return blobtest.Refusal(r, time.Now(), status, code), nil
		}
	}
	return s.Blob.Do(r)
}

func (s *ruled) ServeHTTP(w http.ResponseWriter, r *http.Request) { blobtest.Handler(s.Do)(w, r) }

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
	must(t, err)
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

// withContainer is a service with the container, and from then on the rule.
func withContainer(t *testing.T, then rule) *ruled {
	t.Helper()
	s := &ruled{}
	if resp := s.put(t, "?restype=container", ""); resp.StatusCode != http.StatusCreated {
		t.Fatal("no container")
	}
	s.rule = then
	return s
}

// put sends a request about the container.
func (s *ruled) put(t *testing.T, path, content string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequest(http.MethodPut, "https://shopstore.blob.core.windows.net/soloist"+path, strings.NewReader(content))
	must(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.Do(r)
	must(t, err)
	return resp
}

// A maker makes a set-up: it returns settings, and may change the program.
type maker func(t *testing.T, p *host.Program) (env []string)

func withSettings(env ...string) maker {
	return func(*testing.T, *host.Program) []string { return env }
}

// withKey has the key of an account whose service has the rule.
func withKey(r rule) maker {
	return func(t *testing.T, _ *host.Program) []string { return []string{byKey(served(t, &ruled{rule: r}))} }
}

func withSignature(r rule, more string) maker {
	return func(t *testing.T, _ *host.Program) []string {
		return []string{bySignature(served(t, &ruled{rule: r}), more)}
	}
}

// withCertificate has the key of an account whose service has a certificate that is
// good for so long.
func withCertificate(good time.Duration, name string) maker {
	return func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(encrypted(t, time.Now().Add(good), name))}
	}
}

// withClock is a set-up on a machine whose clock is off.
func withClock(off time.Duration, make maker) maker {
	return func(t *testing.T, p *host.Program) []string {
		p.Now = func() time.Time { return time.Now().Add(off) }
		return make(t, p)
	}
}

// withRecord has one under a job's name.
func withRecord(text string) maker {
	return func(t *testing.T, p *host.Program) []string {
		p.Store = &local.Memory{}
		put(t, p.Store, "demo/beat", text, false)
		return nil
	}
}

// withBlob has a blob of another tool under a job's name.
func withBlob(content string, headers ...string) maker {
	return func(t *testing.T, _ *host.Program) []string {
		s := withContainer(t, nil)
		s.put(t, "/demo/beat", content, append(headers, "x-ms-blob-type", "BlockBlob")...)
		return []string{byKey(served(t, s))}
	}
}

func newUUID() string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", os.Getpid(), time.Now().UnixNano()&(1<<48-1))
}

// unwritable is a directory in which this user can make nothing; root can in
// all but those that the kernel makes up.
func unwritable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o500))
	for _, dir := range []string{dir, "/sys"} {
		if _, err := os.Stat(dir); err == nil && os.Mkdir(filepath.Join(dir, "try"), 0o700) != nil {
			return dir
		}
		os.Remove(filepath.Join(dir, "try"))
	}
	t.Skip("this user writes everywhere, and there is no /sys")
	return ""
}
