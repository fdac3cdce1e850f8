package host_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/store"
)

// What an unlock costs is told before it is done.
func TestUnlockWantsYes(t *testing.T) {
	const costs = "replica-b runs it since 2m. The run loses its lease: its context ends within 6.7s. " +
		"If the run does not return within 3.3s after that, its process exits with code 3, 200 in Functions, and its other jobs end too\n"
	for args, again := range map[string]string{"beat": "beat", "beat --now": "beat --now"} {
		environment(t)
		backend := claimed(t, true, func(*store.Record) {})
		p := host.Program{Work: work(), Store: backend, Now: spring}
		got := run(t.Context(), p, append([]string{"unlock"}, strings.Fields(args)...)...)
		want := "demo: unlock beat: " + costs + "    Nothing is done yet. To unlock it: demo unlock " + again + " --yes\n"
		if got.code != 2 || got.out != "" || got.err != want {
			t.Errorf("%s: got %+v, want %s", args, got, want)
		}
		if e, err := backend.Read(t.Context(), "demo/beat"); err != nil || e.State != store.Leased {
			t.Errorf("%s: the lease is %s, %v", args, e.State, err)
		}
	}
}

// After an unlock at once no replica runs the job until the next holder has
// waited.
func TestStatusAfterUnlock(t *testing.T) {
	environment(t)
	p := host.Program{Work: work()[:1], Store: claimed(t, true, told("page 3")), Now: spring}
	if got := run(t.Context(), p, "unlock", "beat", "--now", "--yes"); got.code != 0 {
		t.Fatalf("got %+v", got)
	}
	e, err := p.Store.Read(t.Context(), "demo/beat")
	var r store.Record
	if err := json.Unmarshal(e.Record, &r); err != nil || !strings.Contains(r.Run.Unlocked.By, "@") || !r.Run.Unlocked.At.Round(time.Second).Equal(spring()) {
		t.Errorf("the record tells %+v, %v", r.Run.Unlocked, err)
	}
	for name, at := range map[string]time.Duration{
		"waiting after unlock until about 2026-03-28 12:00:37Z, in 7s": 30 * time.Second,
		"waiting after unlock: no replica has taken over yet":          10 * time.Minute,
	} {
		p.Now = func() time.Time { return spring().Add(at) }
		for _, command := range []string{"status", "history"} {
			got := run(t.Context(), p, command)
			if got.code != 0 || !strings.Contains(got.out, name) || strings.Contains(got.out, "running on") {
				t.Errorf("%s: got %+v, %v, want %s", command, got, err, name)
			}
		}
		s := open(t, p)
		wantAnswer(t, "list", s.get("/api/v1/jobs?q=beat"), 200, `"state":"waiting"`, `"waits":"2026-03-28T12:00:37`)
		s.wait()
	}
	if got := run(t.Context(), p, "status", "--json"); !strings.Contains(got.out, `"state": "waiting"`) || !strings.Contains(got.out, `"waits": "2026-03-28T12:0`) {
		t.Errorf("got %s", got.out)
	}
	if got := run(t.Context(), p, "history"); strings.Contains(got.out, "its runner died") {
		t.Errorf("got %s", got.out)
	}
}

func TestUnlockTellsOfTheHolder(t *testing.T) {
	// A run is claimed by the store's clock, which may be ahead of this machine's.
	ahead := func(r *store.Record) { r.Run.Claimed = spring().Add(1500 * time.Millisecond) }
	waits := func(r *store.Record) { r.Run.Unlocked = store.Unlocked{By: "ann@desk", At: spring()} }
	idle := func(r *store.Record) { r.Run.Status, r.Run.Finished = store.Succeeded, spring() }
	for _, test := range []struct {
		args string
		f    func(*store.Record)
		code int
		want string
	}{
		{"beat", ahead, 2, "replica-b runs it since 0s. The run"},
		{"beat --yes", ahead, 0, "state: running on replica-b since 0s\n"},
		{"beat --now", waits, 2, "a replica that waits after an earlier unlock may run it. The run"},
		{"beat --now --yes", waits, 0, "held by a replica that waits after an earlier unlock"},
		// The holder of a job that is idle may claim a tick at any moment.
		{"beat", idle, 2, "a replica that has claimed nothing may run it. The run"},
	} {
		environment(t)
		p := host.Program{Work: work(), Store: claimed(t, true, test.f), Now: spring}
		got := run(t.Context(), p, append([]string{"unlock"}, strings.Fields(test.args)...)...)
		said := got.out
		if test.code != 0 {
			said = got.err
		}
		if got.code != test.code || !strings.Contains(said, test.want) {
			t.Errorf("%s: got %+v, want code %d and %s", test.args, got, test.code, test.want)
		}
	}
}
