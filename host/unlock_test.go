package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// claimed is a store at noon in which replica-b runs the first job of work, as
// f has it; leased if its lease is live.
func claimed(t *testing.T, leased bool, f func(*record.Record)) *local.Memory {
	t.Helper()
	backend, now := &local.Memory{Now: spring}, spring()
	r := record.Record{App: "demo", Job: "beat", Created: now.Add(-time.Hour), Watermark: now.Add(-3 * time.Minute), Token: 7,
		Run: record.Run{Tick: now.Add(-2 * time.Minute), Attempt: 1, Status: event.Running, Replica: "replica-b", Lease: record.Seconds(20 * time.Second),
			Claimed: now.Add(-2 * time.Minute)}}
	f(&r)
	b, err := r.Encode()
	must(t, err)
	put(t, backend, "demo/beat", string(b), leased)
	return backend
}

func put(t *testing.T, backend store.Store, name, record string, leased bool) {
	t.Helper()
	e, err := backend.Create(t.Context(), name, []byte(record))
	if must(t, err); leased {
		lease(t, backend, name, e.ETag, 20*time.Second)
	}
}

// lease has another client acquire an entry.
func lease(t *testing.T, backend store.Store, name, etag string, length time.Duration) {
	t.Helper()
	_, err := backend.Lease(name, "5f1f3b6e-0b1c-4d2e-8f3a-9b7c6d5e4f30").Acquire(t.Context(), length, etag)
	must(t, err)
}

func told(note string) func(*record.Record) {
	return func(r *record.Record) {
		r.Run.Progress = record.Progress{Note: note, At: spring().Add(-20 * time.Second)}
	}
}

func stall(r *record.Record) {
	told("page 3 of 9")(r)
	r.Run.Status, r.Run.Stopping, r.Run.Error = event.Stalled, true, "stalled: no heartbeat for 1m0s"
	r.Counts = map[event.Status]int64{event.Stalled: 1}
	r.History = []event.Outcome{{Tick: r.Run.Tick, Status: event.Stalled, Reason: r.Run.Error, Attempt: 1, Token: 7, Replica: r.Run.Replica,
		Start: r.Run.Claimed, End: r.Run.Claimed.Add(time.Minute)}}
}

// What a run is in is told in the same words everywhere.
func TestStatesOfRun(t *testing.T) {
	const since = " on replica-b since 2m"
	for name, test := range map[string]struct {
		leased bool
		f      func(*record.Record)
		state  string
		words  string // of status and history
	}{
		"running":                {true, unchanged, "running", since},
		"running after failures": {true, func(r *record.Record) { r.Failures = 3 }, "running", since + ", failing x3"},
		"told":                   {true, told("page 3 of\n9"), "running", since + " (page 3 of 9, 20s ago)"},
		"told no note":           {true, told(""), "running", since + " (heartbeat, 20s ago)"},
		"stopping":               {true, func(r *record.Record) { r.Run.Stopping = true }, "stopping", since},
		"interrupted":            {false, func(r *record.Record) { told("page 3")(r); r.Run.Stopping = true }, "interrupted", " since 20s (page 3, 20s ago)"},
		"stalled":                {true, stall, "stalled", since + " (page 3 of 9, 20s ago)"},
		"stalled, lease lapsed":  {false, stall, "stalled", since + " (page 3 of 9, 20s ago)"},
		"stalled, then returned": {false, func(r *record.Record) { stall(r); r.Run.Stopping, r.Run.Finished = false, spring() }, "idle", ""},
	} {
		environment(t, "COLUMNS=120")
		p := host.Program{Work: work()[:1], Store: claimed(t, test.leased, test.f), Now: spring}
		for _, command := range []string{"status", "history"} {
			wantLines(t, p, command, 0, "  "+test.state+test.words+"  ")
		}
		s := open(t, p)
		_, note, _ := strings.Cut(strings.TrimSuffix(test.words, ")"), " (")
		for _, out := range []string{call(t, p, "status --json").out, call(t, p, "history --json").out, s.get("/api/v1/jobs").Body.String()} {
			told := strings.Join(strings.Fields(out), "")
			wantText(t, name, told, `"state":"`+test.state+`"`)
			wantEqual(t, name+": progress in "+told, strings.Contains(told, `"at":"2026-03-28T11:59:40Z"}`), note != "")
		}
		s.wait()
	}
}

func idle(r *record.Record) { r.Run.Status, r.Run.Finished = event.Succeeded, spring() }

func unchanged(*record.Record) {}

