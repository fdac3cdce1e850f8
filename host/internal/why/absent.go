package why

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/presence"
)

// until says how long a run went on.
func until(o *event.Outcome) string {
	switch {
	case o.Status == event.Running:
		return "from " + format.Stamp(o.Start) + " on, and is under way still"
	case o.End.IsZero():
		return "from " + format.Stamp(o.Start) + " until its runner died"
	}
	return "until " + format.Stamp(o.End)
}

// runs returns the runs of the job, the newest first. One that is under way has the status of one that runs.
func (f *Facts) runs() (all []event.Outcome) {
	if r := &f.Status.Record.Run; live(&f.Status) {
		all = append(all, event.Outcome{Status: event.Running, Replica: r.Replica, Request: r.Request, Tick: r.Tick, Start: r.Claimed})
	}
	for _, l := range f.Lines {
		if !l.Start.IsZero() {
			all = append(all, l.Outcome)
		}
	}
	return all
}

// runAt returns the run that an instant lies in, nil if none is known. One whose runner died counts until the next one began.
func (f *Facts) runAt(at time.Time) *event.Outcome {
	for _, r := range f.runs() {
		switch {
		case r.Start.After(at):
		case !r.Tick.Equal(at) && (r.End.IsZero() || !r.End.Before(at)):
			return &r
		case !r.End.IsZero():
			return nil // it had ended by then, and older ones before it
		}
	}
	return nil
}

// next returns the first run that was claimed after an instant, nil if none was.
func (f *Facts) next(at time.Time) (first *event.Outcome) {
	for _, r := range f.runs() {
		if r.Start.After(at) && (first == nil || r.Start.Before(first.Start)) {
			first = &r
		}
	}
	return first
}

// absent says why no replica claimed a tick. what is the begin of the sentence.
func (a *asking) absent(tick time.Time, what string) {
	next, under := a.next(tick), a.runAt(tick)
	if next != nil {
		a.know("the next run of it began at %s on %s", format.Stamp(next.Start), next.Replica)
	}
	if under != nil && (under.Status == event.Running || !under.End.IsZero()) {
		a.overlap(what+": ", under)
		return
	}
	up, outage, listed := a.upAt(tick), a.outageAt(tick), a.listed(tick, next)
	switch {
	case !listed && len(up) == 0 && outage == nil && under == nil:
		a.say(Unclaimed, "%s", what)
		a.open("whether a replica was up: the list of replicas tells nothing of that time any more, or is not kept")
	case outage != nil && (len(up) == 0 || slices.Contains(up, a.Here.Replica)):
		a.outOfReach(what+": the storage was", outage)
		for _, name := range up {
			if name != a.Here.Replica {
				a.open("whether %s reached the storage: its log tells", name)
			}
		}
	case under != nil:
		a.diedUnder(tick, under, what, len(up) == 0 && listed)
	case len(up) == 0 && listed:
		a.down(tick, what)
	default:
		a.say(Unclaimed, "%s, though %s", what, areUp(up, "was up", "were up"))
		a.open("why: the log of %s tells, such as a storage out of reach, or a stop", format.Names(up))
	}
}

// overlap says which run took the time of a tick.
func (a *asking) overlap(what string, under *event.Outcome) {
	a.say(Overlap, "%sthe run before%s, on %s, took %s", what, ofRun(under.Tick, under.Request), under.Replica, until(under))
}

// outOfReach says since when, or from when to when, this replica did not reach the storage.
func (a *asking) outOfReach(what string, o *Outage) {
	words := "since " + format.Stamp(o.From)
	if !o.To.IsZero() {
		words = "from " + format.Stamp(o.From) + " to " + format.Stamp(o.To)
	}
	a.say(OutOfReach, "%s out of reach for %s %s", what, a.Here.Replica, words)
}

// diedUnder says that the last run before a tick had no end. If no other replica is known to have been up, it says that, too.
func (a *asking) diedUnder(at time.Time, under *event.Outcome, what string, alone bool) {
	what += ": the run before" + ofRun(under.Tick, under.Request) + ", on " + under.Replica + ", had no end, since its runner died"
	if !alone {
		a.say(Died, "%s, and no other may begin before the lease has ended", what)
		a.open("how long its runner lived")
		return
	}
	a.down(at, what)
	if r, known := a.replicas()[under.Replica]; !known || !r.SilentAt(at) {
		a.Cause = Died // it may have run still
	}
}

// listed reports whether the list of replicas has those that were up at an instant. A replica that is set up to write nothing
// there is known by its runs.
func (a *asking) listed(at time.Time, next *event.Outcome) bool {
	if next == nil || !a.Replicas.Covers(at) {
		return a.Replicas.Covers(at)
	}
	_, ok := a.replicas()[next.Replica]
	if ok = ok || !a.Replicas.Covers(next.Start); !ok {
		a.know("%s is not in the list of replicas", next.Replica)
	}
	return ok
}

