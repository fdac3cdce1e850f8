package soloist

import (
	"context"
	"time"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/plan"
)

// A Job is done once at each tick of its schedule, by one replica of all that
// register it.
type Job struct {
	// What is done, and when.
	//
	// Name is unique in the program: a lower-case letter, then up to 62
	// lower-case letters, digits and hyphens.
	Name string

	// Do does the work of one tick. Its context ends when the run has to end;
	// [context.Cause] then says why: [ErrLost], [ErrStalled], [ErrTimeout], [ErrCancelled],
	// [ErrReplaced] or [ErrStopped]. A panic counts as a failure.
	Do func(ctx context.Context, run *Run) error

	// Schedule is cron text of five fields, or six with seconds first; a
	// descriptor such as @hourly; or "@every 5m", anchored to the Unix epoch.
	// "L", "15W", "friL" and "fri#3" are days of a month. Several texts with
	// " ; " between them are their union. docs/schedules.md explains them. Empty, or "@manual": the job
	// has no tick, and runs when that is ordered.
	Schedule string

	// TimeZone is the IANA zone that Schedule is meant in. Empty: UTC.
	TimeZone string

	// Days limits Schedule to a span of time and by calendars.
	Days Days

	// After gives the job the ticks of others, in place of Schedule, TimeZone and Days.
	After After

	// Paused makes this replica skip the ticks that come due: it records as skipped each tick
	// that it is the first to reach, and no other replica then runs that tick. Set it on all
	// replicas, or some ticks are run and others skipped.
	Paused bool

	// If the tick is late, or the job still runs.
	//
	// Late says how late a tick may be, and what follows.
	Late Late

	// Overlap says what becomes of ticks that come due while the job runs. Zero: SkipOverlap, or a
	// queue of all under RunAll.
	Overlap OverlapPolicy

	// ClaimAhead writes the claim of a tick up to two seconds before the tick, so that the run
	// starts at the tick without a call to the store. If the runner dies in these seconds, that
	// counts as a death in the run: the tick is abandoned, or run again under Rerun. A stop, a
	// pause or a manual run in these seconds takes the claim back. Zero: the lease is acquired
	// before the tick and the claim is written at the tick, which costs one call. Not for a job
	// of EveryReplica. [Scheduler.RunDue] always claims at the tick. The ticks of a new job count
	// from three seconds after the creation of its entry at most, not at once: one before may have been
	// claimed in an entry of that name which was deleted.
	ClaimAhead bool

	// If the run fails, or its runner dies.
	//
	// Retry says what follows a failure. Zero: nothing; the next tick is run.
	Retry Retry

	// Interrupted says what becomes of a tick whose runner died. Zero: Abandon.
	Interrupted InterruptedPolicy

	// How long it may take.
	//
	// Timeout ends the context of a try after so long. Zero: never.
	Timeout time.Duration

	// HeartbeatTimeout is the longest time without [Run.Heartbeat] or [Run.Save]. After
	// it the try has stalled: its context ends and its lease is given up, so
	// that another replica can have the job. At least one second. Zero: no
	// limit.
	HeartbeatTimeout time.Duration

	// HealthCheck asks a run whether it still does its work. Zero: it is not asked.
	HealthCheck HealthCheck

	// Lease is how long a dead runner keeps other replicas from the job, in whole seconds. The
	// store has its limits: 15 to 60 s on Azure. From 1 s on, a shorter one is kept by beats, at a
	// price: see docs/leases.md. Zero: 30 s.
	Lease time.Duration

	// Where it runs, how many at a time, and what a run keeps.
	//
	// Group is the group of jobs whose runs take place at most so many at a time, over all jobs and
	// replicas of the app, as [Scheduler.Groups] says. A tick waits for a slot of the group before it
	// is claimed; a tick that gets none within Late.Start is skipped. A run that loses its slot
	// ends as if it had lost its lease. Empty: none. Not for a job of EveryReplica, and not with
	// ClaimAhead.
	Group string

	// Shards splits the work of each tick. With n shards each tick has n claims: one for each
	// [Run.Shard] from 0 to n-1, spread over the replicas that are up. Each shard is a job of its
	// own, named after this one: with its own lease, record, token, history and orders; see
	// [ShardNames]. At most 256. After a change of the number, the new shards count from the
	// start of the replica that has them; shards that a new program does not have any more run
	// as long as a replica of the old program is up. Zero: the work is not split. Not for a job
	// of EveryReplica.
	Shards int

	// EveryReplica runs the job on each replica instead of one, as for a cache that each of
	// them keeps. Such a job needs no lease and leaves no record, so its ticks have no
	// outcome: a tick that comes due while the replica is down is not made up for, nor a tick
	// that comes due while the job runs here, except by Overlap. Under [Scheduler.RunDue] the
	// process that is woken up runs it: the tick that the wake-up names, else the newest tick of
	// the last minute, once in each process.
	EveryReplica bool

	// MaxCheckpoint is the largest checkpoint that [Run.Save] accepts, in bytes of JSON; at
	// most [store.MaxCheckpoint]. Zero: 64 KiB.
	MaxCheckpoint int
}

