package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
			wantText(t, "doctor", telling, tt.says...)
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
		wantNone(t, "tells", text, secret)
	}
}

// All mistakes at once, and what can be looked at is.
func TestDoctorOfManyMistakes(t *testing.T) {
	environment(t, "SOLOIST_STORAGE=memory:", "SOLOIST_LEASE=3x", "SOLOIST_GRACE=-1s", "SOLOIST_LOG_LEVEL=loud", "SOLOIST_ADMIN_TOKEN="+hiddenSignature+" ")
	got := run(t.Context(), host.Program{Work: work()}, "doctor")
	wantText(t, "doctor", got.out, "SOLOIST_LEASE is \"3x\": want", "SOLOIST_GRACE is \"-1s\": want",
		"SOLOIST_LOG_LEVEL is \"loud\": want",
		"SOLOIST_ADMIN_TOKEN (not shown)", "ok    release")
	if got.code != 2 || strings.Count(got.out, "FAIL") != 4 {
		t.Errorf("got %+v", got)
	}
	secretless(t, got.out)
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
			check := azure.Check{Name: "check", Do: func(context.Context) azure.Finding {
				time.Sleep(min(takes, 4900*time.Millisecond))
				return azure.Finding{Text: "slow"}
			}}
			backend := examined{deletes{newGated(&local.Memory{}, slow(takes))}, []azure.Check{check, check, check}}
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
		ctx, cancel := context.WithTimeout(t.Context(), 7500*time.Millisecond) // in the checkpoint
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

// A cold token takes longer than an answer.
func TestDoctorGivesTokenTime(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		begin := time.Now()
		waits := azure.Check{Name: "credentials", Do: func(ctx context.Context) azure.Finding {
			<-ctx.Done() // for a token that never comes
			return azure.Finding{Fails: true, Text: ctx.Err().Error()}
		}}
		backend := examined{deletes{newGated(&local.Memory{}, nil)}, []azure.Check{waits}}
		got := run(t.Context(), host.Program{Work: work(), Store: backend}, "doctor")
		if took := time.Since(begin); took != 10*time.Second || !strings.Contains(got.out, "FAIL  credentials  no answer within 10s") {
			t.Errorf("after %s: got %+v", took, got)
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
