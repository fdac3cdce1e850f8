// Package view says what is shown of a job, by its record and by what runs on
// this replica: the same for commands, page, API and log.
package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/store"
)

// A Job is one job or singleton as the page, the table of status and its JSON
// show it.
type Job struct {
	Name     string                 `json:"job"`
	Kind     string                 `json:"kind"` // job or singleton
	Schedule string                 `json:"schedule,omitempty"`
	State    State                  `json:"state"`
	Replica  string                 `json:"replica,omitempty"`  // who runs it
	Tick     time.Time              `json:"tick,omitzero"`      // that runs; zero for a singleton
	Waits    time.Time              `json:"waits,omitzero"`     // about when another replica can take over a job that was unlocked
	Claimed  time.Time              `json:"claimed,omitzero"`   // when that run began
	Lost     time.Time              `json:"lost,omitzero"`      // the last sign of that run, if it is interrupted
	TimesOut time.Time              `json:"timesOut,omitzero"`  // when the time-out of that run is over, as far as known
	Progress *store.Progress        `json:"progress,omitempty"` // the last progress report of that run
	Last     *store.Outcome         `json:"last,omitempty"`     // the newest
	Next     time.Time              `json:"next,omitzero"`
	After    string                 `json:"after,omitempty"`  // the jobs that it follows
	Awaits   string                 `json:"awaits,omitempty"` // the jobs of After whose outcome Next waits for, once it has come
	Late     *store.Late            `json:"late,omitempty"`   // ticks since the last success that have not succeeded by FinishBy
	Begins   time.Time              `json:"begins,omitzero"`  // the first tick of all, while it is to come
	Over     time.Time              `json:"over,omitzero"`    // the last tick of all, once it has its outcome
	Counts   map[store.Status]int64 `json:"counts,omitempty"`
	Error    string                 `json:"error,omitempty"` // why the record could not be read, or why nothing runs

	Pause    *Pause   `json:"pause,omitempty"`    // nil: no order or failure pauses it; the settings of replicas may
	Failures int64    `json:"failures,omitempty"` // runs that failed or stalled since the last success
	Differs  []string `json:"differs,omitempty"`  // where this program's settings are not those in force

	Backfill *Backfill `json:"backfill,omitempty"` // nil: none was ordered, or the orders are not known

	EveryReplica bool `json:"everyReplica,omitempty"` // each replica runs it: there is no record

	Shard *Shard `json:"shard,omitempty"` // nil: it is not one of several

	Foreign bool `json:"-"` // the schedule in force is another one

	Runner   string `json:"-"` // who ran the run that is interrupted
	TimedOut bool   `json:"-"` // TimesOut has passed, and the run goes on
}

// A Shard says which part of a job or singleton another one is, from zero.
type Shard struct {
	Index int `json:"index"`
	Of    int `json:"of"`
}

// String returns the words for it.
func (s *Shard) String() string { return fmt.Sprintf("shard %d of %d", s.Index, s.Of) }

// A State is what a job is in now; what it was in before is its last outcome.
type State string

const (
	Idle        State = "idle"
	noRecord    State = "no record" // no replica has created it yet
	Failing     State = "failing"   // it does not run, and has not succeeded since its last failure
	over        State = "over"      // there is no further tick
	paused      State = "paused"    // serve: by this replica's settings; other commands: by the record
	armed       State = "armed"     // its next tick is claimed already, and begins when it is due
	running     State = "running"
	stopping    State = "stopping"     // it runs, and is about to be handed over
	stalled     State = "stalled"      // its run was given up, and is not known to have ended
	Waiting     State = "waiting"      // its job was unlocked at once, and its last runner may not know it yet
	interrupted State = "interrupted"  // its lease has ended, as when its runner died, and no replica has settled it yet
	broken      State = "broken"       // its record cannot be read, so the job is skipped
	unknown     State = "unknown"      // the store did not answer
	onEach      State = "each replica" // every replica runs it, without a record
)

// Of is what is shown of a job, by its record and what runs here.
func Of(a *app.App, st soloist.JobStatus) Job { return of(a, st, a.Scheduler.Health()) }

