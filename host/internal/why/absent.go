package why

import (
	"maps"
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/presence"
)

// A run is one that was under way at some time.
type run struct {
	replica, request string
	tick             time.Time
	start, end       time.Time // zero end: not known
	on               bool      // it is under way now
}

func (r *run) words() string { return ofRun(r.tick, r.request) + ", on " + r.replica }

func (r *run) until() string {
	switch {
	case r.on:
		return "from " + format.Stamp(r.start) + " on, and is under way still"
	case r.end.IsZero():
		return "from " + format.Stamp(r.start) + " until its runner died"
	}
	return "until " + format.Stamp(r.end)
}

// runs returns the runs of the job, the newest first.
func (f *Facts) allRuns() (all []run) {
	r := &f.Status.Record
	if live(&f.Status) {
		all = append(all, run{r.Run.Replica, r.Run.Request, r.Run.Tick, r.Run.Claimed, time.Time{}, true})
	}
	for i := range f.Lines {
		if o := &f.Lines[i].Outcome; !o.Start.IsZero() {
			all = append(all, run{o.Replica, o.Request, o.Tick, o.Start, o.End, false})
		}
	}
	return all
}

// exact is how exactly the times of runs are known: a service's clock shows seconds.
const exact = time.Second

// runAt returns the run that an instant lies in, nil if none is known. One whose runner died counts until the next one began.
func (f *Facts) runAt(at time.Time) *run {
	all := f.allRuns()
	for i := range all {
		r := &all[i]
		if !r.start.After(at.Add(exact)) && !r.tick.After(at) && !r.tick.Equal(at) && (r.end.IsZero() || !r.end.Before(at)) {
			return r
		}
		if !r.start.After(at) && !r.end.IsZero() {
			return nil // it had ended by then, and older ones before it
		}
	}
	return nil
}

// next returns the first run that was claimed after an instant, nil if none was.
func (f *Facts) next(at time.Time) (first *run) {
	all := f.allRuns()
	for i := range all {
		if r := &all[i]; r.start.After(at) && (first == nil || r.start.Before(first.start)) {
			first = r
		}
	}
	return first
}

// absent says why no replica claimed a tick. what is the begin of the sentence.
func (a *asking) absent(tick time.Time, what string) {
	next, under := a.next(tick), a.runAt(tick)
	if under != nil && under.start.After(tick) {
		next = a.next(under.start)
	}
	if next != nil {
		a.know("the next run of it began at %s on %s", format.Stamp(next.start), next.replica)
	}
	at := tick
	switch {
	case under == nil:
	case under.on || !under.end.IsZero() && !under.end.Add(exact).Before(a.lost(tick)):
		a.say(Overlap, "%s: the run before%s, took %s", what, under.words(), under.until())
		return
	case !under.end.IsZero(): // it did not keep the tick from running after it
		a.know("the run before%s, took %s", under.words(), under.until())
		at, under = under.end, nil
	case a.isFree(under, tick):
		a.know("the run before%s, had no end, since its runner died, and its lease had ended", under.words())
		under = nil
	}
	up, outage, listed := a.upAt(at), a.outageAt(at), a.listed(at, next)
	if outage != nil && under != nil && under.start.After(outage.From) { // another replica reached the storage
		outage = nil
	}
	switch {
	case !listed && len(up) == 0 && outage == nil && under == nil:
		a.say(Unclaimed, "%s", what)
		a.open("whether a replica was up: the list of replicas tells nothing of that time any more, or is not kept")
	case outage != nil && (len(up) == 0 || slices.Contains(up, a.Here.Replica)):
		a.say(OutOfReach, "%s: the storage was out of reach for %s %s", what, a.Here.Replica, outage.words())
		for _, name := range up {
			if name != a.Here.Replica {
				a.open("whether %s reached the storage: its log tells", name)
			}
		}
	case under != nil:
		a.diedUnder(at, next, under, what, len(up) == 0 && listed)
	case len(up) == 0 && listed:
		a.down(at, next, what)
	default:
		a.say(Unclaimed, "%s, though %s", what, areUp(up))
		a.open("why: the log of %s tells, such as a storage out of reach, or a stop", format.Names(up))
	}
}

// lost is when a tick is not run any more: when the next one is due, or its starting deadline has passed.
func (f *Facts) lost(tick time.Time) time.Time {
	if f.Ticks == nil {
		return tick
	}
	end := f.Ticks.Next(tick)
	if last := tick.Add(f.Job.Late.Start); f.Job.Late.Start > 0 && (end.IsZero() || last.Before(end)) {
		return last
	}
	return end
}

// isFree reports whether the lease of a run whose runner died had surely ended by an instant: its process was gone long before.
func (f *Facts) isFree(r *run, at time.Time) bool {
	const longest = time.Minute // of a lease
	listed, known := f.replicas()[r.replica]
	gone := listed.Left
	if listed.Started.After(r.start) {
		gone = listed.Started
	}
	return known && gone.After(r.start) && gone.Add(longest).Before(at)
}

