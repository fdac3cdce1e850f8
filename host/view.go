package host

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A view is one job or singleton as the page, the table of status and its JSON
// show it.
type view struct {
	Name     string                 `json:"job"`
	Kind     string                 `json:"kind"` // job or singleton
	Schedule string                 `json:"schedule,omitempty"`
	State    state                  `json:"state"`
	Replica  string                 `json:"replica,omitempty"`  // who runs it
	Tick     time.Time              `json:"tick,omitzero"`      // that runs; zero for a singleton
	Waits    time.Time              `json:"waits,omitzero"`     // about when another replica can take over a job that was unlocked
	Claimed  time.Time              `json:"claimed,omitzero"`   // when that run began
	Progress *store.Progress        `json:"progress,omitempty"` // what that run has told last
	Last     *store.Outcome         `json:"last,omitempty"`     // the newest
	Next     time.Time              `json:"next,omitzero"`
	Counts   map[store.Status]int64 `json:"counts,omitempty"`
	Error    string                 `json:"error,omitempty"` // why the record could not be read, or why nothing runs

	Failures int64    `json:"failures,omitempty"` // runs that failed or stalled since the last success
	Differs  []string `json:"differs,omitempty"`  // where this program's settings are not those in force

	EveryReplica bool `json:"everyReplica,omitempty"` // each replica runs it: there is no record

	Foreign bool `json:"-"` // the schedule in force is another one
}

// A state is what a job is in now; what it was in before is its last outcome.
type state string

const (
	idle        state = "idle"
	noRecord    state = "no record" // no replica has created it yet
	failing     state = "failing"   // it does not run, and has not succeeded since its last failure
	paused      state = "paused"    // serve: by this replica's settings; other commands: by the record
	running     state = "running"
	stopping    state = "stopping"     // it runs, and is about to be handed over
	stalled     state = "stalled"      // its run was given up, and is not known to have ended
	waiting     state = "waiting"      // its job was unlocked at once, and its last runner may not know it yet
	interrupted state = "interrupted"  // its lease has ended, as when its runner died, and nobody has settled it yet
	broken      state = "broken"       // its record cannot be read, so it is left alone
	unknownNow  state = "unknown"      // the store did not answer
	everywhere  state = "each replica" // runs it, and nobody records that
)

func (a *app) view(st soloist.JobStatus) view {
	v := view{Name: st.Name, Kind: "job", Schedule: st.Schedule, State: idle, Next: st.Next, Foreign: st.Foreign}
	if st.Singleton {
		v.Kind = "singleton"
	}
	if st.EveryReplica {
		v.EveryReplica, v.State = true, a.stateHere(v.Name)
		if err := a.sched.Health().Broken[v.Name]; err != nil { // of this process
			v.Error = line(err.Error())
		}
		return v
	}
	if st.Err != nil {
		v.State, v.Error = broken, line(st.Err.Error())
		if !reached(st) {
			v.State = unknownNow
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
	v.Counts, v.Failures, v.Differs = r.Counts, max(r.Failures, 0), a.differs(st)
	switch {
	case mayRun(r):
		if !st.Waits.IsZero() {
			v.State, v.Tick, v.Waits = waiting, r.Tick, st.Waits
			break
		}
		v.Tick, v.Claimed, v.Progress = r.Tick, r.Claimed, progress(r)
		if v.State = runState(r, st.Lease); v.State != interrupted {
			v.Replica = r.Replica
		}
	case a.pausedNow(st):
		v.State = paused
	case v.Failures > 0:
		v.State = failing
	}
	if st.Occupied != nil {
		v.Error = line(st.Occupied.Error())
	}
	return v
}

// mayRun reports whether a run is not known to have ended.
func mayRun(r *store.Record) bool {
	return r.Status == store.Running || r.Status == store.Stalled && r.Finished.IsZero()
}

func runState(r *store.Record, lease store.LeaseState) state {
	switch {
	case r.Status == store.Stalled:
		return stalled
	case !lease.Live():
		return interrupted
	case r.Stopping:
		return stopping
	}
	return running
}

// progress is nil where the run has told nothing.
func progress(r *store.Record) *store.Progress {
	if r.Progress.At.IsZero() {
		return nil
	}
	return &store.Progress{Note: r.Progress.Note, At: utc(r.Progress.At)}
}

// stateHere is the state of a job that runs on each replica: of the others
// nothing is known.
func (a *app) stateHere(name string) state {
	switch {
	case slices.Contains(a.sched.Health().Running, name):
		return running
	case a.serves && a.paused(name):
		return paused
	}
	return everywhere
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

func (a *app) views(all []soloist.JobStatus) []view {
	views := make([]view, len(all))
	for i, st := range all {
		views[i] = a.view(st)
	}
	return views
}

// reached reports whether the store answered. The state of the lease is told
// with the record, be it as it may. For a job on each replica nobody asks it.
func reached(st soloist.JobStatus) bool { return !st.EveryReplica && (st.Err == nil || st.Lease != "") }

// StateWords is the state, and who runs what since when.
func (v view) StateWords(now time.Time) string {
	text := string(v.State) + v.WaitWords(now)
	if v.Replica != "" {
		text += " on " + line(v.Replica)
	}
	if !v.Claimed.IsZero() {
		text += " since " + roughly(now.Sub(v.Claimed))
	}
	if told := v.ProgressWords(now); told != "" {
		text += " (" + told + ")"
	}
	return text + v.FailureWords()
}

// FailureWords completes the state: how often the job has failed in a row.
func (v view) FailureWords() string {
	switch {
	case v.Failures == 0:
		return ""
	case v.State == failing:
		return fmt.Sprintf(" x%d", v.Failures)
	}
	return fmt.Sprintf(", failing x%d", v.Failures)
}

// tone is the colour of the state in a table.
func (v view) tone() tone {
	switch {
	case v.Failures > 0, v.State == broken, v.State == stalled:
		return red
	case v.State == interrupted, v.State == waiting, v.State == unknownNow, v.State == noRecord:
		return yellow
	}
	return normal
}

// WaitWords tells until when no replica takes over a job that was unlocked.
func (v view) WaitWords(now time.Time) string {
	switch {
	case v.Waits.IsZero():
		return ""
	case v.Waits.After(now):
		return " after unlock until about " + stamp(v.Waits) + ", " + relative(v.Waits, now)
	}
	return " after unlock: no replica has taken over yet"
}

// ProgressWords is what the run has told last, and how long ago.
func (v view) ProgressWords(now time.Time) string {
	if v.Progress == nil {
		return ""
	}
	return cmp.Or(line(v.Progress.Note), "heartbeat") + ", " + relative(v.Progress.At, now)
}

// LastWords is the last tick, what became of it, and how long ago.
func (v view) LastWords(now time.Time) string {
	if v.Last == nil {
		return "-"
	}
	at := moment(v.Last)
	text := stamp(at) + " " + outcome(v.Last)
	if v.Last.Replica != "" {
		text += " on " + line(v.Last.Replica)
	}
	return text + ", " + relative(at, now)
}

// NextWords is the next tick, and how far it is.
func (v view) NextWords(now time.Time) string {
	if v.Next.IsZero() {
		return "-"
	}
	return stamp(v.Next) + " " + ahead(v.Next, now)
}

// CountWords tells how often each outcome came.
func (v view) CountWords() string { return tally(v.Counts) }
