package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// holds keeps a slot of a lock of the app until the test ends.
func holds(t *testing.T, s store.Store, name, replica string, slots int) {
	t.Helper()
	ctx, release := context.WithCancel(t.Context())
	held, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		l := &soloist.Lock{Name: name, Store: s, App: "demo", Slots: slots, Replica: replica}
		l.Do(ctx, func(ctx context.Context, _ *soloist.Run) error {
			close(held)
			<-ctx.Done()
			return nil
		})
	}()
	<-held
	t.Cleanup(func() { release(); <-ended })
}

// uses takes a lock of the app and gives it back.
func uses(t *testing.T, s store.Store, name string) {
	t.Helper()
	l := &soloist.Lock{Name: name, Store: s, App: "demo", Replica: "replica-u", Logger: slog.New(slog.DiscardHandler)}
	must(t, l.Do(t.Context(), do))
}

// once does something once for a key of the app, with this outcome.
func once(t *testing.T, s store.Store, name, key string, outcome error) {
	t.Helper()
	o := &soloist.Once{Name: name, Key: key, Store: s, App: "demo", Replica: "replica-o", Logger: slog.New(slog.DiscardHandler), Retry: soloist.Retry{MaxTries: 1},
		Do: func(context.Context, *soloist.Run) error { return outcome }}
	if err := o.Run(t.Context()); (err == nil) != (outcome == nil) {
		t.Fatal(err)
	}
}

func TestStatusShowsLocks(t *testing.T) {
	bubble(t, []string{"COLUMNS=100"}, func(t *testing.T) {
		backend := &local.Memory{}
		p := host.Program{Work: work()[:1], Store: backend}
		uses(t, backend, "Kunde/Müller")
		once(t, backend, "migrate", "v1", nil)
		wantLines(t, p, "history", 0) // what a program does before its jobs makes the first record of an app: it is not absent
		wantLines(t, p, "unlock beat", 0)
		once(t, backend, "migrate", "v2", errors.New("no such table"))
		holds(t, backend, "pool", "replica-a", 2)
		holds(t, backend, "pool", "replica-a", 2)
		holds(t, backend, "tenant-42", "replica-a", 1)
		time.Sleep(time.Minute)
		run(t.Context(), p, "tick")

		got := run(t.Context(), p, "status")
		_, tables, _ := strings.Cut(got.out, "\n\nLOCK")
		goldenWant(t, "status", "LOCK"+tables, `
			LOCK          HELD    HOLDER                SINCE                 TOKEN            LAST USED
			tenant-42     1 of 1  replica-a             2000-01-01 00:00:06Z  946684806000000  59s ago
			pool          2 of 2  replica-a, replica-a  2000-01-01 00:00:04Z  946684805000000  1m1s ago
			Kunde/Müller  0 of 1  -                     -                     946684801000000  1m4s ago

			ONCE     KEY  STATE                      REPLICA    SINCE
			migrate  v2   failed x1 (no such table)  replica-o  2000-01-01 00:00:03Z
			migrate  v1   succeeded                  replica-o  2000-01-01 00:00:02Z
		`)
		wantEqual(t, "code", got.code, 0)
		wantLines(t, p, "status --json", 0, `"name": "pool"`, `"kind": "lock"`, `"slots": 2`, `"held": 2`,
			`"replica": "replica-a"`,
			`"since": "2000-01-01T00:00:0`, `"key": "v1"`, `"state": "succeeded"`, `"replica": "replica-o"`)
	})
}

// manyLocks puts records of this many locks into a store.
func manyLocks(t *testing.T, backend store.Store, n int) {
	t.Helper()
	for i := range n {
		at := time.Now().Add(-time.Duration(i) * time.Second)
		name := fmt.Sprintf("0-lock-tenant-%d", i)
		rec := record.Record{App: "demo", Job: name, Created: at, Watermark: at, Token: 7, Run: record.Run{Status: event.Succeeded, Claimed: at, Finished: at, Replica: "replica-a"}}
		b, err := rec.Encode()
		must(t, err)
		put(t, backend, "demo/"+name, string(b), false)
	}
}

func TestStatusShowsFewOfManyLocks(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Work: work()[:1], Store: &local.Memory{}}
		call(t, p, "tick")
		manyLocks(t, p.Store, 500)
		for _, test := range []struct {
			command, lock, more string
			shown               int
		}{
			{"status", "\ntenant-", "and 480 more: status --locks\n", 20},
			{"status --locks", "\ntenant-", "!more: status --locks", 500},
			{"status --json", `"name": "tenant-`, `"moreLocks": 480`, 20},
		} {
			got := wantLines(t, p, test.command, 0, test.more)
			wantEqual(t, test.command, strings.Count(got.out, test.lock), test.shown)
		}
	})
}

// What makes no sense hurts nobody, and entries that are no job's change nothing of what is told of jobs.
func TestOtherEntriesAreNoJobs(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}}
		for i := range 15 { // so that they are listed
			p.Work = append(p.Work, soloist.Job{Name: fmt.Sprintf("job-%d", i), Schedule: "@every 1m", Do: do})
		}
		call(t, p, "tick")
		for name, record := range map[string]string{
			"0-lock-a": `{}`, "0-lock-a--": `not JSON`, "3-group-import": `{"schema":1}`, "0-member-replica-a": `x`, "7-fish-x": `x`,
			"0-once-migrate-aaaaaaaaaaaaaaaaaaaa": `{"schema":99}`, "99999999999999999999-lock-a": `x`, "0-lock-b--0ac": `{}`,
		} {
			put(t, p.Store, "demo/"+name, record, strings.HasPrefix(name, "0-lock"))
		}
		for _, command := range []string{"status", "history", "doctor"} {
			wantEqual(t, command+": jobs that are idle", strings.Count(wantLines(t, p, command, 0).out, " idle"), 15)
		}
		wantLines(t, p, "status", 0, "import (group)  0 of 1", "b\\nc  ", "migrate  -  ", "!fish", "!member", "!99999999")
	})
}

