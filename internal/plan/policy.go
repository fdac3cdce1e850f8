// Package plan decides what becomes of the ticks of a job. It is pure: it has no clock, store or goroutine. Each decision is a
// value that follows from a record, the policy of the job, and what the replica has seen. So every decision can be tested in a
// table, and the runner only carries it out.
//
//   - [Next] says what a replica does now about an entry that it has read.
//   - [Observation.HoldOff] says how long a new holder waits before it claims.
//   - [Policy.Claim] says what that holder then writes, and whether it runs a tick.
//   - [Finish], [Stall] and [TakeBack] say what is written at the end of a run.
//
// Two words recur. A tick is settled when it has its outcome: each tick up to the record's
// watermark is. A tick is open when its run was ended and it waits for another attempt.
package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// Ticks are the instants of a schedule; internal/schedule implements them. All replicas
// get the same instants from the same schedule.
type Ticks interface {
	Next(after time.Time) time.Time           // the first one after an instant; zero: there is none
	Last(at time.Time) time.Time              // the last one at or before an instant; zero: there is none
	Count(after, to time.Time, limit int) int // how many are after one instant and up to another, at most limit
}

// Missed says what becomes of ticks that came due while no replica ran them.
type Missed string

// Overlap says what becomes of ticks that come due while the job runs; see finish.go.
type Overlap string

// Interrupted says what becomes of a tick whose runner died.
type Interrupted string

// The fields of soloist.Job explain them.
const (
	RunLatest  Missed = ""
	RunAll     Missed = "all"
	SkipMissed Missed = "skip"

	SkipOverlap Overlap = ""
	QueueOne    Overlap = "queue-one"
	Replace     Overlap = "replace"

	Abandon Interrupted = ""
	Rerun   Interrupted = "rerun"
)

// A Policy is what the program says about the ticks of a job. A decision that has a value of its own, as Next has a step, is a
// function of a policy: that value needs the policy, so the policy must not need it.
type Policy struct {
	Ticks        Ticks         // nil: a singleton, which has a claim and no ticks
	Lease        time.Duration // the length that the store is asked for
	Beat         time.Duration // the length that the program asks for, if the store takes none so short; else zero. See observation.go
	Late         Late
	Overlap      Overlap
	Interrupted  Interrupted
	ClaimAhead   bool // the claim is written before the tick; see ahead.go
	Paused       bool
	CountsByHand bool   // Failures counts manual runs, and deaths among them
	Group        string // whose slots limit how many runs take place at a time; empty: none does
	PauseAfter   int64  // failures in a row after which the job pauses itself; zero: it does not
	Spec         string // hash of the definition: two replicas with the same one agree about every tick

	After    []string // the jobs that this one follows, whose ticks are Ticks; empty: none. See after.go
	AfterAny bool     // a tick is due also if a run that it waited for has not succeeded
}

// repeats reports whether a tick whose runner is gone may have another attempt, after so many attempts and deaths. A claim
// beyond the largest attempt would make the record unreadable.
func (i Interrupted) repeats(attempts, deaths int) bool {
	return i == Rerun && attempts < record.MaxAttempt && deaths < maxDeaths
}

// Follows reports whether the job is a follower.
func (p *Policy) Follows() bool { return len(p.After) > 0 }

// Queues reports whether a tick that comes due under a run waits for the end of that run, and no other tick does.
func (p *Policy) Queues() bool { return p.Overlap != SkipOverlap }

const (
	minIdle   = 10 * time.Millisecond // the shortest wait for a tick: a loop must not spin, whatever the clocks say
	maxSleep  = 30 * time.Second      // timers stand still while a machine is suspended, so the clocks are looked at again
	LookEvery = time.Minute           // how often a record is read that is not expected to change
)

const (
	maxBacklog = 100     // how many ticks RunAll makes up for
	maxPauses  = 5       // pauses of a job by itself that a record keeps, while ticks from before them wait
	maxDeaths  = 5       // how many runners one tick may cost under Rerun: a tick that kills its runner would kill every replica in turn
	maxCount   = 100_000 // how far ticks are counted, which must not take long: of more an outcome says "at least", and no backfill has more
)

// A View is the entry as a replica sees it, and what else it decides by.
type View struct {
	Record *record.Record
	ETag   string // of Record
	State  store.LeaseState
	Break  Break // of the lease before its time

	Now      time.Time // ticks up to Now are due
	Earliest time.Time // that the service's clock can show; zero: not known

	Since time.Time // the definition of this replica counts from here: its start, or when it took the job back

	Ahead Ahead

	Control record.JobControl // what operators have ordered for the job
	Before  []Predecessor     // of a follower: what is known of the jobs in After, in that order
	Awaited bool              // a follower with AfterAny waits for each outcome of this job, also that it was skipped

	// Request is the name of a manual run. Then the claim is for that run alone.
	Request string

	// Waited are the ticks that this replica could not claim, since its group had no free slot.
	// They are after From and up to To.
	Waited record.Span

	Claims Claims // which runs there may be
}

