package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// TestDoctor: each set-up is told apart, by one failure that says what to do. The same is in JSON, for programs.
func TestDoctor(t *testing.T) {
	for _, tt := range setups {
		t.Run(tt.what, func(t *testing.T) {
			p := host.Program{Work: work()[:1]}
			environment(t, tt.make(t, &p)...)
			got := wantLines(t, p, "doctor", tt.code, tt.says...)
			failed := regexp.MustCompile(`(?m)^FAIL  (\w+)`).FindAllStringSubmatch(got.out, -1)
			wantEqual(t, "it fails", failed != nil, tt.check != "")
			for _, f := range failed {
				wantEqual(t, "what fails", f[1], tt.check)
			}
			var v struct {
				OK            bool
				App, Platform string
				Checks        []struct{ Check, Result, Text, Advice string }
			}
			inJSON := wantLines(t, p, "doctor --json", tt.code)
			if err := json.Unmarshal([]byte(inJSON.out), &v); err != nil || v.OK != (tt.code == 0) || v.App == "" || v.Platform == "" {
				t.Errorf("as JSON: %v:\n%s", err, inJSON.out)
			}
			for _, c := range v.Checks {
				if c.Result == "FAIL" && c.Check != tt.check || c.Text == "" || strings.Contains(c.Text+c.Advice, "\n") {
					t.Errorf("as JSON: %+v", c)
				}
			}
			secretless(t, got.out+inJSON.out+inJSON.err)
			wantEqual(t, "standard error", got.err, "")
		})
	}
}

// secretless: neither a key, nor a signature, nor the header that gets tokens,
// nor a token, which begins like any JSON in base64.
func secretless(t *testing.T, text string, more ...string) {
	t.Helper()
	for _, secret := range append(more, hiddenKey[:9], hiddenSignature, "DoNotTellThisIdentityHeader", "eyJ", azurite.Key[:20]) {
		wantText(t, "tells", text, "!"+secret)
	}
}

// A default in the place of a wrong setting is another place, whose state is no
// answer.
func TestDoctorTestsNoOtherPlace(t *testing.T) {
	for name, value := range map[string]string{"SOLOIST_CONTAINER": "My_Container", "SOLOIST_APP": "My App"} {
		url := served(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("with a wrong %s: got a request", name) }))
		environment(t, byKey(url), name+"="+value)
		got := wantLines(t, host.Program{Work: work()}, "doctor", 2, "FAIL  settings     "+name+" is ",
			"\nskip  storage      "+name+" has to be right first")
		wantEqual(t, "failures", strings.Count(got.out, "FAIL"), 1)
	}
}

// Nothing is left behind, and jobs' entries are as they were.
func TestDoctorLeavesNothing(t *testing.T) {
	s := withContainer(t, nil)
	environment(t, byKey(served(t, s)))
	p := host.Program{Work: work()}
	wantLines(t, p, "tick", 0)
	made := len(s.Log())
	wantEqual(t, "records", strings.Count(wantLines(t, p, "doctor", 0).out, "ok    record "), 3)
	deleted := 0
	for _, op := range s.Log()[made:] {
		reads := op.Op == "head" || op.Op == "get" && (op.Blob == "soloist/demo/.control" || op.Blob == "soloist/demo/.replicas")
		if scratch := strings.HasPrefix(op.Blob, "soloist/demo/.doctor-"); !scratch && !reads && op.Op != "unknown" {
			t.Errorf("%s of %s", op.Op, op.Blob)
		} else if scratch && op.Op == "delete" {
			deleted = op.Status
		}
	}
	wantEqual(t, "the answer to the deletion of the scratch blob", deleted, http.StatusAccepted)
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
		backend, created := &local.Memory{}, "demo/none"
		ctx, cancel := context.WithTimeout(t.Context(), 7500*time.Millisecond) // in the middle
		defer cancel()
		names := newGated(backend, func(op, name string) error {
			if op == "create" {
				created = name
			}
			return slow(time.Second)(op, name)
		})
		wantCode(t, run(ctx, host.Program{Work: work(), Store: deletes{names}}, "doctor").code, 1)
		time.Sleep(time.Minute)
		_, err := backend.Read(t.Context(), created)
		wantEqual(t, "a scratch entry is gone", created != "demo/none" && errors.Is(err, fs.ErrNotExist), true)
	})
}

// Whenever a second doctor comes, both find that all is well. They leave two entries at most.
func TestDoctorBesideAnother(t *testing.T) {
	environment(t)
	fired := true
	for n := 1; fired; n++ {
		backend := &local.Memory{}
		calls := 0
		fired = false
		both := host.Program{Work: work(), Store: newGated(backend, func(_, name string) error {
			if !strings.Contains(name, "/.doctor") {
				return nil // not doctor's own entry
			}
			if calls++; calls == n {
				fired = true
				wantLines(t, host.Program{Work: work(), Store: newGated(backend, nil)}, "doctor", 0)
			}
			return nil
		})}
		wantLines(t, both, "doctor", 0, "!FAIL")
		if _, err := backend.Read(t.Context(), "demo/.doctor-3"); !errors.Is(err, fs.ErrNotExist) || n > 100 {
			t.Fatalf("with another before call %d: %v", n, err)
		}
	}
}