func TestHistoryOfLock(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Work: work()[:1], Store: &local.Memory{}}
		uses(t, p.Store, "a@b")
		once(t, p.Store, "migrate", "v2", errors.New("no such table"))
		holds(t, p.Store, "a@b", "replica-a", 1)
		wantLines(t, p, "history lock:a@b", 0, "lock:a@b  -     succeeded  1        replica-u  2000-01-01 00:00:02Z  0s",
			"lock:a@b  held by replica-a  -\n")
		wantLines(t, p, "history lock:a@b --json", 0, `"kind": "lock"`, `"state": "held"`, `"replica": "replica-u"`)
		wantLines(t, p, "history once:migrate --outcome failed", 0, "once:migrate for v2  -     failed", "no such table",
			"once:migrate for v2  failed  -\n")
	})
}

func TestHistoryOfNoLock(t *testing.T) {
	environment(t)
	p, long := host.Program{Work: work()[:1], Store: &local.Memory{}}, strings.Repeat("a", 513)
	for name, says := range map[string]string{
		"lock:":                 "the name after lock: is \"\": it is empty: allowed is text of up to 512 bytes",
		"once:" + long:          "allowed are 32",
		"group:a\nb":            "printable",
		"fish:tenant-1":         `there is no job "fish:tenant-1"`,
		"lock:" + long + "@now": "allowed are 512",
	} {
		run(t.Context(), p, "history", name).wants(t, name, 2, says)
	}
	wantLines(t, p, "history lock:tenant-1", 1, `no record of lock:tenant-1 of app "demo" in *local.Memory: it was never held there`)
	wantLines(t, host.Program{Work: work()[:1], Store: down()}, "history lock:a", 1, "the store does not list its entries")
}

// A store that does not list, and one that does not answer, tell of their jobs all the same.
func TestWithoutListing(t *testing.T) {
	environment(t)
	backend := &local.Memory{}
	call(t, host.Program{Work: work()[:1], Store: backend}, "tick")
	p := host.Program{Work: work()[:1], Store: newGated(backend, nil)}
	wantLines(t, p, "status", 0, "!LOCK")
	wantAnswer(t, "locks", open(t, p).get("/api/v1/locks"), 200, `"locks":[],"once":[]}`)
	p.Store = mayNotList{backend}
	wantLines(t, p, "status", 0, "locks and what is done once cannot be listed: 403 no right", "beat ")
	wantAnswer(t, "locks", open(t, p).get("/api/v1/locks"), 200,
		`"locks":[],"once":[],"locksNote":"They cannot be listed: 403 no right"`)
}

// mayNotList is a store whose credentials do not allow to list.
type mayNotList struct{ *local.Memory }

func (mayNotList) List(context.Context, string, func(string, store.Entry) bool) error {
	return errors.New("403\nno right")
}

// The answer of /locks is one listing in ten seconds, however many ask.
func TestLocksOverHTTP(t *testing.T) {
	bubble(t, []string{"SOLOIST_READ_TOKEN=" + readToken}, func(t *testing.T) {
		backend := &countsLists{Memory: &local.Memory{}}
		s := open(t, host.Program{Work: work()[:1], Store: backend})
		want := func(query string, code int, parts ...string) {
			t.Helper()
			wantAnswer(t, query, s.get("/api/v1/locks"+query, "Bearer "+readToken), code, parts...)
		}
		once(t, backend, "migrate", "v1", nil)
		holds(t, backend, "boss", "replica-a", 1)
		manyLocks(t, backend, 150)
		wantAnswer(t, "without the token", s.get("/api/v1/locks"), 401)
		for range 3 {
			want("", 200, `"name":"boss","kind":"lock","slots":1,"held":1,"holders":[{"slot":0,"replica":"replica-a"`,
				`"moreLocks":51`, `"name":"migrate","key":"v1","state":"succeeded"`)
		}
		wantEqual(t, "listings", backend.lists, 1)
		want("?q=REPLICA-A", 200, `"name":"boss"`, `"once":[]`, "!moreLocks")
		want("?x=1", 400, "want q")
		want("?q=1&q=2", 400, "2 times")
		time.Sleep(10 * time.Second)
		want("", 200)
		wantEqual(t, "listings", backend.lists, 2)
	})
}

// countsLists is a store that counts its listings.
type countsLists struct {
	*local.Memory
	lists int
}

func (s *countsLists) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	s.lists++
	return s.Memory.List(ctx, app, f)
}

func TestSweepCommand(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1h", Do: do}}}
		uses(t, p.Store, "tenant-1")
		uses(t, p.Store, "Tenant/2")
		time.Sleep(48 * time.Hour)
		uses(t, p.Store, "tenant-1")
		wantEqual(t, "after two days", call(t, p, "sweep"), result{0, "", "demo: 0 removed\n"})
		for unused, want := range map[string]string{"1m": "10m0s", "-1h": "such as 90m, 24h or 7d", "soon": "such as 90m, 24h or 7d"} {
			wantLines(t, p, "sweep --json --unused="+unused, 2, want, unused)
		}
		wantLines(t, p, "sweep --unused 50h", 0)
		wantEqual(t, "a day", call(t, p, "sweep --unused 1d"), result{0, "0-lock---54enant--2f2\n", "demo: 1 removed\n"})
		wantLines(t, p, "sweep --unused 10m --json", 0, `"removed": []`)
	})
}