func of(a *app.App, st soloist.JobStatus, h soloist.Health) Job {
	v := Job{Name: st.Name, Kind: "job", Schedule: st.Schedule, State: Idle, Next: st.Next, After: st.After, Awaits: st.Awaits, Foreign: st.Foreign,
		Begins: st.Begins, Over: st.Over}
	if st.Singleton {
		v.Kind = "singleton"
	}
	if st.Shards > 0 {
		v.Shard = &Shard{st.Shard, st.Shards}
	}
	if st.EveryReplica {
		v.EveryReplica, v.State = true, stateHere(a, v.Name, h)
		if err := h.Broken[v.Name]; err != nil { // of this process
			v.Error = format.Line(err.Error())
		}
		return v
	}
	if st.Err != nil {
		v.State, v.Error = broken, format.Line(st.Err.Error())
		if !Reached(st) {
			v.State = unknown
		}
		return v
	}
	if st.Lease == "" {
		v.State = noRecord
		return v
	}
	r := &st.Record
	if len(r.History) > 0 {
		v.Last = lastRun(r.History)
	}
	if st.Late.Count > 0 {
		v.Late = &store.Late{Since: format.UTC(st.Late.Since), Tick: format.UTC(st.Late.Tick), Count: st.Late.Count}
	}
	v.Backfill = backfillOf(&st)
	v.Counts, v.Failures, v.Differs = r.Counts, max(r.Failures, 0), differsOf(a, st)
	switch {
	case MayRun(r):
		if !st.Waits.IsZero() {
			v.State, v.Tick, v.Waits = Waiting, r.Run.Tick, st.Waits
			break
		}
		v.Tick, v.Claimed, v.Progress = r.Run.Tick, r.Run.Claimed, progress(r)
		if v.State = runState(r, st.Lease); v.State != interrupted {
			v.Replica = r.Run.Replica
			v.setTimeout(r, a.LimitOf(st.Name), a.Now())
		} else {
			v.Runner, v.Lost = r.Run.Replica, v.Claimed
			v.sign(r.Run.Progress.At)
		}
	case pausedNow(a, st):
		v.State = paused
	case v.Failures > 0:
		v.State = Failing
	case !st.Over.IsZero():
		v.State = over
	}
	if st.Occupied != nil {
		v.Error = format.Line(st.Occupied.Error())
	}
	return v
}

// sign notes a sign of the run that is interrupted.
func (v *Job) sign(at time.Time) {
	if at.After(v.Lost) {
		v.Lost = format.UTC(at)
	}
}

// setTimeout says when the run has to be over.
func (v *Job) setTimeout(r *store.Record, limit time.Duration, now time.Time) {
	if limit == 0 || r.Run.Status == store.Stalled {
		return
	}
	begun := r.Run.Claimed
	if r.Run.Armed && r.Run.Tick.After(begun) {
		begun = r.Run.Tick
	}
	v.TimesOut = format.UTC(begun.Add(limit))
	v.TimedOut = now.After(v.TimesOut)
}

// MayRun reports whether a run is not known to have ended.
func MayRun(r *store.Record) bool {
	return r.Run.Status == store.Running || r.Run.Status == store.Stalled && r.Run.Finished.IsZero()
}

func runState(r *store.Record, lease store.LeaseState) State {
	switch {
	case r.Run.Status == store.Stalled:
		return stalled
	case !lease.Live():
		return interrupted
	case r.Run.Stopping:
		return stopping
	case r.Run.Armed && r.Run.Tick.After(time.Now()):
		return armed
	}
	return running
}

// progress is nil if the run has reported nothing.
func progress(r *store.Record) *store.Progress {
	if r.Run.Progress.At.IsZero() {
		return nil
	}
	return &store.Progress{Note: r.Run.Progress.Note, At: format.UTC(r.Run.Progress.At)}
}

// stateHere is the state of a job that runs on each replica: of the others
// nothing is known.
func stateHere(a *app.App, name string, h soloist.Health) State {
	switch {
	case slices.Contains(h.Running, name):
		return running
	case a.Serves && a.Paused(name):
		return paused
	}
	return onEach
}

// lastRun is the newest outcome of a tick that was run: a failure is news even if
// a tick was skipped under it. Where none was run it is the newest of all.
func lastRun(history []store.Outcome) *store.Outcome {
	for i := range history {
		if !history[i].Start.IsZero() {
			return &history[i]
		}
	}
	return &history[0]
}

// All is [Of] for each of them.
func All(a *app.App, all []soloist.JobStatus) []Job {
	views, h := make([]Job, len(all)), a.Scheduler.Health() // which asks all jobs
	for i, st := range all {
		views[i] = of(a, st, h)
	}
	return views
}

