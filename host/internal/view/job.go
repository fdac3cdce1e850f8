// Package view says what is shown of a job, by its record and by what runs on
// this replica: the same for commands, page, API and log.
package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A Job is one job or singleton as commands, the page and the API show it.
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
	Progress *record.Progress       `json:"progress,omitempty"` // the last progress report of that run
	Last     *event.Outcome         `json:"last,omitempty"`     // the newest
	Next     time.Time              `json:"next,omitzero"`
	After    string                 `json:"after,omitempty"`  // the jobs that it follows
	Awaits   string                 `json:"awaits,omitempty"` // the jobs that it follows whose outcome Next waits for, once it has come
	Late     *record.Late           `json:"late,omitempty"`   // ticks since the last success that have not succeeded by Late.Finish
	Begins   time.Time              `json:"begins,omitzero"`  // the first tick of all, while it is to come
	Over     time.Time              `json:"over,omitzero"`    // the last tick of all, once it has its outcome
	Counts   map[event.Status]int64 `json:"counts,omitempty"`
	Error    string                 `json:"error,omitempty"` // why the record could not be read, or why nothing runs

	Pause    *Pause   `json:"pause,omitempty"`    // nil: no order or failure pauses it; the settings of replicas may
	Failures int64    `json:"failures,omitempty"` // runs that failed or stalled since the last success
	Differs  []string `json:"differs,omitempty"`  // where this program's settings are not those in force

	Backfill *Backfill `json:"backfill,omitempty"` // nil: none was ordered, or the orders are not known

	EveryReplica bool `json:"everyReplica,omitempty"` // each replica runs it: there is no record

	Shard *Shard `json:"shard,omitempty"` // nil: it is not one of several

	Skipped *Skipped `json:"skipped,omitempty"` // the ticks of the pause in force; nil: there is none, or they are not known

	Parts map[State]int `json:"parts,omitempty"` // in a list that shows the shards of a job as one: how many are in which state

	Here       bool      `json:"here,omitempty"`       // it runs on this replica
	Attempt    int       `json:"attempt,omitempty"`    // of the run under way
	Trouble    bool      `json:"trouble,omitempty"`    // an operator should look at it
	Checkpoint int64     `json:"checkpoint,omitempty"` // its length in bytes
	Ordered    int       `json:"ordered,omitzero"`     // manual runs that were ordered and have not begun
	Recent     []Outcome `json:"recent,omitzero"`      // the outcomes that the record keeps, newest first; nil: see Whole

	Foreign  bool            `json:"-"` // the schedule in force is another one
	Runner   string          `json:"-"` // who ran the run that is interrupted
	TimedOut bool            `json:"-"` // TimesOut has passed, and the run goes on
	Kept     []event.Outcome `json:"-"` // the outcomes as the record has them
}

