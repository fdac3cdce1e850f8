package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// claimed is a store at noon in which replica-b runs the first job of work, as
// f has it; leased if its lease is live.
func claimed(t *testing.T, leased bool, f func(*store.Record)) *local.Memory {
	t.Helper()
	backend, now := &local.Memory{Now: spring}, spring()
	r := store.Record{App: "demo", Job: "beat", Created: now.Add(-time.Hour), Watermark: now.Add(-3 * time.Minute), Token: 7,
		Run: store.Run{Tick: now.Add(-2 * time.Minute), Attempt: 1, Status: store.Running, Replica: "replica-b", Lease: store.Seconds(20 * time.Second),
			Claimed: now.Add(-2 * time.Minute)}}
	f(&r)
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	put(t, backend, "demo/beat", ascii(b), leased)
	return backend
}

// ascii is JSON in the characters that a store takes.
func ascii(b []byte) string {
	var text strings.Builder
	for _, c := range string(b) {
		if c < 0x7f {
			text.WriteRune(c)
		} else {
			fmt.Fprintf(&text, `\u%04x`, c)
		}
	}
	return text.String()
}

func put(t *testing.T, backend store.Store, name, record string, leased bool) {
	t.Helper()
	e, err := backend.Create(t.Context(), name, []byte(record))
	if err == nil && leased {
		_, err = backend.Lease(name, "5f1f3b6e-0b1c-4d2e-8f3a-9b7c6d5e4f30").Acquire(t.Context(), 20*time.Second, e.ETag)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func told(note string) func(*store.Record) {
	return func(r *store.Record) {
		r.Run.Progress = store.Progress{Note: note, At: spring().Add(-20 * time.Second)}
	}
}

func stall(r *store.Record) {
	told("page 3 of 9")(r)
	r.Run.Status, r.Run.Stopping, r.Run.Error = store.Stalled, true, "stalled: no heartbeat for 1m0s"
	r.Counts = map[store.Status]int64{store.Stalled: 1}
	r.History = []store.Outcome{{Tick: r.Run.Tick, Status: store.Stalled, Reason: r.Run.Error, Attempt: 1, Token: 7, Replica: r.Run.Replica,
		Start: r.Run.Claimed, End: r.Run.Claimed.Add(time.Minute)}}
}

// What a run is in is told in the same words everywhere.
func TestStatesOfRun(t *testing.T) {
	const since = " on replica-b since 2m"
	for _, test := range []struct {
		name   string
		leased bool
		f      func(*store.Record)
		state  string
		words  string // of status and history
	}{
		{"running", true, func(*store.Record) {}, "running", since},
		{"told", true, told("page 3 of\n9"), "running", since + " (page 3 of 9, 20s ago)"},
		{"told no note", true, told(""), "running", since + " (heartbeat, 20s ago)"},
		{"stopping", true, func(r *store.Record) { r.Run.Stopping = true }, "stopping", since},
		{"interrupted", false, func(r *store.Record) { told("page 3")(r); r.Run.Stopping = true }, "interrupted", " since 20s (page 3, 20s ago)"},
		{"stalled", true, stall, "stalled", since + " (page 3 of 9, 20s ago)"},
		{"stalled, lease lapsed", false, stall, "stalled", since + " (page 3 of 9, 20s ago)"},
		{"stalled, then returned", false, func(r *store.Record) { stall(r); r.Run.Stopping, r.Run.Finished = false, spring() }, "idle", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment(t)
			p := host.Program{Work: work()[:1], Store: claimed(t, test.leased, test.f), Now: spring}
			for _, command := range []string{"status", "history"} {
				if got := run(t.Context(), p, command); got.code != 0 || !strings.Contains(got.out, "  "+test.state+test.words+"  ") {
					t.Errorf("%s: got %+v, want %s%s", command, got, test.state, test.words)
				}
			}
			s := open(t, p)
			_, note, _ := strings.Cut(strings.TrimSuffix(test.words, ")"), " (")
			for _, out := range []string{run(t.Context(), p, "status", "--json").out, run(t.Context(), p, "history", "--json").out, s.get("/api/v1/jobs").Body.String()} {
				wantState(t, out, test.state, note != "")
			}
			s.wait()
		})
	}
}

func wantState(t *testing.T, out, state string, told bool) {
	t.Helper()
	var answer struct {
		Jobs []struct {
			State    string
			Progress *store.Progress
		}
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer.Jobs) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	if j := answer.Jobs[0]; j.State != state || (j.Progress != nil) != told || told && !j.Progress.At.Equal(spring().Add(-20*time.Second)) {
		t.Errorf("got %+v of %s, want %s", j, out, state)
	}
}

// A stalled run is a bad end, and counted.
func TestOutcomeOfStalledRun(t *testing.T) {
	environment(t)
	p := host.Program{Work: work()[:1], Store: claimed(t, false, stall), Now: spring}
	const words = "stalled in 1m0s (stalled: no heartbeat for 1m0s)"
	got := run(t.Context(), p, "status")
	if !strings.Contains(got.out, words+" on replica-b, 2m ago") || !strings.Contains(got.out, "  1 stalled\n") {
		t.Errorf("status: got %s", got.out)
	}
	if got = run(t.Context(), p, "history"); !strings.Contains(got.out, "  stalled  1        replica-b  ") || !strings.Contains(got.out, "  1 stalled\n") {
		t.Errorf("history: got %s", got.out)
	}
	s := open(t, p)
	wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, `"recent":[{"at":"2026-03-28T11:58:00Z","status":"stalled","seconds":60,"reason":"stalled: no heartbeat for 1m0s"}]`)
	s.wait()
}

