package plan

import (
	"cmp"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

const (
	nearEvery = 100 * time.Millisecond // how often a follower reads a run that is about to be handed over
)

// A decision is what is decided by: what the program says, and the entry as the replica sees it.
type decision struct {
	*Policy
	View
}

// A step is the decision about what a replica does next. It also has what the replica has noticed over several reads.
type step struct {
	*decision
	o *Observation
}

// Next says what to do about an entry as it was last seen. The order of the cases matters. A definition that is not in force
// decides nothing. While another replica runs the job, nothing else counts. Queue needs a fresh read: a lease that only an
// older read has shown may be free by now, so acquiring takes the place of another read.
func Next(p *Policy, v View, o *Observation) Action {
	s := &step{&decision{p, v}, o}
	if p.Outdated(v) {
		return s.yield()
	}
	_, todo := draft(p, v)
	runs := v.runs()
	if a, ok := s.expect(); ok && !runs {
		return a
	}
	switch {
	case todo && runs && o.Silent(v):
		return Action{What: Acquire, Break: true, Lease: p.LeaseAfter(v.Record, v.State)}
	case runs:
		return s.follow()
	case !todo:
		return s.tellLate(s.idle())
	case o.Fresh && v.State.Live():
		return s.queue()
	}
	return Action{What: Acquire, Lease: p.LeaseAfter(v.Record, v.State)}
}

// LeaseAfter returns the length of the lease to acquire. After a break the last runner may
// still trust its lease, which may be longer than ours. Ours must not end before that trust
// does: then a lease that is seen expired proves that no earlier holder trusts its own.
func (p *Policy) LeaseAfter(r *record.Record, seen store.LeaseState) time.Duration {
	if r.MayRun() && seen != store.Expired {
		return p.longer(r)
	}
	return p.Lease
}

// longer returns the longer one of our lease and that of the last run.
func (p *Policy) longer(r *record.Record) time.Duration {
	return max(p.Lease, time.Duration(r.Run.Lease))
}

// yield leaves the job to the replicas of a younger definition, and asks from time to time whether any of them is up.
func (s *step) yield() Action {
	if since, ok := s.inherits(); ok {
		return Action{What: Inherit, Since: since}
	}
	asked := s.o.AskedAt
	if s.Record.Definition.Mark.Spec == s.Spec {
		asked = s.o.At
	}
	if s.State.Live() || s.o.At.Sub(asked) < markAgain || !s.mayMark() {
		return Action{What: Yield, After: maxSleep, Read: true}
	}
	return Action{What: Mark, After: maxSleep, Read: true}
}

// idle waits for the next tick. It reads the record once a minute anyway: a replica
// with an older definition may have left a mark, which must be answered. A younger definition that is not in force yet, as
// of a paused singleton, answers none: the answer would be from the definition in force.
func (s *step) idle() Action {
	if s.o.Fresh && s.Record.Definition.Mark.Spec != "" && s.Record.Definition.Spec == s.Spec && !s.State.Live() {
		return Action{What: Answer}
	}
	stale := s.o.stale(s.Ahead.LookBy)
	if stale <= 0 {
		return Action{Read: true}
	}
	until := func(at time.Time) Action { return Action{After: min(stale, max(at.Sub(s.Now), minIdle))} }
	if s.armed() { // its runner has died: at the tick a claim settles it, also in a pause, and may claim a run that was ordered
		return until(s.Record.Run.Tick)
	}
	next := s.NextTick(s.Record)
	if next.IsZero() || s.IsPaused() {
		look := s.Now.Add(maxSleep)
		if ends := s.pauseEnds(); !ends.IsZero() {
			look = instant.Earlier(look, ends)
		}
		return until(look)
	}
	if _, awaits := s.Awaits(s.View); awaits {
		return Action{What: Await, After: stale}
	}
	if a, ok := s.ahead(next); ok {
		if a.What == Wait && !a.Read {
			a.After = min(a.After, stale)
		}
		return a
	}
	return until(next)
}

// queue waits while a client holds the lease and the record shows no run. The client is
// about to claim, or died before it could, or is no replica.
func (s *step) queue() Action {
	if s.o.Occupied(s.OccupiedAfter(s.Record)) {
		return Action{What: Blocked, After: maxSleep, Read: true}
	}
	half := cmp.Or(s.Beat, s.Lease) / 6 / 2
	a := Action{What: Queue, After: half, Jitter: half, Read: true}
	// The release of a lease that is handed over follows its outcome at once. If the lease is live
	// for longer, another client has it: the reads become rarer.
	if s.o.handedOver(s.Record) {
		a.Most = max(nearEvery, s.o.At.Sub(s.o.UnchangedSince))
	}
	// The lease of a job with a short period is free only for a moment before a tick, now
	// and then. The next read is in that moment.
	a.sooner(s.untilLook())
	return s.often(a)
}

// follow waits while another replica runs the job. If a tick, an attempt or a singleton waits for the end of that run, the
// next read comes when the lease could have lapsed; else after a minute, or when the next tick makes it urgent.
func (s *step) follow() Action {
	a := Action{What: Follow, Read: true}
	switch urgent := s.urgent(s.Record, s.Now) || s.Backfills(s.View); {
	case urgent && s.Record.Run.Stopping:
		// The run is about to end, so followers read ten times a second. After half a
		// minute they read ever more rarely: some runs take long to stop.
		a.After, a.Jitter = s.untilLapse()
		a.Most = max(nearEvery, s.o.At.Sub(s.o.HandoverAt)/300)
	case urgent:
		a.After, a.Jitter = s.untilLapse()
		a = s.o.byBeat(a, s.View)
	default:
		a.After = LookEvery
		if next := s.Ticks.Next(instant.Later(s.Now, s.Record.Run.Tick)); !next.IsZero() {
			a.After = min(a.After, next.Sub(s.Now))
		}
	}
	wait := s.untilLook()
	if s.armed() { // the claim may be taken back
		wait = s.lookAgain(s.Record.Run.Tick)
	}
	if s.Ahead.Lead > 0 {
		a.sooner(wait)
	}
	return s.often(a)
}

// sooner makes the next step come after a wait, if that is shorter; zero or less: there is none.
func (a *Action) sooner(wait time.Duration) {
	if wait > 0 && wait < a.After {
		a.After, a.Jitter = wait, 0
	}
}

// often has a replica of a younger definition read a job often whose lease may be kept from tick to tick: that lease is free
// for a moment only, now and then, and the ticks of this definition do not say when.
func (s *step) often(a Action) Action {
	if s.Ticks != nil && s.Record.Definition.Spec != s.Spec && s.Now.Sub(s.Record.Run.Claimed) < 2*s.Lead() {
		a.After, a.Jitter = min(a.After, 2*nearEvery), 2*nearEvery
	}
	return a
}

// urgent reports whether something waits for the end of the run in r: another attempt, a
// singleton, a tick that is due, or a younger definition that is to come into force.
func (p *Policy) urgent(r *record.Record, now time.Time) bool {
	if p.Ticks == nil || p.Interrupted == Rerun || r.Definition.Spec != p.Spec {
		return true
	}
	return p.Ticks.Last(now).After(begunThrough(r))
}

// untilLapse returns when to read next: just after the next instant at which the lease of the run could lapse. Renewals come
// at thirds of the lease after the claim, so a lapse comes at such an instant too. The service's clock is taken as early as it
// can be, and that reading falls behind by drift while the replica waits; without allowance for that, the replica would wake
// up too early and read twice.
func (s *step) untilLapse() (after, jitter time.Duration) {
	third := time.Duration(s.Record.Run.Lease) / 3
	if s.Earliest.IsZero() || third <= 0 {
		return s.Lease / 3, 0
	}
	wait := third - s.Earliest.Sub(s.Record.Run.Claimed)%third
	wait += wait / (drift - 1)
	return min(wait, 2*third) + 50*time.Millisecond, 200 * time.Millisecond
}

// Waits returns about when the run in r can be followed by another, if its job was unlocked during the run; else zero.
// Replicas that are up read the entry once more, see that the lease was ended, and hold off from then on: for one lease, or
// until they have seen the last beat for long enough.
func (p *Policy) Waits(r *record.Record, now time.Time) time.Time {
	if r.Run.Unlocked.At.IsZero() || !r.MayRun() {
		return time.Time{}
	}
	third, lease := time.Duration(r.Run.Lease)/3, p.longer(r)
	if beat := r.Beats(); beat > 0 {
		third, lease = beat/3, silentAfter(beat)
	}
	look := LookEvery
	if p.urgent(r, now) {
		look = third + time.Second
	}
	return r.Run.Unlocked.At.Add(look + lease)
}

// A What is what a replica does about an entry.
type What int

const (
	Wait    What = iota // nothing is due
	Follow              // another replica runs the job: read again later
	Queue               // a lease without a claim: its holder is about to claim
	Blocked             // a lease without a claim that has lasted longer than a replica needs
	Yield               // another definition is in force: read again later
	Mark                // the same, and ask whether a replica with that definition is up
	Inherit             // no such replica answers: the definition of this one is in force from Since on
	Answer              // remove a mark: the replica that asks learns that one is up
	Expect              // another replica holds the lease before a tick: it is expected to run that tick
	Tell                // write that ticks have not succeeded in time
	Await               // a job that this one follows has not ended: read its entry again
	Acquire             // something is due, or almost, and the lease is free
)

// An Action is what a replica does next. It contains no random number: the caller adds the
// jitter, so that a table can test the action.
type Action struct {
	What What

	After  time.Duration // until the next step
	Jitter time.Duration // up to this is added at random, so that followers do not all read at once
	Most   time.Duration // the longest sum of both; zero: no limit
	Read   bool          // the entry is read again before the next decision

	Lease time.Duration // Acquire: for how long
	Break bool          // Acquire: the lease is live, and its holder trusts it no more: it is broken first
	Tick  time.Time     // Acquire, Expect: the tick that is not due yet; zero: something is due
	Since time.Time     // Inherit: from when the definition counts
}

// wantedAgain is after how long a replica is wanted that cannot do anything yet: it looks again.
const wantedAgain = 30 * time.Second

// Wanted returns when a replica is wanted next, if none is up until then and nothing else happens. Now or before: there is
// something to do. Zero: never. A singleton wakes no replica.
func Wanted(p *Policy, v View) time.Time {
	d := decision{p, v}
	switch {
	case d.Ticks == nil:
		return time.Time{}
	case d.runs(): // a replica has to be there if its holder dies
		return d.afterLease()
	case d.Outdated(d.View):
		return d.wantedByOthers()
	case d.armed():
		return d.Record.Run.Tick
	}
	at := d.wantedForTick()
	// A tick becomes late that has not succeeded, which a replica has to report, whoever has the lease now.
	if wait := UntilTell(d.Policy, d.Record, d.Now, d.Control); wait != never && (at.IsZero() || d.Now.Add(wait).Before(at)) {
		at = d.Now.Add(wait)
	}
	if d.State.Live() && !at.IsZero() && !at.After(d.Now) { // its holder is about to claim, or died before it could
		return d.afterLease()
	}
	return at
}

// afterLease returns when a replica is wanted that waits for the end of a lease: by the next tick, if that comes first. The
// holder may have died a while ago, so its lease may be over by then.
func (d decision) afterLease() time.Time {
	outlasts := d.longer(d.Record) // for so long the lease of a holder goes on that dies now
	if beat := d.Record.Beats(); beat > 0 && d.Break.Able {
		outlasts = silentAfter(beat)
	}
	at, from := d.Now.Add(outlasts), d.Now
	if ends := d.pauseEnds(); !ends.IsZero() { // the first tick after the pause
		from = ends.Add(-1)
	} else if d.IsPaused() {
		return at
	}
	if next := d.Ticks.Next(from); !next.IsZero() && !d.Paused && !d.Follows() {
		return instant.Earlier(at, next)
	}
	return at
}

// wantedByOthers is Wanted if another definition is in force, whose replicas may all be gone. The record says when its next
// tick is due; this definition takes the job over at one of its own ticks, or for a run that was ordered. See definition.go. The
// longer a tick is due that it may not run, or such a run waits, the less often it looks for the others.
func (d decision) wantedByOthers() time.Time {
	q := d.waiting()
	if q == nil && d.IsPaused() {
		return d.pauseEnds()
	}
	at, waits := d.Ticks.Next(d.Now), []time.Time{Due(d.Record)}
	if q != nil {
		waits = append(waits, q.At)
	}
	for _, due := range waits {
		look := instant.Later(due, d.Now.Add(d.Now.Sub(due)/2))
		if !due.IsZero() && (at.IsZero() || look.Before(at)) {
			at = look
		}
	}
	if at.IsZero() {
		return at
	}
	return instant.Later(at, d.Now.Add(wantedAgain))
}

// wantedForTick returns when there is something to run or to settle, whoever has the lease now. If the job is paused by its
// settings, and all there is to write is that its ticks were skipped, the next manual run, or the next program, writes that too.
func (d decision) wantedForTick() time.Time {
	r, idle := d.Record, d.Paused && !d.Awaited
	if _, todo := d.Claim(d.View); todo && !(idle && !r.MayRun() && !open(r) && !Ordered(d.Policy, d.View)) {
		return d.Now
	}
	next := d.Unclaimed(r)
	switch ends := d.pauseEnds(); {
	case idle:
		return time.Time{}
	case !ends.IsZero():
		// The end of the pause is when the first claim can write: it skips the ticks of the pause, for which followers may wait.
		d.Now = ends
		return d.wantedForTick()
	case d.IsPaused(), d.Follows() && next.After(DecidedBy(d.Before)): // an order to resume, and the jobs before it, wake the app up
		return time.Time{}
	}
	return next
}