// Reached reports whether the store answered. It gives the state of the lease
// with the record, even if that cannot be read. A job on each replica has no record to ask for.
func Reached(st soloist.JobStatus) bool { return !st.EveryReplica && (st.Err == nil || st.Lease != "") }

// StateWords is the state, and who runs what since when.
func (v Job) StateWords(now time.Time) string {
	text := string(v.State) + v.WaitWords(now)
	if v.State == paused {
		text += v.PauseWords(now)
	}
	if v.Replica != "" {
		text += " on " + format.Line(v.Replica)
	}
	if since := cmp.Or(v.Lost, v.Claimed); !since.IsZero() {
		text += " since " + format.Roughly(now.Sub(since))
	}
	if v.TimedOut {
		text += ", over its time-out by " + format.Roughly(now.Sub(v.TimesOut))
	}
	if told := v.ProgressWords(now); told != "" {
		text += " (" + told + ")"
	}
	if v.State != paused {
		text += v.PauseWords(now)
	}
	return text + v.FailureWords() + v.LateWords() + v.boundWords()
}

// boundWords complete the state of a job that has no tick now, since it has not begun or is over.
func (v Job) boundWords() string {
	switch {
	case !v.Begins.IsZero():
		return ", begins " + format.Stamp(v.Begins)
	case v.Over.IsZero():
		return ""
	case v.State == over:
		return " since " + format.Stamp(v.Over)
	}
	return ", over since " + format.Stamp(v.Over)
}

// FailureWords completes the state: how often the job has failed in a row.
func (v Job) FailureWords() string {
	switch {
	case v.Failures == 0:
		return ""
	case v.State == Failing:
		return fmt.Sprintf(" x%d", v.Failures)
	}
	return fmt.Sprintf(", failing x%d", v.Failures)
}

// Tone is the colour of the state in a table.
func (v Job) Tone() format.Tone {
	switch {
	case v.TimedOut, v.Failures > 0, v.Late != nil, v.State == broken, v.State == stalled:
		return format.Red
	case v.State == interrupted, v.State == Waiting, v.State == unknown, v.State == noRecord:
		return format.Yellow
	}
	return format.Normal
}

// WaitWords says until when no replica takes over a job that was unlocked.
func (v Job) WaitWords(now time.Time) string {
	switch {
	case v.Waits.IsZero():
		return ""
	case v.Waits.After(now):
		return " after unlock until about " + format.Stamp(v.Waits) + ", " + format.Relative(v.Waits, now)
	}
	return " after unlock: no replica has taken over yet"
}

// ProgressWords is the last progress report of the run, and how old it is.
func (v Job) ProgressWords(now time.Time) string {
	if v.Progress == nil {
		return ""
	}
	return cmp.Or(format.Line(v.Progress.Note), "heartbeat") + ", " + format.Relative(v.Progress.At, now)
}

// LastWords is the last tick, what became of it, and how long ago.
func (v Job) LastWords(now time.Time) string {
	if v.Last == nil {
		return "-"
	}
	at := format.Moment(v.Last)
	text := format.Stamp(at) + " " + format.Outcome(v.Last)
	if v.Last.Replica != "" {
		text += " on " + format.Line(v.Last.Replica)
	}
	return text + ", " + format.Relative(at, now)
}

// NextWords is the next tick, and how far it is.
func (v Job) NextWords(now time.Time) string {
	if v.Next.IsZero() {
		return "-"
	}
	if v.Awaits != "" {
		return format.Stamp(v.Next) + " " + AwaitWords(v.Awaits)
	}
	return format.Stamp(v.Next) + " " + format.Ahead(v.Next, now)
}

// CountWords says how often each outcome came.
func (v Job) CountWords() string { return format.Tally(v.Counts) }

// Recorded reports whether the failures of the job are known.
func (v *Job) Recorded() bool { return !v.EveryReplica && v.State != broken && v.State != unknown }

// LateWords completes the state: since when the job is late, and how many ticks have not succeeded.
func (v Job) LateWords() string {
	if v.Late == nil {
		return ""
	}
	words := ", late since " + format.Stamp(v.Late.Since)
	if v.Late.Count > 1 {
		words += fmt.Sprintf(" with %d ticks", v.Late.Count)
	}
	return words
}