func TestUnlock(t *testing.T) {
	nothing := func(*store.Record) {}
	idle := func(r *store.Record) { r.Run.Status, r.Run.Finished = store.Succeeded, spring() }
	for _, test := range []struct {
		name   string
		leased bool
		f      func(*store.Record)
		args   string
		state  store.LeaseState // afterwards
		out    string
		err    string
	}{
		{"when it runs out", true, told("page 3"), "beat --yes", store.Breaking, `
			beat: the lease was leased, held by replica-b
			state: running on replica-b since 2m (page 3, 20s ago)
			lease: it cannot be renewed any more, which its holder notices within 6.7s; it ends by 2026-03-28 12:00:20Z, in 20s
			next: another replica can run it from about 2026-03-28 12:00:40Z on, in 40s; one that starts later, 20s after its start
		`, ""},
		{"at once", true, nothing, "--now beat --yes", store.Available, `
			beat: the lease was leased, held by replica-b
			state: running on replica-b since 2m
			lease: ended now
			next: another replica can run it from about 2026-03-28 12:00:20Z on, in 20s; one that starts later, 20s after its start
		`, "demo: unlock --now: replica-b may still work until it notices, up to 6.7s, a third of its lease; the next holder waits for 20s, one lease, before it does anything\n"},
		{"a holder that has claimed nothing", true, idle, "beat --yes", store.Breaking, `
			beat: the lease was leased, held by a replica that has claimed nothing
			lease: it cannot be renewed any more, which its holder notices within 6.7s; it ends by 2026-03-28 12:00:20Z, in 20s
			next: another replica can run it from then on
		`, ""},
		{"a holder that has claimed nothing, at once", true, idle, "beat --now --yes", store.Broken, `
			beat: the lease was leased, held by a replica that has claimed nothing
			lease: ended now
			next: another replica can run it now
		`, "demo: unlock --now: its holder is a replica that has claimed nothing\n"},
		{"nobody", false, idle, "beat --now", store.Available, "beat: nobody has a lease: it is available\n", ""},
		// After a break the next holder of an expired lease would have to wait.
		{"expired, and left as it is", true, nothing, "beat --now", store.Expired, "beat: nobody has a lease: it is expired\n", ""},
		{"nobody any more", false, nothing, "beat", store.Available, "beat: nobody has a lease: it is available\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment(t)
			backend := claimed(t, test.leased, test.f)
			if test.state == store.Expired {
				backend.Now = func() time.Time { return spring().Add(time.Minute) }
			}
			got := run(t.Context(), host.Program{Work: work(), Store: backend, Now: spring}, append([]string{"unlock"}, strings.Fields(test.args)...)...)
			goldenWant(t, test.args, got.out, test.out)
			if got.code != 0 || got.err != test.err {
				t.Errorf("got %+v, want the warning %q", got, test.err)
			}
			if e, err := backend.Read(t.Context(), "demo/beat"); err != nil || e.State != test.state {
				t.Errorf("got %s, %v, want %s", e.State, err, test.state)
			}
		})
	}
}

func TestUnlockOfOddJobs(t *testing.T) {
	environment(t)
	broken := &local.Memory{Now: spring}
	put(t, broken, "demo/beat", `{"schema":99}`, true)
	for _, test := range []struct {
		name  string
		store store.Store
		work  []soloist.Work
		job   string
		code  int
		out   string
		err   string
	}{
		{"unknown", &local.Memory{}, work(), "nobody", 2, "", "demo: there is no job \"nobody\": want one of beat, night-report, leader\n"},
		{"each replica", &local.Memory{}, here(), "cache", 2, "", "demo: cache runs on each replica: it has no lease\n"},
		{"down", down(), work(), "beat", 1, "", "demo: unlock beat: no route to the storage\n"},
		{"no breaker", newGated(claimed(t, true, func(*store.Record) {}), nil), work(), "beat", 1, "",
			"demo: unlock beat: the store cannot end a lease"},
		{"broken", broken, work(), "beat", 0, `
			beat: the lease was leased, held by a replica that is not known, since the record cannot be read
			state: broken
			lease: it cannot be renewed any more, which its holder notices within 10s; it ends by 2026-03-28 12:00:30Z, in 30s
			next: another replica can run it from about 2026-03-28 12:01:00Z on, in 1m; one that starts later, 30s after its start
		`, ""},
	} {
		got := run(t.Context(), host.Program{Work: test.work, Store: test.store, Now: spring}, "unlock", test.job, "--yes")
		goldenWant(t, test.name, got.out, test.out)
		if got.code != test.code || !strings.HasPrefix(got.err, test.err) || (got.err == "") != (test.err == "") {
			t.Errorf("%s: got %+v, want code %d and %q", test.name, got, test.code, test.err)
		}
	}
}