// A Shard says which part of a job or singleton another one is, from zero.
type Shard struct {
	Index int    `json:"index"`
	Of    int    `json:"of"`
	Whole string `json:"whole"` // the name of that job or singleton
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
func Of(a *app.App, st desk.Status) Job { return All(a, []desk.Status{st}, nil, nil)[0] }

// All is [Of] for each of them, with what operators have ordered, and the settings that the
// replicas have published; nil: these are not known. It is enough to choose and to sort by;
// [Job.Whole] has the rest.
func All(a *app.App, all []desk.Status, orders *record.Control, fleet *Fleet) []Job {
	views, h := make([]Job, len(all)), a.Scheduler.Health() // which asks all jobs
	for i := range all {
		st, v := &all[i], &views[i]
		*v = of(a, st, h)
		v.Trouble = v.Tone() == format.Red || v.Error != "" && v.State != unknown ||
			h.Overrun[st.Name] != nil || slices.Contains(h.Stuck, st.Name)
		ended := orders != nil && v.heed(a, st, orders.Jobs[st.Name])
		v.meet(a, st, ended, fleet)
	}
	return views
}

func of(a *app.App, st *desk.Status, h soloist.Health) Job {
	v := Job{Name: st.Name, Kind: "job", Schedule: st.Schedule, State: Idle, Next: st.Next, After: st.After, Awaits: st.Awaits, Foreign: st.Foreign,
		Begins: st.Begins, Over: st.Over, Here: slices.Contains(h.Running, st.Name), Checkpoint: st.Checkpoint}
	if st.Singleton {
		v.Kind = "singleton"
	}
	if st.Shard.Count > 0 {
		v.Shard = &Shard{st.Shard.Index, st.Shard.Count, a.Whole(st.Name)}
	}
	if st.EveryReplica {
		v.EveryReplica, v.State = true, onEach
		if v.Here { // of the others nothing is known
			v.State = running
		}
		v.Error = format.Error(h.Broken[v.Name]) // of this process
		return v
	}
	if st.Err != nil {
		v.State, v.Error = broken, format.Error(st.Err)
		if !Reached(*st) {
			v.State = unknown
		}
		return v
	}
	r := &st.Record
	if v.Kept = r.History; r.MayRun() {
		v.Attempt = r.Run.Attempt
	}
	if st.Lease == "" {
		v.State = noRecord
		return v
	}
	if len(r.History) > 0 {
		v.Last = lastRun(r.History)
	}
	if st.Late.Count > 0 {
		v.Late = &record.Late{Since: format.UTC(st.Late.Since), Tick: format.UTC(st.Late.Tick), Count: st.Late.Count}
	}
	v.Backfill = backfillOf(st)
	v.Counts, v.Failures = r.Counts, max(r.Failures, 0)
	if st.Foreign {
		v.Differs = []string{foreignWords(st)}
	}
	switch {
	case r.MayRun():
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
	case v.Failures > 0:
		v.State = Failing
	case !st.Over.IsZero():
		v.State = over
	}
	v.Error = format.Error(st.Occupied)
	return v
}

// sign notes a sign of the run that is interrupted.
func (v *Job) sign(at time.Time) {
	if at.After(v.Lost) {
		v.Lost = format.UTC(at)
	}
}

// setTimeout says when the run has to be over.
func (v *Job) setTimeout(r *record.Record, limit time.Duration, now time.Time) {
	if limit == 0 || r.Run.Status == event.Stalled {
		return
	}
	begun := r.Run.Claimed
	if r.Run.Armed && r.Run.Tick.After(begun) {
		begun = r.Run.Tick
	}
	v.TimesOut = format.UTC(begun.Add(limit))
	v.TimedOut = now.After(v.TimesOut)
}

func runState(r *record.Record, lease store.LeaseState) State {
	switch {
	case r.Run.Status == event.Stalled:
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
func progress(r *record.Record) *record.Progress {
	if r.Run.Progress.At.IsZero() {
		return nil
	}
	return &record.Progress{Note: r.Run.Progress.Note, At: format.UTC(r.Run.Progress.At)}
}

// lastRun is the newest outcome of a tick that was run: a failure is news even if
// a tick was skipped under it. Where none was run it is the newest of all.
func lastRun(history []event.Outcome) *event.Outcome {
	for i := range history {
		if !history[i].Start.IsZero() {
			return &history[i]
		}
	}
	return &history[0]
}

// Reached reports whether the store answered. It gives the state of the lease
// with the record, even if that cannot be read. A job on each replica has no record to ask for.
func Reached(st desk.Status) bool { return !st.EveryReplica && (st.Err == nil || st.Lease != "") }

// An Outcome is a [event.Outcome] as a strip or a plot shows it.
type Outcome struct {
	At      time.Time    `json:"at,omitzero"`
	Status  event.Status `json:"status"`
	Seconds float64      `json:"seconds,omitzero"` // how long it ran; zero: it did not, or that is not known
	Count   int          `json:"count,omitzero"`   // of a range of ticks
	Reason  string       `json:"reason,omitempty"`
}

// Whole returns the job with its outcomes, as the API shows it.
func (v *Job) Whole() Job {
	whole := *v
	if v.Last != nil {
		last := format.PlainOutcome(*v.Last)
		whole.Last = &last
	}
	whole.Recent = make([]Outcome, 0, len(v.Kept))
	for i := range v.Kept {
		whole.Recent = append(whole.Recent, outcomeOf(&v.Kept[i]))
	}
	return whole
}

// Took is how many seconds the newest run took whose duration is known; zero: there is none.
func (v *Job) Took() float64 {
	for i := range v.Kept {
		if took := seconds(&v.Kept[i]); took > 0 {
			return took
		}
	}
	return 0
}

func outcomeOf(f *event.Outcome) Outcome {
	o := Outcome{At: format.UTC(format.Moment(f)), Status: f.Status, Reason: format.Brief(f.Reason), Seconds: seconds(f)}
	if !f.From.IsZero() {
		o.Count = f.Count
	}
	return o
}

func seconds(f *event.Outcome) float64 { return format.Ran(f).Round(time.Millisecond).Seconds() }

// heed shows what operators have ordered: the runs that have not begun, and the pause that is in
// force. It reports whether a pause that is over may have skipped the newest tick.
func (v *Job) heed(a *app.App, st *desk.Status, ordered record.JobControl) (ended bool) {
	v.Pause = pauseOf(st, ordered, a.Now())
	for _, r := range ordered.Requests {
		if st.Err == nil && !st.Record.Orders.IsServed(r.Seq) && r.Until.After(a.Now()) {
			v.Ordered++
		}
	}
	return pausedByOrder(st, ordered)
}

// meet shows what the settings of this program and of the replicas say. A replica that serves knows
// from its own settings whether it skips ticks as paused. A command runs in an environment of its own: it
// asks the settings that replicas have published or, where these are not known, the record what
// became of the last tick. A pause by an order is no difference to the settings, nor is one that has ended.
func (v *Job) meet(a *app.App, st *desk.Status, ended bool, fleet *Fleet) {
	job := a.Whole(v.Name) // all shards share their settings
	here, there := a.Paused(v.Name), recordPaused(&st.Record)
	on, published := fleet.paused(job)
	switch {
	case a.Serves:
		on = here
	case !published && st.Err == nil && st.Lease != "":
		on = there && !ended
		if here && !there {
			v.Differs = append(v.Differs, "this environment pauses it, but by the record its last tick was not skipped as paused")
		} else if on && !here && v.Pause == nil {
			v.Differs = append(v.Differs, "this environment does not pause it, but by the record its last tick was skipped as paused")
		}
	}
	if (on || v.Pause != nil) && slices.Contains([]State{Idle, Failing, noRecord, onEach, over}, v.State) {
		v.State = paused
	}
	v.Differs = append(v.Differs, fleet.differsIn(job)...)
	if v.State == interrupted {
		v.sign(fleet.seen(v.Runner, v.Claimed))
	}
}

// pausedByOrder reports whether the newest tick was skipped because of a pause that is
// over: a pause that an operator ordered, or the job's own pause after a resume.
func pausedByOrder(st *desk.Status, ordered record.JobControl) bool {
	if len(st.Record.History) == 0 {
		return false
	}
	tick := st.Record.History[0].Tick
	return !ordered.Resumed.At.IsZero() && !tick.After(ordered.Resumed.At) ||
		slices.ContainsFunc(ordered.Pauses, func(s record.Span) bool { return tick.After(s.From) && !tick.After(s.To) }) ||
		!ordered.Pause.Until.IsZero() && tick.After(ordered.Pause.At) && !tick.After(ordered.Pause.Until)
}

// A Pause was ordered by an operator, or begun by the job itself.
type Pause struct {
	By     string    `json:"by,omitempty"` // empty: the job itself, after failures in a row
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	Until  time.Time `json:"until,omitzero"` // when it ends by itself; zero: a resume ends it
}

// pauseOf is nil if no pause is in force.
func pauseOf(st *desk.Status, ordered record.JobControl, now time.Time) *Pause {
	if p := ordered.Pause; p.On(now) {
		return &Pause{By: p.By, Reason: p.Reason, At: format.UTC(p.At), Until: format.UTC(p.Until)}
	}
	if at := st.Record.Orders.Paused.At; st.Err == nil && !at.IsZero() && ordered.Resumed.Token < st.Record.Orders.Paused.Token {
		return &Pause{Reason: "failures in a row", At: format.UTC(at)}
	}
	return nil
}

// recordPaused reports whether the newest tick was skipped because of a pause.
func recordPaused(r *record.Record) bool {
	for _, f := range r.History {
		if f.Request == "" {
			return f.Status == event.Skipped && f.Reason == "paused" && f.Token == 0 // else its run said so
		}
	}
	return false
}
