package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// isolation is the name of what [Isolated] finds.
const isolation = "I13 isolation"

// firstToken is how long the first claim of an entry may wait for its token.
const firstToken = 1100 * time.Millisecond

// Isolated compares two simulations of one seed that [Judge] has seen, of which
// the second had faults in one job more. All other jobs have the same ticks
// claimed in both, none more than a second later for that, with the same outcomes.
// The first claim of an entry may wait for its token, in one of them alone.
func Isolated(calm, faulty *Log, job string) (all []Violation) {
	for _, other := range calm.index.jobs {
		if other == job {
			continue
		}
		bad := func(at time.Time, format string, args ...any) {
			all = append(all, Violation{isolation, at, other + ": " + fmt.Sprintf(format, args...)})
		}
		if a, b := calm.outcomes(other), faulty.outcomes(other); !slices.Equal(a, b) {
			bad(faulty.end(), "the outcomes are %v without the fault, and %v with it", a, b)
		}
		late := map[int64]*Event{}
		for _, e := range faulty.claimed(other) {
			late[e.Record.Run.Tick.UnixNano()] = e
		}
		for _, e := range calm.claimed(other) {
			most := time.Second
			if e == calm.claimed(other)[0] {
				most += firstToken
			}
			switch o := late[e.Record.Run.Tick.UnixNano()]; {
			case o == nil:
				bad(e.Time, "tick %s is claimed only without the fault", TimeOfDay(e.Record.Run.Tick))
			case o.Time.Sub(e.Time) > most:
				bad(o.Time, "tick %s is claimed %s late for the fault", TimeOfDay(e.Record.Run.Tick), o.Time.Sub(e.Time))
			}
		}
	}
	return all
}

// outcomes are those of a job's ticks, in the order of time.
func (l *Log) outcomes(job string) (all []string) {
	var last *store.Record
	for _, e := range l.writes(job) {
		if e.Record == nil {
			continue
		}
		if last != nil {
			for _, f := range slices.Backward(news(last.History, e.Record.History)) {
				all = append(all, fmt.Sprintf("%s %s", TimeOfDay(f.Tick), f.Status))
			}
		}
		last = e.Record
	}
	return all
}
