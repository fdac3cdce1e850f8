package draw

import (
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/entry"
)

// A LockPlan is a lock as a seed draws it, and how it is used.
type LockPlan struct {
	Name    string
	Slots   int
	Lease   time.Duration
	Users   int           // goroutines of each replica
	Longest time.Duration // that it is held, most of the time
	Rest    time.Duration // between two calls, on average
}

// Locks draws the locks of a seed, for two thirds of all seeds. Its dice are its own, so the
// jobs of a seed do not depend on them.
func Locks(seed uint64) (all []LockPlan) {
	r := New(seed, 0, "locks")
	if seed%10 != 0 && r.Chance(0.4) {
		return nil
	}
	for _, name := range []string{"north", "tenant-42", "Kunde/7"}[:1+r.Below(3)] {
		all = append(all, LockPlan{Name: name, Slots: Pick(r, 1, 1, 2, 3), Lease: Pick(r, 5*time.Second, 15*time.Second, 20*time.Second, 30*time.Second, 60*time.Second),
			Users: 1 + r.Below(3), Longest: Pick(r, 50*time.Millisecond, 2*time.Second, 20*time.Second, 90*time.Second), Rest: Pick(r, 5*time.Second, 20*time.Second, time.Minute, 20*time.Minute)})
	}
	return all
}

// Entries are the names of the entries of the locks.
func Entries(locks []LockPlan) (all []string) {
	for _, l := range locks {
		for i := range l.Slots {
			all = append(all, entry.OfSlot(entry.Lock, i, l.Name))
		}
	}
	return all
}

// LockFaults are the faults that hit only the locks of a seed: operators who end leases and
// delete entries, and replicas that crash, are suspended or stop at points of their calls.
func LockFaults(seed uint64, start, end time.Time, locks []LockPlan) []PlannedFault {
	return slotFaults(seed, start, end, Entries(locks), "lock faults", OfLock)
}

// slotFaults are the faults of some slots. The names of their points begin with area.
func slotFaults(seed uint64, start, end time.Time, names []string, dice, area string) (all []PlannedFault) {
	if quiet(seed) != "" || len(names) == 0 {
		return nil
	}
	r := New(seed, 0, dice)
	point := func() string { return area + Pick(r, Points()...) }
	p := planner{r, start, end, 0.15, 0, names, nil}
	p.every(8*time.Minute, "arm", func(d *PlannedFault) { d.Job = point() })
	p.every(6*time.Minute, "arm", func(d *PlannedFault) { d.Job, d.For = point(), r.Between(time.Second, 75*time.Second) })
	p.every(20*time.Minute, "arm", func(d *PlannedFault) { d.Job, d.For = point(), Stopping })
	p.every(10*time.Minute, "break now", nil)
	p.every(12*time.Minute, "break", nil)
	p.every(60*time.Minute, "delete", nil)
	p.every(5*time.Minute, Sweeps, nil)
	return p.all
}

// OfLock is the prefix of the points that a machine passes in its calls for a lock, or for what
// is done once. Their names differ from the points of jobs, so that locks take no fault away from
// jobs.
const OfLock = "lock "

// A OncePlan is what the replicas of a seed do once for each version of the program.
type OncePlan struct {
	Name    string
	Lease   time.Duration
	Retry   soloist.Retry
	Longest time.Duration // that it takes, most of the time
}

// Onces draws what is done once, for two thirds of all seeds, from dice of its own.
func Onces(seed uint64) (all []OncePlan) {
	r := New(seed, 0, "onces")
	if seed%10 != 0 && r.Chance(0.4) {
		return nil
	}
	for _, name := range []string{"migrate", "Warm up"}[:1+r.Below(2)] {
		all = append(all, OncePlan{Name: name, Lease: Pick(r, 5*time.Second, 15*time.Second, 30*time.Second, 60*time.Second), Longest: Pick(r, time.Second, 20*time.Second, 2*time.Minute),
			Retry: soloist.Retry{MaxTries: Pick(r, 0, 0, 0, 3, 20), Backoff: Pick(r, 0, time.Second, 20*time.Second)}})
	}
	return all
}
