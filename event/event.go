// Package event defines what a Scheduler reports about the work of its replica, as it happens. Logs,
// metrics, traces and alerts are made from these events alone.
//
// A program receives them with [Scheduler.Events]. The page [docs/events.md] has a table of the kinds
// and what each one carries.
//
// An outcome is reported once, by the replica that wrote it, and only after the store has
// confirmed the write: see [Ended] and [Settled]. Events are not stored, and those that a
// receiver is too slow for are dropped and counted: see [Dropped]. What has to be complete
// reads the record.
//
// [Scheduler.Events]: https://pkg.go.dev/github.com/soloist-go/soloist#Scheduler.Events
// [docs/events.md]: https://github.com/soloist-go/soloist/blob/main/docs/events.md
package event

import "time"

// An Event is one thing that has happened on one replica. Which fields are set depends on
// Kind; the fields of the first group are set where they are known.
//
// The events of one job come in the order of its record: Claimed before Started, Started
// before Ended, Ended before the next Claimed. There is one exception: while the outcome of a run
// that has lost its lease is still being written, a manual run may be claimed. Events of
// different jobs come in any order.
type Event struct {
	Kind    Kind
	Time    time.Time // when it happened, by the service's clock as far as it is known
	Replica string    // on which it happened
	Job     string    // empty: it concerns all jobs
	Run     Run       // zero: it concerns no run

	Outcome Outcome // Ended, Unrecorded, Settled

	// Ended, Unrecorded: how long the run took, from its first start. Renewed, Saved: the call.
	// StoreBack: the outage. Inherited: the silence.
	Took time.Duration

	// HoldOff, TryFailed: how long it waits; TryFailed: zero if no try follows.
	Wait time.Duration

	// Skewed: by how much this machine's clock is ahead, behind if negative, as far as that is proved;
	// zero: it is right again.
	Skew time.Duration

	Of     int    // TryFailed: the largest number of tries; Unhealthy: the failures that end the run
	Count  int    // Unhealthy: failures in a row so far; Dropped: events; Late: ticks
	Former Former // TookOver, Inherited: what is replaced

	// Heartbeat, Saved: the note. StoreTrouble: the job that met it first. LeftAlone: set if it may
	// end without a person. A Kind that has variants: which one, for people.
	Note string

	Stack  string // NoProgress, Panicked: goroutines
	Detail string // Ended, of a failure: tries, errors, panic and last lines; up to 16 KiB of text
	Err    error  // why; nil: the Kind needs no reason
}

// A Run says which run an event is about.
type Run struct {
	Tick    time.Time // zero: a singleton
	Request string    // of a manual run, whose time is Tick; of a run of a backfill, see [BackfillOf]
	Attempt int       // zero: not known
	Try     int       // zero: not about a try
	Token   int64     // the fencing token; zero: an EveryReplica job
}

// A Former is what another replica did or decided before.
type Former struct {
	Replica string    // TookOver: the replica that ran the job before
	Since   time.Time // TookOver: when its run began; Inherited: when the replaced definition did
}

// Late returns how long after its tick a run was claimed, or a try of it began. It is zero for a
// singleton, for a manual run, and if the event is neither Claimed nor Started.
func (e Event) Late() time.Duration {
	if e.Kind != Claimed && e.Kind != Started || e.Run.Request != "" || e.Run.Tick.IsZero() {
		return 0
	}
	return max(0, e.Time.Sub(e.Run.Tick))
}

// Kind says what has happened.
type Kind string

// What happens to a run, in this order. A run of an EveryReplica job has no record: it has Ended when
// it has returned.
const (
	Claimed     Kind = "claimed"      // the claim is in the record; nothing has run yet
	TookOver    Kind = "took-over"    // with Claimed: the last run was another replica's and had no end
	Started     Kind = "started"      // a try begins
	NotStarted  Kind = "not-started"  // with Started: lost, paused or cancelled before the call
	Heartbeat   Kind = "heartbeat"    // the run makes progress; at most one a second for each job
	Renewed     Kind = "renewed"      // the lease was renewed
	Saved       Kind = "saved"        // the run has saved a checkpoint
	TryFailed   Kind = "try-failed"   // perhaps another try follows
	Unhealthy   Kind = "unhealthy"    // a health check has failed
	Panicked    Kind = "panicked"     // the user's function has, in the try or the health check
	HandingOver Kind = "handing-over" // the record announces its end; a late heartbeat may undo it
	NoProgress  Kind = "stalled"      // no progress: the run gives up its lease
	TimedOut    Kind = "timed-out"    // the time-out has ended the context; the run may go on
	Lost        Kind = "lost"         // the lease cannot be trusted any more
	Overrun     Kind = "overrun"      // the run goes on though its context has ended
	Ended       Kind = "ended"        // the outcome is in the record; no Started: cancelled before
	Unrecorded  Kind = "unrecorded"   // the outcome is not known to be in the record; Ended may follow
	TakenBack   Kind = "taken-back"   // the claim was given up before the run; with Err: perhaps not
)

// What happens to ticks that no replica runs to their end, to a job, and to a replica.
const (
	Settled    Kind = "settled"     // the outcome of ticks that did not run to their end here
	Late       Kind = "late"        // Count ticks missed Late.Finish; Note: what became of the last
	NotClaimed Kind = "not-claimed" // a claim was not confirmed, so nothing runs
	HoldOff    Kind = "hold-off"    // it waits: the last holder may still trust its lease

	ScheduleChanged Kind = "schedule-changed" // another definition of the job is in force
	Inherited       Kind = "inherited"        // this definition replaces one that no replica has
	LeftAlone       Kind = "left-alone"       // the job cannot be run here, for the reason in Err
	TakenUp         Kind = "taken-up"         // the end of LeftAlone

	StoreTrouble Kind = "store-trouble" // a call to the store has failed; once for an outage
	StoreBack    Kind = "store-back"    // the end of StoreTrouble; with Note: no run is left to ask it
	Skewed       Kind = "skewed"        // this machine's clock is wrong, or right again
	Detail       Kind = "detail"        // a step that matters only to who follows the protocol
	Dropped      Kind = "dropped"       // Count events were dropped before it: their receiver is slow
)
