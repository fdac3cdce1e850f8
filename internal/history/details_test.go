package history_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/store"
)

// fail lets the job fail once, with such a detail.
func (w *world) fail(detail string) event.Event {
	w.t.Helper()
	e := w.run(event.Failed)
	e.Detail = detail
	return e
}

// details reads what is known of the failures of some events.
func (w *world) details(all ...event.Event) []string {
	w.t.Helper()
	var of []event.Outcome
	for _, e := range all {
		of = append(of, e.Outcome)
	}
	texts, err := history.Details(w.t.Context(), w.store, entry, of)
	if err != nil {
		w.t.Error(err)
	}
	return texts
}

// parts are the logs of details, the oldest first, and their sizes.
func (w *world) parts() (names []string, sizes []int64) {
	w.t.Helper()
	if err := w.store.Logs(w.t.Context(), entry, func(name string, size int64) bool {
		if strings.Contains(name, "/detail-") {
			names, sizes = append(names, name), append(sizes, size)
		}
		return true
	}); err != nil {
		w.t.Error(err)
	}
	return names, sizes
}

// The first detail is written at once, others within a minute, the last at the end; what is read of outcomes does not have them.
func TestDetailIsThereSoon(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.over(&way{})
		r.Details = 1 << 20
		r.Failed = func(job string, err error) { t.Errorf("log of %s: %v", job, err) }
		r.run()
		w.every = time.Second
		text := "a \"quoted\" <b>\n" + strings.Repeat("\\", 16<<10)
		first, good, second := w.fail(text), w.run(event.Succeeded), w.fail("second")
		r.Take(first)
		time.Sleep(time.Second)
		if got := w.details(first)[0]; got != text[:16<<10] {
			t.Errorf("after a second: %d bytes", len(got))
		}
		r.Take(good)
		r.Take(second)
		time.Sleep(2 * time.Minute)
		if got := w.details(good, second); !slices.Equal(got, []string{"", "second"}) {
			t.Errorf("after two minutes: %.40q", got)
		}
		time.Sleep(20 * time.Second) // so that no look at what waits is near
		third := w.fail("third")
		r.Take(third)
		time.Sleep(time.Second)
		if got := w.details(third)[0]; got != "third" {
			t.Errorf("after a quiet minute, and a second: %q", got)
		}
		appends, last := r.way.appends, w.fail("last")
		r.Take(w.fail("fourth"))
		r.Take(last)
		r.end()
		if got := w.details(last)[0]; got != "last" || r.way.appends > appends+3 {
			t.Errorf("after the end: %q, and %d more appends", got, r.way.appends-appends)
		}
		w.holds(&w.rec)
	})
}

// Calls and answers get lost or arrive late, and replicas take turns: the detail of each failure is there, once its replica has
// ended by itself.
func TestDetailsThroughABadNetwork(t *testing.T) {
	inWorld(t, func(w *world) {
		dice := rand.New(rand.NewPCG(3, 4))
		var replicas []*replica
		for i := range 3 {
			r := w.over(&way{dice: rand.New(rand.NewPCG(uint64(i), 1))})
			r.Details = 1 << 20
			replicas = append(replicas, r.run())
		}
		var all []event.Event
		var want []string
		for i := range 300 {
			e := w.fail(fmt.Sprintf("failure %d", i))
			all, want = append(all, e), append(want, e.Detail)
			replicas[dice.IntN(3)].Take(e)
		}
		time.Sleep(10 * time.Minute)
		for _, r := range replicas {
			r.end()
		}
		if got := w.details(all...); !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		w.holds(&w.rec)
	})
}

// The newest details stay, as many as fit and no older than the history; what was torn by a crash of the store costs no other.
func TestOldDetailsGo(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.over(&way{})
		r.Details, r.Keep.Age = 3<<20, 30*24*time.Hour
		r.run()
		w.every = time.Hour
		var all []event.Event
		for range 500 {
			e := w.fail(strings.Repeat("x", 16<<10))
			r.Take(e)
			all = append(all, e)
		}
		time.Sleep(time.Minute)
		names, sizes := w.parts()
		total := int64(0)
		for _, size := range sizes {
			total += size
		}
		got := w.details(all...)
		kept := len(all) - slices.IndexFunc(got, func(s string) bool { return s != "" })
		if total > 4<<20+2*store.MaxAppend || len(names) > 4 || kept < 150 || slices.Contains(got[len(got)-kept:], "") {
			t.Errorf("%d logs of %d bytes with %d details", len(names), total, kept)
		}
		time.Sleep(40 * 24 * time.Hour)
		r.end()
		names, sizes = w.parts()
		last := len(names) - 1
		if err := w.store.Append(t.Context(), names[last], sizes[last], []byte(`{"tick":"20`)); err != nil {
			t.Fatal(err)
		}
		r = w.over(&way{})
		r.Details, r.Keep.Age = 3<<20, 30*24*time.Hour
		r.run()
		late := w.fail("late")
		r.Take(late)
		r.end()
		names, _ = w.parts()
		if got := w.details(late, all[len(all)-1]); len(names) > 2 || got[0] != "late" {
			t.Errorf("%d logs, and of the last %.20q", len(names), got)
		}
	})
}

// While no log can be written, details take a bounded part of the memory, and the log says of which there was no room.
func TestDetailsThatWaitTakeLittle(t *testing.T) {
	inWorld(t, func(w *world) {
		s := &way{dead: true}
		r := w.over(s)
		r.Details = 4 << 20
		r.run()
		e := w.fail(strings.Repeat("x", 1<<20))
		for i := range 20_000 {
			e.Job = fmt.Sprintf("job-%d", i%20)
			e.Outcome.Token = int64(i)
			r.Take(e)
		}
		s.mu.Lock()
		s.dead = false
		s.mu.Unlock()
		time.Sleep(time.Hour)
		r.end()
		whole, told := 0, 0
		for job := range 20 {
			name := fmt.Sprintf("app/job-%d", job)
			of := make([]event.Outcome, 1000)
			for i := range of {
				of[i] = event.Outcome{Tick: e.Outcome.Tick, Token: int64(i*20 + job)}
			}
			texts, err := history.Details(t.Context(), w.store, name, of)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range texts {
				switch {
				case strings.HasPrefix(text, "xxx"):
					whole++
				case text != "":
					told++
				}
			}
		}
		if most := 8 << 20 / (16 << 10); whole < most-20 || whole > most || whole+told > 2000 || told < 1000 {
			t.Errorf("%d details were kept, and %d are told to be lost", whole, told)
		}
	})
}

// A reason that a record has shortened since stays as it was in the log, and in what was read before.
func TestReasonStaysWhenTheRecordShortensIt(t *testing.T) {
	inWorld(t, func(w *world) {
		long := strings.Repeat("no paper ", 50)
		r := w.replica()
		first := event.Outcome{Status: event.Failed, Attempt: 1, Reason: long}
		r.Take(w.ends(event.Outcome{Status: event.Succeeded, Attempt: 1}))
		time.Sleep(time.Minute)
		r.Take(w.ends(first))
		lines, err := history.Read(t.Context(), w.store, entry, time.Time{}, &w.rec)
		if err != nil {
			t.Fatal(err)
		}
		w.rec.History[0].Reason = long[:100]
		w.keep()
		updated, ok := history.Update(lines, &w.rec)
		if got := updated[len(updated)-1].Reason; !ok || got != long {
			t.Errorf("what was read before has %q", got)
		}
		r.end()
		w.holds(nil)
	})
}
