// Package judge decides from the log of a cluster whether its properties hold.
//
// The log has what happened, by true time: each request as the service applied it, each run, each answer to a caller, each
// fault. A property is judged from these facts. It takes no record's word for what ran, and compares kinds and values, never
// texts of the program.
//
// Two devices make exceptions unnecessary. What an operator deletes or overwrites begins a new epoch of that entry: safety
// holds within one epoch. And while a machine is suspended, and for a second after it, nothing on it counts as alive: that
// time is cut out of the lives of its runs. Progress is judged only once all faults are over.
package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Safety is judged at every step, S; progress after all faults, L; and clusters that scale to zero, Z.
var properties = []property{
	{"S1 exclusive", exclusive}, {"S1 covered", ofRuns(covered, "and lives for longer than its lease")},
	{"S2 lease", leases}, {"S2 release", releases},
	{"S3 claim", ofRuns(claims, "which it has not claimed so")}, {"S3 token", tokens},
	{"S4 attempt", attempts}, {"S4 once", ofRuns(once, "which has succeeded")},
	{"S5 ledger", ledger}, {"S5 facts", facts},
	{"S6 early", ofRuns(early, "and an answer proves that it is not due yet")},
	{"S7 checkpoint", checkpoints}, {"S7 fence", fences},
	{"S8 told", callers}, {"S8 status", statuses}, {"S8 events", events},
	{"S9 orders", orders}, {"S9 closed", closed},
	{"S10 after", ofRuns(followers, "and a job before it has not ended for it")},
	{"S11 stop", ofRuns(stops, "and was asked to stop")},
	{"S12 previous", ofRuns(previous, "and is not given the last success")},
	{"S13 cause", ofRuns(causes, "and ends for something that has not happened")},
	{"L1 settled", settled}, {"L1 in time", inTime}, {"L2 runs", singletons}, {"L3 served", waiters},
	{"L4 orders", ordered}, {"L5 spread", spread}, {"L6 health", health}, {"L7 budget", budget},
	{"Z1 wakes", wakes}, {"Z2 few", fewMessages}, {"Z3 quiet", fewStarts},
}

// Judge returns what contradicts a property, in the order of the properties. The promises are judged where a settled cluster
// meets one thing at a time.
func Judge(l *trace.Log) (all []trace.Violation) {
	w := newWorld(l)
	w.addFaults()
	judged := properties
	if len(w.of[trace.Single]) > 0 {
		judged = slices.Concat(properties, promises)
	}
	for _, p := range judged {
		p.judge(w, func(at time.Time, format string, args ...any) {
			all = append(all, trace.Violation{Property: p.name, Time: at, Text: fmt.Sprintf(format, args...)})
		})
	}
	return all
}