// A killed doctor keeps its entry leased for a while. Where each entry is leased,
// doctor fails and says so.
func TestDoctorBesideTooMany(t *testing.T) {
	environment(t)
	p := host.Program{Work: work(), Store: newGated(&local.Memory{}, nil)}
	for n := range 9 {
		wantLines(t, p, "doctor", 0)
		name := "demo/.doctor"
		if n > 0 {
			name = fmt.Sprintf("demo/.doctor-%d", n+1)
		}
		e, err := p.Store.Read(t.Context(), name)
		must(t, err)
		lease(t, p.Store, name, e.ETag, time.Minute)
	}
	wantLines(t, p, "doctor", 1, "FAIL  acquire", store.ErrHeld.Error())
}

// doctor looks at the queue, and compares the alarm that is pending with the next tick.
func TestDoctorOfAlarm(t *testing.T) {
	const wanted = ", and a replica is wanted at 2000-01-01 01:00:00Z"
	for _, test := range []struct {
		name string
		env  []string
		tick bool           // it has set the alarm
		then func(w *woken) // nil: nothing
		code int
		says []string
	}{
		{"pending", nil, true, nil, 0, []string{"ok    queue        ", "a message was put and deleted", "ok    rule",
			"ok    alarm        pending for 2000-01-01 00:59:00Z, for the tick of 2000-01-01 01:00:00Z"}},
		{"none yet", nil, false, nil, 1, []string{"FAIL  alarm        none is pending" + wanted, "start a replica once"}},
		{"queue refused", nil, false, func(w *woken) { w.queue.Meet = noQueue }, 1,
			[]string{"FAIL  queue        no queue", "skip  alarm        nothing to learn before the queue can be used"}},
		{"gone", nil, true, func(*woken) { time.Sleep(59*time.Minute + 30*time.Second) }, 0,
			[]string{"warn  alarm        the last one was for 2000-01-01 00:59:00Z and is gone"}},
		{"another queue", nil, true, func(w *woken) { w.queue.Name = "https://a/after" }, 1,
			[]string{"FAIL  alarm        the one that was set last is in another queue, https://a/before" + wanted, "start a replica once"}},
		{"a container that ends", []string{"CONTAINER_APP_NAME=demo"}, true, nil, 0,
			[]string{"warn  rule         the platform starts a container of an app again", "set SOLOIST_STAY=0"}},
		{"a container that stays", []string{"CONTAINER_APP_NAME=demo", "SOLOIST_STAY=0"}, true, nil, 0,
			[]string{"ok    rule         the rule that starts a replica cannot be seen from inside; see it with: az containerapp show"}},
	} {
		bubble(t, append(test.env, "SOLOIST_ALARM=queue"), func(t *testing.T) {
			w := newWoken("@hourly")
			if w.queue.Name = "https://a/before"; test.tick {
				call(t, w.Program, "tick")
			}
			if test.then != nil {
				test.then(w)
			}
			before := len(w.queue.All())
			wantLines(t, w.Program, "doctor", test.code, test.says...)
			wantEqual(t, test.name+": messages", len(w.queue.All()), before)
		})
	}
}

func TestDoctorWarnsOfFailingJob(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{soloist.Job{Name: "sad", Schedule: "@every 1m", Do: fail}}}
		for range 3 {
			call(t, p, "tick")
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
	says  []string // what is told
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
	{"a directory in Container Apps", func(t *testing.T, _ *host.Program) []string {
		return []string{"CONTAINER_APP_NAME=demo", "SOLOIST_STORAGE=dir:" + t.TempDir()}
	}, 0, "", []string{"warn  storage", "unless each replica mounts"}},
	{"memory", withSettings("SOLOIST_STORAGE=memory:"), 0, "", []string{"warn  storage", "more than one replica"}},
	{"many mistakes", withSettings("SOLOIST_STORAGE=memory:", "SOLOIST_LEASE=3x", "SOLOIST_GRACE=-1s", "SOLOIST_ADMIN_TOKEN="+hiddenSignature+" "),
		2, "settings", []string{`SOLOIST_LEASE is "3x": want`, `SOLOIST_GRACE is "-1s": want`, "SOLOIST_ADMIN_TOKEN (not shown)", "ok    release"}},
	{"a setting that is misspelt", withSettings("SOLOIST_STORAGE=memory:", "SOLOIST_LAESE=20s"),
		0, "", []string{"warn  settings", "did you mean SOLOIST_LEASE?"}},
	{"another app's record", withRecord(fresh("other")),
		1, "record", []string{`beat: the record belongs to "other/beat"`, "choose another SOLOIST_APP"}},
	{"a record that is none", withRecord(`hello`), 1, "record", []string{"not JSON", "the job not run"}},
	{"a checkpoint of another tool", withBlob(strings.Repeat("x", 1<<20+1), "x-ms-meta-record", fresh("demo")),
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

// fresh is the record of a job beat that has not run.
func fresh(app string) string {
	return `{"schema":1,"app":"` + app + `","job":"beat","token":1,"created":"2026-01-01T00:00:00Z","watermark":"2026-01-01T00:00:00Z","run":{"status":"idle"}}`
}

// withBlob has a blob of another tool under a job's name.
func withBlob(content string, headers ...string) maker {
	return func(t *testing.T, _ *host.Program) []string {
		s := withContainer(t, nil)
		s.put(t, "/demo/beat", content, append(headers, "x-ms-blob-type", "BlockBlob")...)
		return []string{byKey(served(t, s))}
	}
}
