package soak_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A ledger says of each tick of each job what became of it. It learns of outcomes
// as the service takes the records that tell of them, since a record forgets
// its oldest.
type ledger struct {
	over     stretch // the ticks that count
	accounts map[string]*account
	bad      func(format string, args ...any)
}

// An account is that of one job.
type account struct {
	*ledger
	job      string
	chapters []chapter
	gone     time.Time // the job was removed then; zero: it was not
	outcomes []uint8   // of each minute: its kind; zero: none
	kinds    []kind    // the first is no outcome
	entries  []int     // of each kind: how many the record had
	counts   map[store.Status]int64
	last     store.Record

	claims, takeovers, attempts int
}

// A chapter is a time in which one schedule was in force: after its begin.
type chapter struct {
	after time.Time
	calendar
}

// A kind of outcome.
type kind struct {
	status store.Status
	reason string
	ranged bool // with others, in one entry
}

const changed = "the schedule changed"

// write takes in a record that the service took. Whoever wrote it goes by the
// calendar c; singletons have none.
func (l *ledger) write(r *store.Record, c calendar) {
	a := l.accounts[r.Job]
	if a == nil {
		a = &account{ledger: l, job: r.Job, outcomes: make([]uint8, len(c.due)), kinds: make([]kind, 1), entries: make([]int, 1),
			counts: map[store.Status]int64{}, chapters: []chapter{{r.Watermark, c}}}
		l.accounts[r.Job] = a
	} else {
		a.follow(r, c)
	}
	a.last = *r
}

// follow compares a record with the one before.
func (a *account) follow(r *store.Record, c calendar) {
	if r.Token > a.last.Token {
		a.claims++
		if a.last.Run.Status == store.Running && a.last.Run.Replica != r.Run.Replica {
			a.takeovers++
		}
		if r.Run.Attempt > 1 {
			a.attempts++
		}
	}
	if c.due == nil {
		return
	}
	if r.Watermark.Before(a.last.Watermark) {
		a.bad("%s: the watermark moves back from %s to %s", a.job, a.last.Watermark, r.Watermark)
	}
	n := len(a.chapters)
	for _, f := range slices.Backward(news(a.last.History, r.History)) {
		a.enter(f)
		if f.Reason == changed {
			a.chapters = append(a.chapters, chapter{f.Tick, c})
		}
	}
	if r.Definition.Spec != a.last.Definition.Spec && n == len(a.chapters) { // nothing was open under the old one
		a.chapters = append(a.chapters, chapter{r.Watermark, c})
	}
}

// enter notes one outcome.
func (a *account) enter(f store.Outcome) {
	k := a.kind(f)
	a.entries[k]++
	now := a.chapters[len(a.chapters)-1].calendar
	if f.From.IsZero() {
		if !now.has(f.Tick) {
			a.bad("%s: %s is no tick, and %s", a.job, f.Tick, f.Status)
			return
		}
		a.set(now.minute(f.Tick), k)
		a.counts[f.Status]++
		return
	}
	n := 0
	for m := now.minute(f.From.Add(1)); m < len(now.due) && !now.at(m).After(f.Tick); m++ {
		if now.due[m] {
			a.set(m, k)
			n++
		}
	}
	if f.Reason != changed && f.Count != n {
		a.bad("%s: %d ticks are %s after %s up to %s, and %d were due", a.job, f.Count, f.Status, f.From, f.Tick, n)
	}
	a.counts[f.Status] += int64(f.Count)
}

func (a *account) set(minute int, k uint8) {
	if old := a.outcomes[minute]; old != 0 {
		a.bad("%s: the tick %s is %v and %v", a.job, a.chapters[0].at(minute), a.kinds[old], a.kinds[k])
	}
	a.outcomes[minute] = k
}

func (a *account) kind(f store.Outcome) uint8 {
	reason, _, _ := strings.Cut(f.Reason, ": ") // what follows differs each time
	k := kind{f.Status, reason, !f.From.IsZero()}
	i := slices.Index(a.kinds, k)
	if i < 0 {
		i = len(a.kinds)
		a.kinds, a.entries = append(a.kinds, k), append(a.entries, 0)
	}
	return uint8(i)
}

// news is what stands in front of the old history in the new one, of which the
// oldest may have been cut off. The end of a run may be told later.
func news(old, now []store.Outcome) []store.Outcome {
	same := func(a, b store.Outcome) bool { a.End, b.End = time.Time{}, time.Time{}; return a == b }
	for n := range now {
		if rest := now[n:]; len(rest) <= len(old) && slices.EqualFunc(rest, old[:len(rest)], same) {
			return now[:n]
		}
	}
	return now
}

// expected goes through the ticks that the schedules of the job had, in the time
// that counts and as long as the program had the job.
func (a *account) expected(yield func(minute int)) {
	for i, c := range a.chapters {
		end := a.over.to
		if !a.gone.IsZero() {
			end = a.gone
		}
		if i+1 < len(a.chapters) {
			end = a.chapters[i+1].after.Add(1)
		}
		from := max(c.minute(c.after.Add(1)), c.minute(a.over.from))
		for m := from; m < min(len(c.due), c.minute(end), c.minute(a.over.to)); m++ {
			if c.due[m] {
				yield(m)
			}
		}
	}
}

// A sum is what became of the ticks of one job.
type sum struct {
	*account
	ticks    int // that there were
	outcomes map[kind]int
}

// sums closes all accounts of jobs, in the order of their names.
func (l *ledger) sums() (all []sum) {
	for _, job := range slices.Sorted(maps.Keys(l.accounts)) {
		if job != leader {
			all = append(all, l.accounts[job].sum())
		}
	}
	return all
}

// sum goes through all ticks, and says which have no outcome.
func (a *account) sum() sum {
	s := sum{account: a, outcomes: map[kind]int{}}
	told := 0
	a.expected(func(m int) {
		s.ticks++
		if k := a.outcomes[m]; k != 0 {
			s.outcomes[a.kinds[k]]++
		} else if told++; told <= 3 {
			a.bad("%s: the tick %s has no fate", a.job, a.chapters[0].at(m))
		}
	})
	n := 0
	first := a.chapters[0].minute(a.over.from)
	for m := max(0, first); m < a.chapters[0].minute(a.over.to); m++ {
		if a.outcomes[m] != 0 {
			n++
		}
	}
	if n != s.ticks && told == 0 {
		a.bad("%s: %d ticks have an outcome, and there were %d", a.job, n, s.ticks)
	}
	for _, status := range slices.Sorted(maps.Keys(a.counts)) {
		if told := a.last.Counts[status]; told != a.counts[status] {
			a.bad("%s: the record counts %d ticks %s, and told of %d", a.job, told, status, a.counts[status])
		}
	}
	return s
}

// of is how many ticks have an outcome; an empty reason is any.
func (s sum) of(status store.Status, reason string) (n int) {
	for k, ticks := range s.outcomes {
		if k.status == status && (reason == "" || reason == k.reason) {
			n += ticks
		}
	}
	return n
}

func (k kind) compare(o kind) int {
	return cmp.Or(cmp.Compare(k.status, o.status), cmp.Compare(k.reason, o.reason))
}