// Ahead is what a replica does before the next tick.
type Ahead struct {
	Lead time.Duration // how long before the tick it acts; zero: it waits until the tick is due
	Last bool          // it ran the last tick, so it need not read the entry before it acquires
	Grab time.Duration // how long before the tick it acquires a lease that it has found free; at most Lead

	// LookBy is when the entry is read again at the latest, so that the entries of many jobs are
	// read together. Zero: LookEvery after the last look.
	LookBy time.Time
}

// A Break says who can end a lease before its time, and who has.
type Break struct {
	Able       bool // the store lets this replica replace a holder that is silent
	ByOperator bool // an operator is known to have ended the lease of the last run; see Observation.Unlocked
}

// runs reports whether a replica may run the job, under a lease that is live.
func (v View) runs() bool { return v.Record.MayRun() && v.State.Live() }

// Claims says which runs a replica may claim now.
type Claims int

const (
	AnyRun     Claims = iota
	NoBackfill        // any but one of a backfill
	NoRun             // none, as there is no time for one: only ticks that need no run are settled
)

// NextTick returns the next tick to run, zero if there is none. An open tick comes first.
func (p *Policy) NextTick(r *record.Record) time.Time {
	if p.Ticks != nil && open(r) {
		return r.Run.Tick
	}
	return p.Unclaimed(r)
}

// Unclaimed returns the next tick that is neither settled nor claimed, zero if there is none.
func (p *Policy) Unclaimed(r *record.Record) time.Time {
	if p.Ticks == nil {
		return time.Time{}
	}
	return p.Ticks.Next(begunThrough(r))
}

// Gap returns how long it is from a tick to the next one. After the last tick of all it is longer than any lease.
func Gap(ticks Ticks, tick time.Time) time.Duration {
	if next := ticks.Next(tick); !next.IsZero() {
		return next.Sub(tick)
	}
	return time.Hour
}

// Over returns the last tick of a job that has no further one, and none due; zero: it is not over.
func (p *Policy) Over(r *record.Record, now time.Time) time.Time {
	if p.Ticks == nil || r.MayRun() || !p.NextTick(r).IsZero() {
		return time.Time{}
	}
	return p.Ticks.Last(instant.Later(now, r.Watermark))
}

// Begins returns the first tick of a job that has had none yet; zero: it has.
func Begins(ticks Ticks, now time.Time) time.Time {
	if ticks == nil || !ticks.Last(now).IsZero() {
		return time.Time{}
	}
	return ticks.Next(now)
}

// due returns what a write sets Due of the record to. Under another definition Due stays as
// it is: this replica cannot know the ticks of that definition.
func (p *Policy) due(r *record.Record) time.Time {
	if r.Definition.Spec != p.Spec {
		return r.Due
	}
	return p.Unclaimed(r)
}

// WakeSpan is how far the tick that a wake-up names may be from the store's time. A timer that
// names a tick in the far future is not believed.
const WakeSpan = time.Minute

// firstWatermark returns the watermark of a new job, which is created now. The job has no older tick due, except the tick of
// the wake-up in which it is created: the platform has started the program for that one.
func (p *Policy) firstWatermark(v View, wake time.Time) time.Time {
	from := v.Now
	if p.ClaimAhead && p.Ticks != nil {
		// The holder of an entry of that name which was deleted may have claimed a tick ahead, and may run it. A date of the service
		// may leave out up to a second.
		from = from.Add(p.Lead() + time.Second)
	}
	if v.Now.Sub(wake).Abs() <= WakeSpan && p.Ticks.Last(wake).Equal(wake) {
		from = instant.Earlier(from, wake.Add(-time.Nanosecond).UTC())
	}
	return notBefore(from, v.Before)
}

// Early returns how long it takes until the tick of a wake-up is due. It returns zero, or less, if that tick or an older one
// is due, is over, or is running. v.State is empty if the lease is not known.
func (p *Policy) Early(v View, wake time.Time) time.Duration {
	if v.runs() || v.Record.MayRun() && v.State == "" {
		return 0
	}
	next := p.NextTick(v.Record)
	if next.IsZero() || next.After(wake) || wake.Sub(v.Now) > WakeSpan {
		return 0
	}
	return next.Sub(v.Now)
}

// moment is by how much the timer of a tick may be early and still count as on time.
const moment = 5 * time.Second

// AlmostDue returns how long a wake-up that came a moment early for its tick has to wait, else zero. If an older tick is due
// as well, it waits too: its run would still be under way when the tick of the wake-up comes due, which would then be skipped.
func AlmostDue(ticks Ticks, now, wake time.Time) time.Duration {
	if early := wake.Sub(now); early > 0 && early <= moment && ticks.Last(wake).After(now) {
		return early
	}
	return 0
}

// New returns the record of a new job, which has nothing due. Its token is the service's time, so
// that it is larger than the tokens of an entry of that name which was deleted before. Runs by
// hand that were ordered before count as served, as that entry may have had them.
func (p *Policy) New(app, job string, v View, wake time.Time) record.Record {
	r := record.Record{App: app, Job: job, Created: v.Now, Watermark: p.firstWatermark(v, wake),
		Token: v.Now.UnixMicro(), Orders: record.Orders{Served: v.Now.UnixMicro()},
		Definition: record.Definition{Spec: p.Spec, Since: v.Since}, Run: record.Run{Status: record.Idle, Lease: record.Seconds(p.Lease)}}
	r.Due = p.due(&r)
	return r
}
