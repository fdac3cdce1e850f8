package plan

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Bounds are the limits that a record has to keep, or the replica leaves it alone.
type Bounds struct {
	Latest            time.Time     // the latest that the service's clock can show; zero: not known
	Shortest, Longest time.Duration // leases that the store accepts
}

// Unusable returns what is wrong with a record that can be read. A replica that acted upon
// such a record would let the job rest for long, or fail in a way that names no cause.
func Unusable(r *store.Record, b Bounds) error {
	return cmp.Or(fromFuture(r, b), Exhausted(r), leaseOutOfBounds(r, b), beatOutOfBounds(r))
}

// fast is how far an instant may be in the future, since clocks differ.
const fast = time.Minute

// fromFuture returns what is wrong with a record that has an instant in the future: the job would
// rest until then. It is right by itself when that instant comes. No program takes the instant
// back before: ticks that were claimed by a clock that was ahead would be claimed once more.
func fromFuture(r *store.Record, b Bounds) error {
	if b.Latest.IsZero() {
		return nil
	}
	if name, at := latest(r); at.After(b.Latest.Add(fast)) {
		return fmt.Errorf("the record's %s %s is in the future: by the store's clock the record is right again from %s on; to run the job before that, "+
			"delete its entry %s/%s while nothing runs it", name, at.Format(time.RFC3339), RightAgain(r).Format(time.RFC3339), r.App, r.Job)
	}
	return nil
}

// RightAgain returns from when on no instant in r is in the future.
func RightAgain(r *store.Record) time.Time {
	_, at := latest(r)
	return at.Add(-fast)
}

// latest returns the latest of the instants in r that cannot lie in the future, and its name.
// Due is a field that can, and Past.Late.Since, as a tick may fail before it is late. So is the end of a run, by a little:
// it is the start and a duration by the clock of its replica, which may be fast.
func latest(r *store.Record) (name string, at time.Time) {
	look := func(n string, t time.Time) {
		if t.After(at) {
			name, at = n, t
		}
	}
	look("watermark", r.Watermark)
	look("date of creation", r.Created)
	look("start of a replica (since)", r.Definition.Since)
	look("start of a replica that asks (mark)", r.Definition.Mark.Since)
	look("newest tick that has succeeded", r.Past.Succeeded)
	look("newest tick judged", r.Past.Judged)
	look("newest late tick", r.Past.Late.Tick)
	look("time when it was last told to be late", r.Past.Told)
	look("tick", r.Run.Tick)
	look("claim", r.Run.Claimed)
	look("order of a run", ordered(r.Run.Order))
	look("last order served", ordered(r.Orders.Served))
	look("pause of itself", r.Orders.Paused.At)
	look("claim given back", r.Orders.Returned.Tick)
	look("order given back", ordered(r.Orders.Returned.Order))
	look("backfill", ordered(r.Backfill.Seq))
	look("last tick of a backfill", r.Backfill.Through)
	for _, early := range r.Orders.Early {
		look("order served early", ordered(early))
	}
	for _, s := range r.Orders.Pauses {
		look("end of a pause", s.To)
	}
	for _, f := range r.History {
		look("tick in the history", f.Tick)
		look("start of a run in the history", f.Start)
	}
	return name, at
}

// ordered returns when an order was given at the earliest by its number, which begins with that time.
func ordered(seq int64) time.Time { return time.UnixMicro(seq).UTC() }

// Exhausted returns what is wrong with a record whose token is the largest that can be read:
// no claim can follow it.
func Exhausted(r *store.Record) error {
	if r.Token < store.MaxToken {
		return nil
	}
	return fmt.Errorf("the record has the token %d, the largest there is, so nothing can be claimed: correct the record", r.Token)
}

// leaseOutOfBounds returns what is wrong with the lease in a record. Followers acquire the
// lease of a dead runner for its old length, and hold off that long. If the store refuses that
// length, the refusal looks like an outage. If it is too short, a follower starts while a
// runner still trusts its lease. After the end of a run a short lease does neither.
func leaseOutOfBounds(r *store.Record, b Bounds) error {
	d := time.Duration(r.Run.Lease)
	if d > b.Longest || r.MayRun() && (d < b.Shortest || d%time.Second != 0) {
		return fmt.Errorf("the record has a lease of %s and the store takes whole seconds from %s to %s: another program wrote it, or the limits of the store have changed: correct it in the record", d, b.Shortest, b.Longest)
	}
	return nil
}

// spare is by how many bytes the end of a run may lengthen the record of its claim, in addition to the
// outcome: statuses that are counted for the first time, numbers with more digits, longer
// dates, a due tick.
const spare = 256

// RoomForOutcome returns why the outcome of the run that r claims might not fit into the
// record, even if shortened as far as possible. Such a run must not start: a lost outcome
// counts as the death of the runner, and under Rerun a tick that has succeeded would run again.
func RoomForOutcome(r *store.Record) error {
	f := r.Clone()
	f.Writer = rand.Text() // only its length counts: the length of the nonce of a write
	f.Run.Finished, f.Run.Progress.At, f.Run.Stopping = r.Run.Claimed, r.Run.Claimed, true
	f.Succeeded, f.Past.Succeeded = r.Run.Claimed, r.Run.Claimed
	if !f.Past.Judged.IsZero() {
		f.Past.Late = store.Late{Since: r.Run.Claimed, Tick: r.Run.Claimed, Count: f.Past.Late.Count + maxCount}
	}
	f.History = []store.Outcome{LastOutcome(&f, store.Succeeded, "")}
	if _, err := f.EncodeWithin(store.MaxRecord - spare); err != nil {
		return fmt.Errorf("it has no room for the outcome of a run: %w", err)
	}
	return nil
}