// diedUnder says that the last run before a tick had no end. If no other replica is known to have been up, it says that, too.
func (a *asking) diedUnder(at time.Time, next, under *run, what string, alone bool) {
	what += ": the run before" + under.words() + ", had no end, since its runner died"
	if !alone {
		a.say(Died, "%s, and no other may begin before the lease has ended", what)
		a.open("how long its runner lived")
		return
	}
	a.down(at, next, what)
	if r, known := a.replicas()[under.replica]; !known || !r.SilentAt(at) {
		a.Cause = Died // it may have run still
	}
}

// listed reports whether the list of replicas has those that were up at an instant. A replica that is set up to write nothing
// there is known by its runs.
func (a *asking) listed(at time.Time, next *run) bool {
	if !a.Replicas.Covers(at) {
		return false
	}
	if next == nil {
		return true
	}
	if _, ok := a.replicas()[next.replica]; !ok && a.Replicas.Covers(next.start) {
		a.know("%s is not in the list of replicas", next.replica)
		return false
	}
	return true
}

func areUp(names []string) string {
	if len(names) == 1 {
		return format.Names(names) + " was up"
	}
	return format.Names(names) + " were up"
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
	return slices.ContainsFunc(f.allRuns(), func(r run) bool { return r.replica == name && (isSign(r.start) || isSign(r.end)) })
}