// Days limits when the ticks of a schedule exist. Zero: it is not limited.
type Days struct {
	// From and Until bound the schedule: a tick before From does not exist, nor does one at Until or
	// later. A job whose last tick is over does nothing any more and is not broken; its status says
	// so. Zero: there is no such bound.
	From, Until time.Time

	// Except are days without a tick: a tick on a day of one of these calendars does not exist. The
	// day of a tick is the date that the clock of TimeZone shows at it. At most 100. Empty: none.
	Except []Calendar

	// Only are the days that may have a tick: a tick on a day of none of these calendars does not
	// exist, nor does one on a day of Except. At most 100. Empty: each day may have one.
	Only []Calendar

	// Shift moves a tick that Except or Only would leave out. Zero: it does not exist.
	Shift Shift
}

// After names the jobs that a job follows. Zero: it follows none, and Schedule gives the ticks.
type After struct {
	// Jobs are the names of the jobs, which must have the ticks of one schedule. Their ticks are
	// the ticks of this job. A tick is due once the runs of all of them for that tick have
	// succeeded. If one of them ends otherwise, this job's tick is skipped; if its outcome has left
	// its record before this job could read it, the tick is missed. The times of Late.Start and
	// Late.Missed count from the last of the outcomes in place of the tick. Manual runs of those
	// jobs start nothing here. A job with TimeZone, ClaimAhead or EveryReplica cannot follow.
	Jobs []string

	// Any makes a tick due whatever the outcome of the runs that it waited for, also if they
	// were skipped or missed. Zero: they have to succeed.
	Any bool
}

// Late says how late a tick may be, and what follows. Zero: a run may start until the next tick is
// due, an older tick is missed, and none is reported as late.
type Late struct {
	// Start is the starting deadline: how late a run may start, counted from its tick. An older tick is
	// recorded as missed, or as abandoned if its runner died: a further attempt under Rerun
	// has the same deadline. Zero: until the next tick is due; further attempts then have no
	// deadline.
	//
	// This deadline is checked before the claim is written. Up to four calls to the store,
	// of a sixth of Lease each, may pass from then until the run starts, and as long a wait
	// for a Logger that blocks.
	Start time.Duration

	// Finish is how long after its tick a run has to have succeeded. A late tick is reported
	// once, when that time is over: by an event of the kind Late, in the log, and by JobStatus.Late,
	// whether it failed, was missed or abandoned, came due under another run, still runs, or was never
	// begun; if no replica is up then, by the first replica that starts. A tick that was skipped by a
	// pause or by [Skip], or that an operator has cancelled, is not late. It changes nothing
	// about what is run. It may be longer than the period of Schedule. A job of EveryReplica has no
	// record to judge by. Zero: no tick is late.
	Finish time.Duration

	// Missed says what becomes of ticks that no replica ran in time. Zero: RunLatest.
	Missed MissedPolicy
}

// policy returns all of it in the form that decisions take.
func (l Late) policy() plan.Late {
	return plan.Late{Start: l.Start, Finish: l.Finish, Missed: plan.Missed(l.Missed)}
}

// A Calendar is a set of days; package calendar makes them. Calendars are asked once, when the program
// starts.
type Calendar = calendar.Calendar

// A Shift says what becomes of a tick on a day that [Days.Except] or [Days.Only] excludes.
type Shift string

const (
	// ShiftNext moves the tick to the next day that is not excluded, with the time of day that the
	// clock of the zone shows at it, by at most 31 days. If no day is that near, the tick does not
	// exist. It is moved once, and two ticks that meet are one. From and Until count after that.
	ShiftNext Shift = "next"

	// ShiftPrevious moves the tick to the last day before that is not excluded.
	ShiftPrevious Shift = "previous"
)