// What an unlock costs is told before it is done, and who has the lease.
func TestUnlock(t *testing.T) {
	wantsYes := func(who, args string) string {
		return "demo: unlock beat: " + who + ". The run loses its lease: its context ends within 6.7s. " +
			"If the run does not return within 3.3s after that, its process exits with code 3, 200 in Functions, and its other jobs end too\n" +
			"    Nothing is done yet. To unlock it: demo unlock " + args + " --yes\n"
	}
	const (
		notices = "lease: it cannot be renewed any more, which its holder notices within 6.7s; it ends by 2026-03-28 12:00:20Z, in 20s\n"
		waits   = ", up to 6.7s, a third of its lease; the next holder waits for 20s, one lease, before it does anything\n"
		nobody  = "beat: nobody has a lease: it is "
	)
	// A run is claimed by the store's clock, which may be ahead of this machine's.
	ahead := func(r *record.Record) { r.Run.Claimed = spring().Add(1500 * time.Millisecond) }
	unlocked := func(r *record.Record) { r.Run.Unlocked = record.Unlocked{By: "ann@desk", At: spring()} }
	for _, test := range []struct {
		name   string
		leased bool
		f      func(*record.Record)
		args   string
		state  store.LeaseState // afterwards
		out    string
		err    string
	}{
		{"it wants yes", true, unchanged, "beat", store.Leased, "", wantsYes("replica-b runs it since 2m", "beat")},
		{"a clock that is ahead", true, ahead, "beat", store.Leased, "", wantsYes("replica-b runs it since 0s", "beat")},
		{"a holder that waits", true, unlocked, "beat --now", store.Leased, "", wantsYes("a replica that waits after an earlier unlock may run it", "beat --now")},
		// The holder of a job that is idle may claim a tick at any moment.
		{"an idle job", true, idle, "beat", store.Leased, "", wantsYes("a replica that has claimed nothing may run it", "beat")},
		{"when it runs out", true, told("page 3"), "beat --yes", store.Breaking, `
			beat: the lease was leased, held by replica-b
			state: running on replica-b since 2m (page 3, 20s ago)
			` + notices + `next: another replica can run it from about 2026-03-28 12:00:40Z on, in 40s; one that starts later, 20s after its start
		`, ""},
		{"when it runs out, by a clock that is ahead", true, ahead, "beat --yes", store.Breaking, `
			beat: the lease was leased, held by replica-b
			state: running on replica-b since 0s
			` + notices + `next: another replica can run it from about 2026-03-28 12:00:40Z on, in 40s; one that starts later, 20s after its start
		`, ""},
		{"at once", true, unchanged, "--now beat --yes", store.Available, `
			beat: the lease was leased, held by replica-b
			state: running on replica-b since 2m
			lease: ended now
			next: another replica can run it from about 2026-03-28 12:00:20Z on, in 20s; one that starts later, 20s after its start
		`, "demo: unlock --now: replica-b may still work until it notices" + waits},
		{"a holder that waits, at once", true, unlocked, "beat --now --yes", store.Available, `
			beat: the lease was leased, held by a replica that waits after an earlier unlock
			state: waiting after unlock until about 2026-03-28 12:00:37Z, in 37s
			lease: ended now
			next: another replica can run it from about 2026-03-28 12:00:20Z on, in 20s; one that starts later, 20s after its start
		`, "demo: unlock --now: a replica that waits after an earlier unlock may still work until it notices" + waits},
		{"a holder that has claimed nothing", true, idle, "beat --yes", store.Breaking, `
			beat: the lease was leased, held by a replica that has claimed nothing
			` + notices + `next: another replica can run it from then on
		`, ""},
		{"a holder that has claimed nothing, at once", true, idle, "beat --now --yes", store.Broken, `
			beat: the lease was leased, held by a replica that has claimed nothing
			lease: ended now
			next: another replica can run it now
		`, "demo: unlock --now: its holder is a replica that has claimed nothing\n"},
		{"nobody", false, idle, "beat --now", store.Available, nobody + "available\n", ""},
		// After a break the next holder of an expired lease would have to wait.
		{"expired, and left as it is", true, unchanged, "beat --now", store.Expired, nobody + "expired\n", ""},
		{"nobody any more", false, unchanged, "beat", store.Available, nobody + "available\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment(t)
			backend := claimed(t, test.leased, test.f)
			if test.state == store.Expired {
				backend.Now = func() time.Time { return spring().Add(time.Minute) }
			}
			got := run(t.Context(), host.Program{Work: work(), Store: backend, Now: spring}, append([]string{"unlock"}, strings.Fields(test.args)...)...)
			goldenWant(t, test.args, got.out, test.out)
			wantCode(t, got.code, map[bool]int{true: 2}[test.state == store.Leased])
			wantEqual(t, "the warning", got.err, test.err)
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
	unlock := func(work []soloist.Work, backend store.Store, job string, code int, want string) {
		t.Helper()
		wantLines(t, host.Program{Work: work, Store: backend, Now: spring}, "unlock --yes "+job, code, want)
	}
	unlock(work(), &local.Memory{}, "nobody", 2, "demo: there is no job \"nobody\": want one of beat, night-report, leader\n")
	unlock(here(), &local.Memory{}, "cache", 2, "demo: cache runs on each replica: it has no lease\n")
	unlock(work(), down(), "beat", 1, "demo: unlock beat: no route to the storage\n")
	unlock(work(), newGated(claimed(t, true, unchanged), nil), "beat", 1, "demo: unlock beat: the store cannot end a lease")
	unlock(work(), broken, "beat", 0, "beat: the lease was leased, held by a replica that is not known, since the record cannot be read\nstate: broken\n"+
		"lease: it cannot be renewed any more, which its holder notices within 10s; it ends by 2026-03-28 12:00:30Z, in 30s\n"+
		"next: another replica can run it from about 2026-03-28 12:01:00Z on, in 1m; one that starts later, 30s after its start\n")
}

// After an unlock at once no replica runs the job until the next holder has
// waited.
func TestStatusAfterUnlock(t *testing.T) {
	environment(t)
	p := host.Program{Work: work()[:1], Store: claimed(t, true, told("page 3")), Now: spring}
	wantLines(t, p, "unlock beat --now --yes", 0)
	var r record.Record
	must(t, json.Unmarshal([]byte(recordOf(t, p.Store)), &r))
	wantText(t, "who has unlocked it", r.Run.Unlocked.By, "@")
	wantEqual(t, "when", r.Run.Unlocked.At.Round(time.Second), spring())
	for name, at := range map[string]time.Duration{
		"waiting after unlock until about 2026-03-28 12:00:37Z, in 7s": 30 * time.Second,
		"waiting after unlock: no replica has taken over yet":          10 * time.Minute,
	} {
		p.Now = func() time.Time { return spring().Add(at) }
		for _, command := range []string{"status beat", "history"} {
			wantLines(t, p, command, 0, name, "!running on", "!its runner died")
		}
		wantAnswer(t, "list", open(t, p).get("/api/v1/jobs?q=beat"), 200, `"state":"waiting"`, `"waits":"2026-03-28T12:00:37`)
	}
	wantLines(t, p, "status --json", 0, `"state": "waiting"`, `"waits": "2026-03-28T12:0`)
}

func TestUnlockInJSON(t *testing.T) {
	const head = `{"app":"demo","store":"*local.Memory","time":"2026-03-28T12:00:00Z","job":"beat",`
	for _, test := range []struct {
		args  string
		store store.Store
		code  int
		want  string
	}{
		{"beat --now", claimed(t, true, unchanged), 2, `"unlocked":false,"error":"replica-b runs it since 2m. The run loses its lease: its context ends within 6.7s. ` +
			`If the run does not return within 3.3s after that, its process exits with code 3, 200 in Functions, and its other jobs end too. Nothing is done yet. To unlock it: demo unlock beat --now --yes"}`},
		{"beat --yes", claimed(t, true, unchanged), 0,
			`"unlocked":true,"lease":"leased","replica":"replica-b","ends":"2026-03-28T12:00:20Z","next":"2026-03-28T12:00:40Z"}`},
		{"beat --yes --now", claimed(t, true, unchanged), 0,
			`"unlocked":true,"lease":"leased","replica":"replica-b","ends":"2026-03-28T12:00:00Z","next":"2026-03-28T12:00:20Z"}`},
		{"beat", claimed(t, false, unchanged), 0, `"unlocked":false,"lease":"available"}`},
		{"beat", down(), 1, `"unlocked":false,"error":"no route to the storage"}`},
	} {
		environment(t)
		p := host.Program{Work: work()[:1], Store: test.store, Now: spring}
		name := fmt.Sprintf(`"store":"%T",`, test.store)
		wantJSON(t, p, "unlock --json "+test.args, test.code, strings.Replace(head, `"store":"*local.Memory",`, name, 1)+test.want)
	}
}
