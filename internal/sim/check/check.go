// Package check decides from the log of a cluster which invariant does not hold.
//
// A [Log] has what happened, by true time: each request as the service applied it,
// each run, each line that a replica logged, each fault. [Judge] goes through the
// [Invariants]. It takes no record's word for what happened. It knows nothing of
// what made the log: package sim imports this one, and writes such a log.
package check

import (
	"fmt"
	"slices"
	"time"
)

// A Violation is an invariant that a log contradicts.
type Violation struct {
	Invariant string
	Time      time.Time
	Text      string
}

func (v Violation) String() string { return v.Invariant + " at " + TimeOfDay(v.Time) + ": " + v.Text }

// An Invariant is something that holds in every log.
type Invariant struct {
	Name  string
	check func(l *Log, bad report)
}

type report func(at time.Time, format string, args ...any)

// Invariants are all that a log is checked for.
var Invariants = []Invariant{
	{"I0 contract", contract},
	{"I1 belief", belief},
	{"I1 trust", trust},
	{"I2a claim", claims},
	{"I2a dead", dead},
	{"I2b holder", holders},
	{"I2c token", tokens},
	{"I2d identity", identities},
	{"I3 ledger", ledger},
	{"I3 outcome", outcomes},
	{"I3 span", lifetimes},
	{"I4 fence", fence},
	{"I4 checkpoint", checkpoints},
	{"I5 failover", failover},
	{"I6 stall", stalls},
	{"I6 healthy", pulses},
	{"I7a bounded", bounded},
	{"I7a patience", patience},
	{"I7b recovery", recovery},
	{"I7c no storm", storms},
	{"I7c chatter", chatter},
	{"I7c announced", announced},
	{"I8 shutdown", shutdown},
	{"I8 fresh", fresh},
	{"I9 time", early},
	{"I9 order", order},
	{"I10 once", once},
	{"I10 told", byHandTold},
	{"I11 release", releases},
	{"I11 let go", letGo},
	{"I11 prompt", prompt},
	{"I12 budget", budget},
	{"I12 memory", memory},
	{"I13 everywhere", everywhere},
	{"I13 woken", woken},
	{"I14 fail closed", failClosed},
	{"I14 spoilt", corrupted},
	{"I14 health", corruptedHealth},
	{"I15 policy", policies},
	{"I15 attempts", attempts},
	{"I15 tries", tries},
	{"I15 rest", rests},
	{"I16 audit", audit},
	{"I16 occupied", occupied},
	{"I16 unlocked", unlocked},
	{"I16 looked", looked},
	{"I16 lines", lines},
	{"I17 liveness", liveness},
	{"I17 unhindered", unhindered},
	{"I17 common", commonTicks},
	{"I18 pending", pendingAlarm},
	{"I18 few", fewAlarms},
	{"I18 on time", startedByAlarm},
	{"I18 quiet", quietAtZero},
	{"I18 version", wokenVersion},
	{"I19 reason", reasons},
	{"I19 overlap", overlaps},
	{"I30 waiting", waiting},
	{"I30 waited", waited},
	{"I30 replaced", replacements},
	{"I20 deadline", deadlines},
	{"I21 overrun", overruns},
	{"I22 taken back", takenBack},
	{"I22 apart", apart},
	{"I26 events", emitted},
	{"I25 holders", lockHolders},
	{"I25 token", lockTokens},
	{"I25 id", lockIDs},
	{"I25 told", lockResults},
	{"I25 held", heldResults},
	{"I25 bounded", lockEnds},
	{"I25 turn", lockTurns},
	{"I25 pace", lockPace},
	{"I25 group", groupHolders},
	{"I25 group skips", groupSkips},
	{"I25 once", onceSucceeded},
	{"I25 once told", onceResults},
	{"I25 once turn", onceTurns},
	{"I24 early", provablyEarly},
	{"I24 said", saidArmed},
	{"I24 superseded", superseded},
	{"I24 trust", unbroken},
	{"I24 spent", spent},
	{"I24 quiet", quietAhead},
	{"I24 stop", stopsAhead},
	{"I8 let go", leavesNoLease},
	{"I24 death", diesArmed},
	{"I5 unclaimed", unclaimed},
	{"I27 after", followers},
	{"I32 previous", previous},
	{"I31 late", lateTicks},
	{"I34 named", named},
	{"I28 spread", evenSpread},
	{"I29 silence", silence},
	{"I28 alone", leftAlone},
	{"I23 paused", paused},
	{"I23 paused itself", pausedItself},
	{"I23 requested", requested},
	{"I23 cancelled", cancels},
	{"I33 in order", backfilledInOrder},
	{"I33 aside", backfilledAside},
	{"I33 whole", backfilledWhole},
	{"I33 beside", backfilledBeside},
}

// Judge returns what contradicts an invariant, in the order of the invariants.
func Judge(l *Log) (all []Violation) {
	slices.SortStableFunc(l.Events, func(a, b *Event) int { return a.Time.Compare(b.Time) }) // a log that was planted may not be
	l.index = newIndex(l)
	for _, i := range Invariants {
		i.check(l, func(at time.Time, format string, args ...any) {
			all = append(all, Violation{i.Name, at, fmt.Sprintf(format, args...)})
		})
	}
	return all
}

// believed is when a run's context ended, or the run itself if that was first.
func (l *Log) believed(r *Event) time.Time {
	switch {
	case r.Cancelled.IsZero() && r.End.IsZero():
		return l.end()
	case r.Cancelled.IsZero() || !r.End.IsZero() && r.End.Before(r.Cancelled):
		return r.End
	}
	return r.Cancelled
}

// forgot reports whether the entry of a job was deleted between a and b.
func (l *Log) forgot(job string, a, b time.Time) bool {
	for _, e := range l.of(job, Deleted) {
		if !e.Time.Before(a) && !e.Time.After(b) {
			return true
		}
	}
	return false
}

// name is how a complaint names a run.
func (e *Event) name() string {
	return fmt.Sprintf("the run of %s by %s, token %d, tick %s", e.Job, e.Replica, e.Token, TimeOfDay(e.Tick))
}