// areUp says of replicas what one is or was, or several.
func areUp(names []string, one, several string) string {
	if len(names) == 1 {
		several = one
	}
	return format.Names(names) + " " + several
}

// replicas are those of the list, by their names.
func (f *Facts) replicas() map[string]presence.Replica {
	if f.Replicas.Doc == nil {
		return nil
	}
	return f.Replicas.Doc.Replicas
}

// upAt returns the replicas that were surely up at an instant: that started before it, and have given a sign since. One that a
// platform wakes up is not up between its passes, nor does one that is about to stop claim anything.
func (f *Facts) upAt(at time.Time) (names []string) {
	for name, r := range f.replicas() {
		lives := !r.Seen.Before(at) || name == f.Here.Replica || f.ranAfter(name, at)
		if !r.Woken && !r.Started.After(at) && lives && !isLeaving(r, at) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ranAfter reports whether a replica of the list gave a sign in a run of the job after an instant. A sign that came long after it
// has written is one of a later process of the name, and so may one be that came a moment ago.
func (f *Facts) ranAfter(name string, at time.Time) bool {
	const moment = 5 * time.Second
	listed := f.replicas()[name]
	isSign := func(t time.Time) bool { return t.After(at) && !listed.SilentAt(t) && f.Now.Sub(t) > moment }
	return slices.ContainsFunc(f.runs(), func(r event.Outcome) bool {
		return r.Replica == name && (isSign(r.Start) || isSign(r.End))
	})
}

// upNow returns the replicas that are up.
func (f *Facts) upNow() (names []string) {
	for name, r := range f.replicas() {
		if name == f.Here.Replica || f.Replicas.State(r) == presence.Up {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// leaving is how long before its end a replica may have claimed nothing new any more: the grace that most platforms give.
const leaving = 30 * time.Second

// isLeaving reports whether a replica may have been about to stop at an instant, or had stopped.
func isLeaving(r presence.Replica, at time.Time) bool {
	return !r.Left.IsZero() && r.Left.Sub(at) < leaving
}

// outageAt returns the outage of this replica that an instant lies in, nil if it knows of none. The tick is claimed a moment
// after it, and an outage is noticed by the first call that fails.
func (f *Facts) outageAt(at time.Time) *Outage {
	const moment = 10 * time.Second
	for i := range f.Here.Outages {
		if o := &f.Here.Outages[i]; !o.From.After(at.Add(moment)) && (o.To.IsZero() || o.To.After(at)) {
			return o
		}
	}
	return nil
}

// A sign is something that a replica did, by which it is known that it was up.
type sign struct {
	at     time.Time
	what   string
	begins bool // it was up from then on
}

// signs are those that are known when an instant is asked about, in no order.
func (f *Facts) signs(at time.Time) (all []sign) {
	for _, r := range f.runs() {
		all = append(all, sign{r.Start, r.Replica + " began a run of it", true}, sign{r.End, r.Replica + " ended a run of it", false})
	}
	for _, name := range slices.Sorted(maps.Keys(f.replicas())) {
		r := f.replicas()[name]
		all = append(all, sign{r.Started, name + " started", true}, sign{r.Seen, name + " last said that it was up", false},
			sign{r.Left, name + " had stopped", false})
		if r.Left.After(at) && isLeaving(r, at) && !r.Started.After(at) {
			all = append(all, sign{at, name + " was stopping", false})
		}
	}
	return all
}

// down says that no replica was up at an instant, and from when to when.
func (a *asking) down(at time.Time, what string) {
	was := "was up"
	switch doubt := a.doubtDown(at); {
	case a.onlyWoken():
		was = "is known to have been woken up by its platform"
	case doubt:
		was = "is known to have been up"
	}
	var last, first sign
	for _, s := range a.signs(at) {
		switch {
		case s.at.IsZero():
		case !s.at.After(at):
			if !s.at.Before(last.at) {
				last = s
			}
		case s.begins && (first.at.IsZero() || s.at.Before(first.at)):
			first = s
		}
	}
	what += ": no replica " + was
	from, to := format.Stamp(last.at), format.Stamp(first.at)
	switch { // each replica of the list has started, before or after
	case last.at.IsZero():
		a.say(Down, "%s until %s, when %s", what, to, first.what)
		a.open("since when none was up")
	case first.at.IsZero():
		a.say(Down, "%s from %s on, when %s", what, from, last.what)
	default:
		a.say(Down, "%s from %s, when %s, to %s, when %s", what, from, last.what, to, first.what)
	}
}

// onlyWoken reports whether all replicas of the list are up for their ticks alone, as in Functions.
func (f *Facts) onlyWoken() (woken bool) {
	for _, r := range f.replicas() {
		if woken = r.Woken; !woken {
			return false
		}
	}
	return woken
}

// doubtDown notes what the list of replicas leaves open about an instant at which none was up, and reports whether that is anything.
func (a *asking) doubtDown(at time.Time) bool {
	known := len(a.NotKnown)
	for _, name := range slices.Sorted(maps.Keys(a.replicas())) {
		r := a.replicas()[name]
		ranBefore := func(run event.Outcome) bool { return run.Replica == name && run.Start.Before(r.Started) }
		switch {
		case r.Woken:
		case r.Left.After(at) && !r.Started.After(at):
			a.open("when %s, which had stopped at %s, began to stop", name, format.Stamp(r.Left))
		case r.Left.IsZero() && r.Seen.Before(at):
			a.open("whether %s was up after %s, and could not reach the storage", name, format.Stamp(r.Seen))
		case r.Started.After(at) && slices.ContainsFunc(a.runs(), ranBefore):
			a.open("until when the process named %s before the one that started at %s was up: the list has the newest of a name",
				name, format.Stamp(r.Started))
		}
	}
	return len(a.NotKnown) > known
}

// owed answers for a tick that has come due and has no outcome.
func (a *asking) owed(tick time.Time) {
	r, st := &a.Status.Record, &a.Status
	mine := r.Run.Request == "" && r.Run.Tick.Equal(tick)
	cut := r.Run.Status == event.Abandoned || r.Run.Status == event.Stalled
	switch cause, paused := a.pauseAt(a.Now); {
	case mine && r.MayRun() && !st.Waits.IsZero(), a.isRunning(tick):
		a.sayNow()
		a.know("attempt %d", r.Run.Attempt)
	case mine && r.Run.Status == event.Running:
		a.say(Waiting, "it began on %s at %s, whose lease has ended without an outcome: it waits for a replica that takes over",
			r.Run.Replica, format.Stamp(r.Run.Claimed))
		a.tellUp()
	case cause != "":
		a.say(cause, "the job is paused %s", paused)
	case mine && cut:
		a.say(Waiting, "attempt %d on %s was interrupted, and it waits for another one", r.Run.Attempt, r.Run.Replica)
		a.tellUp()
	case live(st):
		a.say(Overlap, "a run of the job%s, on %s, goes on since %s",
			ofRun(r.Run.Tick, r.Run.Request), r.Run.Replica, format.Stamp(r.Run.Claimed))
	case r.MayRun():
		a.say(Died, "the run before%s on %s had no end, since its runner died, and no replica has taken over yet",
			ofRun(r.Run.Tick, r.Run.Request), r.Run.Replica)
		a.tellUp()
	case st.Occupied != nil:
		a.say(Occupied, "%s", format.Error(st.Occupied))
	case st.Foreign:
		a.say(Definition, "another definition of the job is in force, since %s, and by that its next tick is %s",
			format.Stamp(r.Definition.Since), format.Stamp(st.Next))
	case st.Awaits != "":
		a.say(Predecessor, "it waits for the outcome of %s", st.Awaits)
		for _, name := range a.running(strings.Split(st.Awaits, ", ")) {
			run := a.Others[name].Record.Run
			a.know("%s runs on %s since %s", name, run.Replica, format.Stamp(run.Claimed))
		}
	default:
		a.unclaimed(tick)
	}
}

// justDue is how long a tick may wait for its claim before that is worth a reason.
const justDue = 5 * time.Second

// unclaimed answers for a tick that is due, and that nothing keeps from being claimed as far as the record shows.
func (a *asking) unclaimed(tick time.Time) {
	full, outage := a.running(a.Siblings), a.outageAt(a.Now)
	switch {
	case a.Here.Broken != nil:
		a.say(Unclaimed, "this replica, %s, cannot run it: %s", a.Here.Replica, format.Error(a.Here.Broken))
	case outage != nil:
		a.outOfReach("the storage is", outage)
	case a.Slots > 0 && len(full) >= a.Slots:
		a.say(GroupFull, "no slot of group %s is free: %s run", a.Job.Group, format.Names(full))
	case a.Replicas.Covers(a.Now) && len(a.upNow()) == 0:
		a.down(a.Now, "no replica has claimed it")
	case a.Now.Sub(tick) < justDue:
		a.say(Due, "it came due %s, and is about to be claimed", format.Relative(tick, a.Now))
	default:
		a.say(Unclaimed, "it came due %s, and no replica has claimed it", format.Relative(tick, a.Now))
		a.tellUp()
		a.open("why: /healthz and the log of a replica tell")
	}
}

// tellUp notes which replicas are up.
func (a *asking) tellUp() {
	switch up := a.upNow(); {
	case !a.Replicas.Covers(a.Now):
		a.open("whether a replica is up")
	case len(up) == 0:
		a.know("no replica is up")
	default:
		a.know("%s", areUp(up, "is up", "are up"))
	}
}

// running returns those of some other jobs that run now.
func (f *Facts) running(names []string) (all []string) {
	for _, name := range slices.Sorted(slices.Values(names)) {
		if st, ok := f.Others[name]; ok && live(&st) {
			all = append(all, name)
		}
	}
	return all
}