// ranBefore reports whether a process of a name began a run of the job before an instant.
func (f *Facts) ranBefore(name string, at time.Time) bool {
	return slices.ContainsFunc(f.allRuns(), func(r run) bool { return r.replica == name && r.start.Before(at) })
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

// isLeaving reports whether a replica may have been about to stop at an instant.
func isLeaving(r presence.Replica, at time.Time) bool {
	return r.Left.After(at) && r.Left.Sub(at) < leaving || !r.Left.IsZero() && !r.Left.After(at)
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

func (o *Outage) words() string {
	if o.To.IsZero() {
		return "since " + format.Stamp(o.From)
	}
	return "from " + format.Stamp(o.From) + " to " + format.Stamp(o.To)
}

// down says that no replica was up at an instant, and from when to when.
func (a *asking) down(at time.Time, next *run, what string) {
	was, cause := "was up", Down
	switch doubt, open := a.doubtDown(at); {
	case a.onlyWoken():
		was = "is known to have been woken up by its platform"
	case open:
		was, cause = "is known to have been up", Unclaimed
	case doubt:
		was = "is known to have been up"
	}
	last, before := a.lastSign(at)
	first, after := a.firstSign(at, next)
	switch {
	case last.IsZero() && first.IsZero():
		a.say(cause, "%s: no replica %s, and none has started since", what, was)
	case last.IsZero():
		a.say(cause, "%s: no replica %s until %s, when %s", what, was, format.Stamp(first), after)
		a.open("since when none was up")
	case first.IsZero():
		a.say(cause, "%s: no replica %s from %s on, when %s", what, was, format.Stamp(last), before)
	default:
		a.say(cause, "%s: no replica %s from %s, when %s, to %s, when %s", what, was, format.Stamp(last), before, format.Stamp(first), after)
	}
}

// onlyWoken reports whether all replicas of the list are up for their ticks alone, as in Functions.
func (f *Facts) onlyWoken() bool {
	for _, r := range f.replicas() {
		if !r.Woken {
			return false
		}
	}
	return len(f.replicas()) > 0
}

// doubtDown notes what the list of replicas leaves open about an instant at which none was up, and reports whether that is
// anything, and whether the list may lack a replica that was up.
func (a *asking) doubtDown(at time.Time) (doubt, open bool) {
	known, again := len(a.NotKnown), false
	for name, r := range a.replicas() {
		again = again || a.ranBefore(name, r.Started)
	}
	for _, name := range slices.Sorted(maps.Keys(a.replicas())) {
		r := a.replicas()[name]
		switch {
		case r.Woken:
		case r.Left.After(at) && !r.Started.After(at):
			a.open("when %s, which had stopped at %s, began to stop", name, format.Stamp(r.Left))
		case r.Left.IsZero() && r.Seen.Before(at):
			a.open("whether %s was up after %s, and could not reach the storage", name, format.Stamp(r.Seen))
		case r.Started.After(at) && again: // the platform uses names again
			open = true
			if !a.ranBefore(name, r.Started) {
				a.open("whether a process named %s was up before the one that started at %s: the list has the newest of a name", name, format.Stamp(r.Started))
				continue
			}
			a.open("until when the process named %s before the one that started at %s was up: the list has the newest of a name", name, format.Stamp(r.Started))
		}
	}
	return len(a.NotKnown) > known, open
}

// lastSign returns the last sign of a replica up to an instant, and what it was.
func (f *Facts) lastSign(at time.Time) (last time.Time, what string) {
	sign := func(t time.Time, text string) {
		if !t.IsZero() && !t.Before(last) && !t.After(at) {
			last, what = t, text
		}
	}
	for _, r := range f.allRuns() {
		sign(r.start, r.replica+" began a run of it")
		sign(r.end, r.replica+" ended a run of it")
	}
	for _, name := range slices.Sorted(maps.Keys(f.replicas())) {
		r := f.replicas()[name]
		sign(r.Started, name+" started")
		sign(r.Seen, name+" last said that it was up")
		sign(r.Left, name+" had stopped")
		if r.Left.After(at) && isLeaving(r, at) && !r.Started.After(at) {
			sign(at, name+" was stopping")
		}
	}
	return last, what
}

// firstSign returns the first sign of a replica after an instant, and what it was.
func (f *Facts) firstSign(at time.Time, next *run) (first time.Time, what string) {
	sign := func(t time.Time, text string) {
		if t.After(at) && (first.IsZero() || t.Before(first)) {
			first, what = t, text
		}
	}
	if next != nil {
		sign(next.start, next.replica+" began a run of it")
	}
	for _, name := range slices.Sorted(maps.Keys(f.replicas())) {
		sign(f.replicas()[name].Started, name+" started")
	}
	return first, what
}

// owed answers for a tick that has come due and has no outcome.
func (a *asking) owed(tick time.Time) {
	r, st := &a.Status.Record, &a.Status
	mine := r.Run.Request == "" && r.Run.Tick.Equal(tick)
	cut := r.Run.Status == event.Abandoned || r.Run.Status == event.Stalled
	switch p := a.pauseAt(a.Now); {
	case mine && r.MayRun() && !st.Waits.IsZero():
		a.Cause, a.Sentence = a.now()
	case mine && live(st) && r.Run.Status == event.Running:
		a.Cause, a.Sentence = a.now()
		a.know("attempt %d", r.Run.Attempt)
	case mine && r.MayRun() && r.Run.Status == event.Running:
		a.say(Waiting, "it began on %s at %s, whose lease has ended without an outcome: it waits for a replica that takes over", r.Run.Replica, format.Stamp(r.Run.Claimed))
		a.tellUp()
	case p != nil:
		a.say(p.cause, "the job is paused %s", p.words)
	case mine && cut:
		a.say(Waiting, "attempt %d on %s was interrupted, and it waits for another one", r.Run.Attempt, r.Run.Replica)
		a.tellUp()
	case live(st):
		now := a.allRuns()[0]
		a.say(Overlap, "a run of the job%s, goes on since %s", now.words(), format.Stamp(now.start))
	case r.MayRun():
		a.say(Died, "the run before%s on %s had no end, since its runner died, and no replica has taken over yet", ofRun(r.Run.Tick, r.Run.Request), r.Run.Replica)
		a.tellUp()
	case st.Occupied != nil:
		a.say(Occupied, "%s", format.Error(st.Occupied))
	case st.Foreign:
		a.say(Definition, "another definition of the job is in force, since %s, and by that its next tick is %s", format.Stamp(r.Definition.Since), format.Stamp(st.Next))
	case st.Awaits != "":
		a.awaits()
	default:
		a.unclaimed(tick)
	}
}

// awaits answers for a tick that waits for the outcome of its predecessors.
func (a *asking) awaits() {
	a.say(Predecessor, "it waits for the outcome of %s", a.Status.Awaits)
	for _, name := range slices.Sorted(maps.Keys(a.Others)) {
		if st := a.Others[name]; live(&st) {
			a.know("%s runs on %s since %s", name, st.Record.Run.Replica, format.Stamp(st.Record.Run.Claimed))
		}
	}
}

// justDue is how long a tick may wait for its claim before that is worth a reason.
const justDue = 5 * time.Second

// unclaimed answers for a tick that is due, and that nothing keeps from being claimed as far as the record shows.
func (a *asking) unclaimed(tick time.Time) {
	full := a.groupNow()
	outage := a.outageAt(a.Now)
	switch {
	case a.Here.Broken != nil:
		a.say(Unclaimed, "this replica, %s, cannot run it: %s", a.Here.Replica, format.Error(a.Here.Broken))
	case outage != nil:
		a.say(OutOfReach, "the storage is out of reach for %s %s", a.Here.Replica, outage.words())
	case full != nil && len(full) >= a.Slots:
		a.say(GroupFull, "no slot of group %s is free: %s", a.Job.Group, format.Names(full)+" run")
	case a.Replicas.Covers(a.Now) && len(a.upNow()) == 0:
		a.down(a.Now, nil, "no replica has claimed it")
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
	case len(up) == 1:
		a.know("%s is up", up[0])
	default:
		a.know("%s are up", format.Names(up))
	}
}

// groupNow returns the jobs of its group that run now, nil if the job has none.
func (f *Facts) groupNow() (names []string) {
	if f.Job.Group == "" || f.Slots == 0 {
		return nil
	}
	names = []string{}
	for _, name := range slices.Sorted(maps.Keys(f.Others)) {
		if st := f.Others[name]; live(&st) && slices.Contains(f.Siblings, name) {
			names = append(names, name)
		}
	}
	return names
}