// A HealthCheck ends a run that has ceased to do its work. Without one, a leader whose task hangs
// would go on renewing its lease, and no other replica could replace it.
type HealthCheck struct {
	// Check is called while Do runs, and returns whether Do still does its work. An error, a
	// panic, or no answer until the next call is due, is a failure. Its context ends with the
	// run, which is not over before Check has returned. Nil: it is not called.
	Check func(ctx context.Context) error

	// Interval is the time between two calls of Check. Zero: 10 s.
	Interval time.Duration

	// FailureThreshold is how many failures in a row end the run as [Job.HeartbeatTimeout]
	// does. Zero: 3.
	FailureThreshold int
}

// Retry says what follows a failure: further calls for the same tick and, in the end, a pause.
type Retry struct {
	// MaxTries is how often at most the replica that has claimed a tick calls Do for it, all
	// under the same lease, until a call succeeds. Zero: once.
	MaxTries int

	// Backoff is the pause before the second try. It doubles with each further try, up to
	// five minutes; a longer Backoff counts as five minutes. Each pause is shortened at
	// random by up to a half. Zero: 10 s.
	Backoff time.Duration

	// PauseAfter is how many failures in a row, failed or stalled ticks, pause the job by itself,
	// until an operator resumes it; see [Scheduler.Order]. Zero: it goes on whatever happens. Not
	// for a job of EveryReplica.
	PauseAfter int
}

// A MissedPolicy says what becomes of ticks that came due while no replica ran them.
type MissedPolicy string

const (
	// RunLatest runs the newest tick if it is within [Late.Start]. Older ticks are
	// missed; ticks that come due under a running job are skipped. A further attempt under
	// Rerun skips only the ticks that come due after it has begun.
	RunLatest MissedPolicy = ""

	// RunAll runs each tick within [Late.Start] in order, also those that came due
	// under a running job: the newest 100 of them, the others are missed. Its
	// zero Late.Start is no limit.
	RunAll MissedPolicy = "all"

	// SkipMissed runs a tick within [Late.Start] too, but its zero Late.Start is
	// one lease, and at least the shortest lease that the store takes: a tick that is not run on time
	// is not run at all.
	SkipMissed MissedPolicy = "skip"
)

// An OverlapPolicy says what becomes of ticks that come due while the job runs, on whichever
// replica. No two runs of a job take place at the same time under any of them. How late the tick may
// start that waits for the end of a run is what [Late.Start] says, as for all ticks. Runs by
// hand are never replaced: under QueueOne and Replace the newest tick waits for them.
type OverlapPolicy string

const (
	// SkipOverlap skips them. Under RunAll they wait instead, all of them: that is the
	// queue of all ticks, and neither QueueOne nor Replace is possible with it.
	SkipOverlap OverlapPolicy = ""

	// QueueOne has the newest of them wait. It is run once the run has ended, however that
	// ended; the older ones are skipped.
	QueueOne OverlapPolicy = "queue-one"

	// Replace ends the context of the run with [ErrReplaced] when a newer tick is due, which is run
	// once Do has returned. The outcome of the run that was replaced is [event.Cancelled], unless
	// Do returns nil: it is tried no more, and it is no failure. Nor is it run again under Rerun if
	// its runner dies: then the newer tick is run instead. A Do that ignores the end of its context
	// delays the newer tick, as it delays a stop.
	Replace OverlapPolicy = "replace"
)

// An InterruptedPolicy says what becomes of a tick whose runner died while it ran.
type InterruptedPolicy string

const (
	// Abandon records the tick as abandoned: it is started at most once. You
	// can opt into a repetition; you cannot undo a second payroll.
	Abandon InterruptedPolicy = ""

	// Rerun gives the same tick to another replica as soon as the lease of the
	// dead one has lapsed, as the next attempt. After five attempts that ended
	// by the death of their runner, by a stall or by the loss of the lease, the
	// tick is given up: a tick that kills its runner would kill every replica in
	// turn. Stops and step-downs do not count, so a long run survives any
	// number of deploys. If a call of RunDue runs out of time, that does count,
	// since the next call has no more time. Past [Late.Start] the tick is
	// abandoned. Without one further attempts have no deadline.
	Rerun InterruptedPolicy = "rerun"
)

// Work is a [Job] or a [Singleton].
type Work interface{ work() }

func (Job) work()       {}
func (Singleton) work() {}
