package sim_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/internal/proctest"
)

var (
	mutantsFlag = flag.Bool("mutants", false, "build each mutant and demand that it is caught")
	mutantFlag  = flag.String("mutant", "", "only those whose name contains this")
	partFlag    = flag.String("part", "1/1", "only a part of them: 1/3, 2/3 and 3/3 are all")
)

// A mutant is a program with one mistake, made by a replacement of text. It is
// caught by a story of internal/scenarios where that needs a coincidence,
// else by the first seeds.
type mutant struct {
	name  string
	file  string
	text  string // in file, once
	with  string
	also  [2]string // another replacement
	other string    // the file of also; empty: file
	story string    // that catches it; empty: the first seeds do
	pkg   string    // of the story; empty: internal/scenarios
	zero  bool      // the seeds are those of clusters that scale to zero
}

// The packages of the tests of the program itself, of what runs a task, of what is claimed,
// of the directories that machines share, of the spread of shards, of alarms, and of the program of a platform.
const (
	root      = "../.."
	supervise = "../supervise"
	claims    = "../plan"
	stores    = "../../host/local"
	spreads   = "../spread"
	alarms    = "../alarm"
	programs  = "../../host"
)

var mutants = []mutant{
	{name: "the days of calendars are no part of the definition", file: "settings.go", story: "TestOtherDaysUnderOneName", pkg: root,
		text: "specOf(j.Shards, \"job\", due.Text()), due.ZoneSum(), due.DaysSum())", with: "specOf(j.Shards, \"job\", due.Text()), due.ZoneSum(), \"\")"},
	{name: "the rules of the zone are no part of the definition", file: "internal/ticks/sums.go", story: "TestSpecOfOlderPrograms", pkg: root,
		text: "\treturn sum(b)\n}\n\n// sumOf returns", with: "\treturn \"\"\n}\n\n// sumOf returns"},
	{name: "a tick of an excluded day is left out where it should move", file: "internal/ticks/days.go", story: "TestDayShownTwice", pkg: "../ticks",
		text: "\tif y.shift == NoShift {\n\t\treturn y.allowedAfter(t)", with: "\tif y.shift != \"x\" {\n\t\treturn y.allowedAfter(t)"},
	{name: "a tick before From is run", file: "internal/ticks/ticks.go",
		text: "\tif from := t.limits.From; after.Before(from) {", with: "\tif from := t.limits.From; false && after.Before(from) {",
		also: [2]string{"\tif last.Before(t.limits.From) {", "\tif last.IsZero() {"}},
	{name: "a tick after Until is run", file: "internal/ticks/ticks.go",
		text: "!next.Before(until) {", with: "!next.Before(until.Add(time.Hour)) {",
		also: [2]string{"!at.Before(until) {\n\t\tat = until.Add(-1)", "!at.Before(until.Add(time.Hour)) {\n\t\tat = until.Add(time.Hour - 1)"}},
	{name: "a tick of an excluded day is run", file: "internal/ticks/days.go",
		text: "\t\td := y.wall.Day(t)\n\t\tif !y.out.has(d) {\n\t\t\treturn t, true\n\t\t}\n\t\tto, again", with: "\t\td := y.wall.Day(t)\n\t\tif true {\n\t\t\treturn t, true\n\t\t}\n\t\tto, again",
		also: [2]string{"\t\td := y.wall.Day(t)\n\t\tif !y.out.has(d) {\n\t\t\treturn t, true\n\t\t}\n\t\tfrom, already", "\t\td := y.wall.Day(t)\n\t\tif true {\n\t\t\treturn t, true\n\t\t}\n\t\tfrom, already"}},
	{name: "a tick that was moved is run at its own time too", file: "internal/ticks/ticks.go", pkg: "../ticks", story: "TestDayShownTwice",
		text: "\tif t.days == nil {\n\t\treturn t.Schedule.Next(after)", with: "\tif t.days == nil || t.days.shift != NoShift {\n\t\treturn t.Schedule.Next(after)",
		also: [2]string{"\tif t.days == nil {\n\t\treturn t.Schedule.Last(at)", "\tif t.days == nil || t.days.shift != NoShift {\n\t\treturn t.Schedule.Last(at)"}},
	{name: "the deadline counts from the response", file: "internal/lease/renew.go", story: "TestReplyOfRenewal1AfterRenewal2WasSent",
		text: "\ts.extend(sent)\n", with: "\ts.extend(s.client.Clock.Elapsed())\n"},
	{name: "the first deadline counts from the response", file: "internal/lease/session.go", story: "TestRenewalRepliesThatNeverCome",
		text: "\ts.trust.until, s.Dated = s.start+trusted(s.Length), stamp.Date", with: "\ts.trust.until, s.Dated = s.client.Clock.Elapsed()+trusted(s.Length), stamp.Date"},
	{name: "no look at the deadline after the claim", file: "internal/supervise/attempt.go", story: "TestPausePastTheDeadlineBetweenClaimReplyAndStart",
		text: "\tif a.Under.Lease != nil && a.Under.Lease.Expired() {", with: "\tif false {"},
	{name: "one lease id per process", file: "internal/lease/session.go",
		text: "c.Store.Lease(c.Name, uuid.NewString())", with: "c.Store.Lease(c.Name, uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, \"%p\", c.Clock)).String())"},
	{name: "released before the job has returned", file: "internal/supervise/attempt.go",
		text: "\terr = call(a.Emit, func() error { return a.Task.Do(ctx, h) })\n",
		with: "\treturned := make(chan error, 1)\n\tgo func() { returned <- call(a.Emit, func() error { return a.Task.Do(ctx, h) }) }()\n\tselect {\n\tcase err = <-returned:\n\tcase <-ctx.Done():\n\t\terr = ctx.Err()\n\t}\n"},
	{name: "the time when a renewal was sent in a shared field", file: "internal/lease/renew.go", story: "TestReplyOfRenewal1AfterRenewal2WasSent",
		text: "\tsent := s.client.Clock.Elapsed()\n\tstamp, err := stamped(s.lease.Renew(ctx))\n\tif err != nil {\n\t\treturn err\n\t}",
		with: "\ts.start = s.client.Clock.Elapsed()\n\tstamp, err := stamped(s.lease.Renew(ctx))\n\tsent := s.start\n\tif err != nil {\n\t\treturn err\n\t}",
		also: [2]string{"\tcase s.renewing <- struct{}{}:\n\t\tdefer func() { <-s.renewing }()\n\tcase", "\tdefault:\n\tcase"}},
	{name: "no If-Match on the claim", file: "host/azure/lease.go",
		text: "\t\tModifiedAccessConditions: match,\n\t}, nil", with: "\t\tModifiedAccessConditions: nil,\n\t}, func() error { _ = match; return nil }()"},
	{name: "a web page counts as an answer of the service", file: "host/azure/genuine.go",
		text: "\treturn resp.Header.Get(\"x-ms-request-id\") != \"\" && ", with: "\treturn true || "},
	{name: "a code in the body of a refusal counts as the service's", file: "host/azure/genuine.go", story: "TestACodeOfAGateway",
		text: "\tif resp.Header.Get(\"x-ms-error-code\") == \"\" {", with: "\tif false {"},
	{name: "the challenge of a stranger is answered", file: "host/azure/genuine.go", story: "TestAChallengeOfAStranger",
		text: "\tif !fromService(resp) {", with: "\tif false {"},
	{name: "the date of a gateway's refusal is the service's time", file: "internal/lease/client.go", story: "TestTheDateOfAGateway",
		text: "\tif err == nil || errors.Is(err, fs.ErrNotExist) {", with: "\tif _ = errors.Is(err, fs.ErrNotExist); true {",
		other: "host/azure/errors.go", also: [2]string{" || resp.ErrorCode == \"\" {", " {"}},
	{name: "an answer without an ETag is a success", file: "internal/lease/client.go", pkg: root, story: "TestAnswerWithoutETagIsNoSuccess",
		text: "\tif err == nil && s.ETag == \"\" {", with: "\tif false {"},
	{name: "run before the claim", file: "internal/runner/hold.go",
		text: "\tif err := r.claim(",
		with: "\tif claim.Run {\n\t\tr.view.rec = claim.Record\n\t\ta := r.attempt(stop, claim.Record.Run.Tick, 1, claim.Record.Token, \"\", func() {})\n\t\ta.Under.Lease, a.Under.Record = s, &notices{session: s, policy: &r.job.Policy, clock: r.client.Clock, orders: r.orders, settled: r.settled, precede: r.precede}\n\t\ta.Run()\n\t}\n\tif err := r.claim("},
	{name: "the loser of a race before a tick walks away", file: "internal/runner/ahead.go", story: "TestWinnerDiesBetweenAcquireAndClaimAfterTheLosersSaw409",
		text: "\tr.view.lead = lead{tick: tick, d: look, grab: grab, outrun: tick}\n", with: "\tr.view.lead = lead{tick: tick, d: look, grab: grab, outrun: tick}\n\tr.view.rec.Watermark = tick\n\treturn time.Hour\n"},
	{name: "the loser of a race walks away", file: "internal/runner/step.go", story: "TestWinnerOfTakeOverDiesAfterTheLoserSaw409",
		text: "\t\treturn r.readAgain(firstLook + r.losses.Next())",
		with: "\t\tr.view.rec.Watermark = r.now()\n\t\tnext := r.job.Policy.NextTick(&r.view.rec)\n\t\tif next.IsZero() {\n\t\t\treturn maxSleep\n\t\t}\n\t\treturn r.waitFor(c, plan.Action{After: next.Sub(r.now())})"},
	{name: "412 is taken as lost without a read", file: "internal/lease/write.go", story: "TestLostReplies",
		text: "\tif err = s.once(ctx, p); err == nil {\n\t\treturn true, nil\n\t}\n", with: "\tif err = s.once(ctx, p); err == nil || Definite(err) {\n\t\treturn true, err\n\t}\n"},
	{name: "finish without a lease id", file: "host/azure/lease.go",
		text: "\t\tLeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: &h.id},\n", with: ""},
	{name: "no hold-off", file: "internal/runner/hold.go", story: "TestBreakAtOnceWithHoldOffWhileTheOldOneStillRuns",
		text: "\twait := r.job.Policy.HoldOff(v, &r.view.seen)\n", with: "\twait := r.job.Policy.HoldOff(v, &r.view.seen) - time.Hour\n"},
	{name: "the hold-off comes after the settling write", file: "internal/runner/hold.go", story: "TestBreakAtOnceWithHoldOffWhileTheOldOneStillRuns",
		text: "\tif err := r.claim(c, s, claim); err != nil {",
		with: "\tlate := r.job.Policy.HoldOff(r.decideBy(c), &r.view.seen)\n\terr := r.claim(c, s, claim)\n\tif late > 0 && !r.holdOff(stop, s, late) {\n\t\treturn r.readAgain(0), false\n\t}\n\tif err != nil {",
		also: [2]string{"\tif wait > 0 && !r.holdOff(stop, s, wait) {", "\tif false {"}},
	{name: "release after an outcome that is not confirmed", file: "internal/runner/hold.go",
		text: "\tif claim.Run && !r.runClaimed(ctx, stop, c, s, &before) {\n", with: "\tif claim.Run && !r.runClaimed(ctx, stop, c, s, &before) {\n\t\tr.release(s)\n"},
	{name: "the watermark does not move at the finish", file: "internal/plan/past.go",
		text: "\tif f.Tick.After(r.Watermark) {", with: "\tif f.Tick.After(r.Watermark) && f.Token == 0 {"},
	{name: "Save without the record", file: "host/azure/checkpoint.go",
		text: "\t\tMetadata:         metadata(record),\n", with: ""},
	{name: "the token starts anew with the entry", file: "internal/runner/hold.go", story: "TestDeleteAndReCreate",
		text: "max(next.Record.Token, now.Truncate(time.Second).UnixMicro())", with: "1 + 0*now.UnixMicro()"},
	{name: "ticks may move back", file: "internal/plan/claim.go",
		text: "\tif !newest.After(r.Watermark) {", with: "\tif !newest.After(r.Watermark) && v.Now.Unix()%7 != 0 {"},
	{name: "catching up is off by one", file: "internal/plan/claim.go", story: "TestATickAndTheNextBothDueAfterAnOutage",
		text: "\tbefore := p.Ticks.Last(tick.Add(-1))\n\tpassed", with: "\tbefore := p.Ticks.Last(p.Ticks.Last(tick.Add(-1)).Add(-1))\n\tpassed"},
	{name: "the client library repeats requests", file: "host/azure/config.go", story: "TestThrottling",
		text: "policy.RetryOptions{MaxRetries: -1}", with: "policy.RetryOptions{MaxRetries: 3, RetryDelay: 1}"},
	{name: "the context is not cancelled at the deadline", file: "internal/lease/session.go", story: "TestRenewalRepliesThatNeverCome",
		text: "\t\ts.lose(ErrNotRenewed)\n\t}\n\treturn min(left", with: "\t\treturn 0, false\n\t}\n\treturn min(left"},
	{name: "the wall clock for the deadline", file: "internal/lease/session.go", story: "TestWallClockSetBackWhileCutOff",
		text: "func (s *Session) Left() time.Duration { return s.Until() - s.client.Clock.Elapsed() }",
		with: "func (s *Session) Left() time.Duration {\n\treturn s.Until() - s.client.Clock.Wall().Sub(epoch0(s))\n}\n\nvar epochs sync.Map\n\nfunc epoch0(s *Session) time.Time {\n\tt, _ := epochs.LoadOrStore(s, s.client.Clock.Wall().Add(-s.client.Clock.Elapsed()))\n\treturn t.(time.Time)\n}"},

	{name: "a replica at its part takes each shard that is free", file: "internal/spread/seat.go", pkg: spreads, story: "TestGroupTakesUpToItsTarget",
		text: "\tif full && !failed {", with: "\tif g.phase == closed {"},
	{name: "a shard that failed elsewhere stays with the replica on which it fails", file: "internal/spread/seat.go", pkg: spreads, story: "TestFailedShardIsTakenAndKept",
		text: "g.full(now), g.isUp(failedOn)", with: "g.full(now), false && g.isUp(failedOn)"},
	{name: "a shard is offered to the replica on which it failed", file: "internal/spread/group.go", pkg: spreads, story: "TestFailedShardIsTakenAndKept",
		text: "cmp.Or(p.kept.Compare(q.kept), p.extra.Compare(q.extra), q", with: "cmp.Or(q", also: [2]string{"\t\tif now.Before(g.places[i].kept) {", "\t\tif false {"}},
	{name: "a shard that was handed over waits for the end of Backoff", file: "internal/runner/hold.go", pkg: root, story: "TestHandOverIsNoFailure",
		text: "stop.Err() != nil && r.job.Seat != nil && !plan.HasFailed(&r.view.rec):", with: "stop.Err() != nil && false:"},
	{name: "a replica never hands a shard over to one that has less", file: "internal/spread/group.go",
		text: "staying[:max(0, len(staying)-target)]", with: "staying[:0]"},
	{name: "a shard that all replicas leave to the others stays free", file: "internal/spread/seat.go", pkg: root, story: "TestNoShardIsLeftAlone",
		text: "now.Sub(p.refused) >= g.length", with: "now.Sub(p.refused) >= 1000*g.length"},
	{name: "a dead replica keeps its part of the shards", file: "internal/spread/look.go", pkg: root, story: "TestDeadReplicaHasNoPart",
		text: "case group == \"\" && e.State.Live():", with: "case group == \"\" && rec.Run.Replica != \"\":"},
	{name: "a shard whose lease was lost waits for the end of Backoff", file: "internal/runner/hold.go", pkg: root, story: "TestLostLeaseOfShardIsNoFailure",
		text: "r.view.rec.Run.Status == store.Abandoned && r.job.Seat != nil:", with: "false:"},
	{name: "a replica rests that has run nothing", file: "internal/runner/hold.go", pkg: root, story: "TestLeaseLostInHoldOffIsNoRest",
		text: "case len(c.ran) == 0: // it", with: "case false: // it"},

	// Ticks that come due under a run.
	{name: "the newest tick under a run is run after it under each policy", file: "internal/plan/finish.go",
		text: "\tif p.Overlap == SkipOverlap {\n", with: "\tif false {\n"},
	{name: "a queue of one is none", file: "internal/plan/finish.go",
		text: "\tif p.Overlap == SkipOverlap {\n", with: "\tif p.Overlap != Replace {\n"},
	{name: "a call runs a backfill before the followers", file: "internal/runner/due.go", pkg: root, story: "TestRunDueRunsFollowerBeforeBackfill",
		text: "claims: plan.NoBackfill, bounded: true}", with: "claims: plan.AnyRun, bounded: true}"},
	{name: "what follows a tick under a backfill waits for the next call", file: "duecall.go", pkg: root, story: "TestRunDueRunsChainBeforeBackfill",
		text: "if more = ticked && report.Err == nil; more {", with: "if more = ticked && report.Err == nil; false {"},
	{name: "a tick that has waited for long on each replica is lost", file: "internal/runner/everyreplica.go", pkg: root, story: "TestRunDueRunsTickThatHasWaitedForLong",
		text: "case c.bounded && len(c.ran) == 0:", with: "case c.bounded:"},
	{name: "no tick replaces a run", file: "internal/runner/replace.go",
		text: "\t\t\t\tend(supervise.Replaced(tick))\n", with: "\t\t\t\t_, _ = end, supervise.Replaced\n"},
	{name: "the tick that replaces a run is skipped", file: "internal/plan/finish.go", pkg: root, story: "TestReplacedRunThatGoesOn",
		text: "\tif p.Overlap == SkipOverlap {\n", with: "\tif p.Overlap != QueueOne {\n"},
	{name: "a tick that its call has no time for replaces a run", file: "internal/runner/replace.go", pkg: root, story: "TestRunDueReplacesOnlyForATickThatItRuns",
		text: "if err := r.fits(stop, c); err != nil || r.job.EveryReplica {", with: "if err := error(nil); err != nil || r.job.EveryReplica {"},
	{name: "a tick that cannot start for want of orders replaces a run", file: "internal/runner/replace.go", pkg: root, story: "TestReplaceWaitsForOrders",
		text: "\treturn r.replica.Orders.Stale()\n", with: "\treturn nil\n"},
	{name: "a tick replaces a run of a replica that is to stop", file: "internal/runner/replace.go", pkg: root, story: "TestStoppedRunIsNotReplaced",
		text: "if stop.Err() != nil {", with: "if stop.Err() == nil && false {"},
	{name: "a run is replaced before a newer tick is due", file: "internal/plan/overlap.go",
		text: "\tnewest := p.Ticks.Last(v.Now)\n", with: "\tnewest := p.Ticks.Last(v.Now.Add(5 * time.Second))\n"},
	{name: "a run that was replaced has failed", file: "internal/supervise/outcome.go", pkg: root, story: "TestReplace",
		text: "errors.Is(cause, ErrCancelled), errors.Is(cause, ErrReplaced):", with: "errors.Is(cause, ErrCancelled):"},
	{name: "a tick whose place a newer one has is run again", file: "internal/plan/claim.go", pkg: root, story: "TestReplacedTickIsNotRunAgain",
		text: "\tcase p.outlived(v):", with: "\tcase false:"},
	{name: "the tick of a pause replaces a run", file: "internal/plan/overlap.go", pkg: root, story: "TestPausedTickReplacesNothing",
		text: " || p.PausedAt(v) {", with: " {"},
	{name: "a tick replaces a run by hand", file: "internal/plan/overlap.go", pkg: root, story: "TestRunByHandIsNotReplaced",
		text: " || r.Run.Request != \"\" ||", with: " ||", other: "internal/runner/replace.go", also: [2]string{" || rec.Run.Request != \"\" {", " {"}},
	{name: "a call leaves the tick that has waited for its run", file: "internal/runner/due.go", pkg: root, story: "TestRunDueRunsQueuedTick",
		text: "(r.owed(begin, wake) || r.owesQueued(c))", with: "r.owed(begin, wake)"},
	{name: "no tick waits for a run on each replica", file: "internal/runner/everyreplica.go", pkg: root, story: "TestEveryReplicaOverlap",
		text: "\tif !r.job.Policy.Queues() || ", with: "\tif true || "},

	// The alarm of apps that are scaled to zero.
	{name: "the old alarm is deleted before the new one is put", file: "internal/alarm/alarm.go", pkg: alarms, story: "TestHandOverPutsNewBeforeOld",
		text: "\tpending, err := c.set(ctx, due)\n\tif !pending {\n\t\treturn err\n\t}\n\t_, clearing := c.Clear(ctx, began)\n",
		with: "\t_, clearing := c.Clear(ctx, began)\n\tpending, err := c.set(ctx, due)\n\tif !pending {\n\t\treturn err\n\t}\n"},
	{name: "the alarm is for the latest of the next ticks", file: "internal/runner/wanted.go", zero: true,
		text: "\treturn instant.Earlier(a, b)\n", with: "\treturn instant.Later(a, b)\n"},
	{name: "no alarm is set for an entry that cannot be read", file: "internal/runner/wanted.go", zero: true,
		text: "\t\treturn sooner(now.Add(wantedUnread), p.Ticks.Next(now))\n", with: "\t\treturn time.Time{}\n"},
	{name: "no alarm is set for a run that goes on elsewhere", file: "internal/plan/wanted.go", zero: true,
		text: "\t\treturn p.byNextTick(v, v.Now.Add(p.outlasts(v)))\n", with: "\t\treturn p.Ticks.Next(v.Now.Add(time.Hour))\n"},
	{name: "an alarm is deleted that came after the pass began", file: "internal/alarm/clear.go", pkg: alarms, story: "TestHandOverPutsNewBeforeOld",
		text: "\tif !visible.Add(margin).Before(s.began) {", with: "\tif false && visible.Before(s.began) {"},
	{name: "an alarm is noted before it is put", file: "internal/alarm/set.go", pkg: alarms, story: "TestKilledAtAnyCallAnAlarmIsPending",
		text: "\treceipt, err := put(ctx, c.Queue, m, hidden)\n", with: "\tbefore, _ := c.notes().read(ctx)\n\t_ = c.notes().write(ctx, Note{ID: m.ID, At: m.At, Tick: m.Tick}, before.etag)\n\treceipt, err := put(ctx, c.Queue, m, hidden)\n"},
	{name: "a note is believed whose alarm has come", file: "internal/alarm/note.go", zero: true,
		text: "n.At.After(now.Add(margin)) && ", with: "now.After(time.Time{}) && "},
	{name: "an alarm further ahead than a queue can hide it", file: "internal/alarm/set.go", pkg: alarms, story: "TestAlarmFarAheadHops",
		text: "max(0, min(due.Sub(now)-c.lead(), Longest))", with: "max(0, min(due.Sub(now)-c.lead(), 3*Longest))"},
	{name: "an alarm comes by the lead too late", file: "internal/alarm/set.go", zero: true,
		text: "due.Sub(now)-c.lead()", with: "due.Sub(now)+c.lead()"},
	{name: "an alarm comes with its tick", file: "internal/alarm/set.go", zero: true,
		text: "due.Sub(now)-c.lead()", with: "due.Sub(now)-0*c.lead()"},
	{name: "old alarms are never deleted", file: "internal/alarm/alarm.go", zero: true,
		text: "\t_, clearing := c.Clear(ctx, began)\n", with: "\tvar clearing error\n\t_ = began\n"},
	{name: "an early message wakes the app up until its time", file: "internal/alarm/early.go", pkg: alarms, story: "TestMessageThatIsEarly",
		text: "e.left > margin\n", with: "e.left > margin && e.left < 0\n"},
	{name: "the clock of one replica puts off what others rely on", file: "internal/alarm/early.go", pkg: alarms, story: "TestManyMessagesThatAreEarly",
		text: "e.ID == noted.ID", with: "e.ID == noted.ID+\"x\""},
	{name: "an early message wakes the app up each ten minutes", file: "internal/alarm/early.go", pkg: alarms, story: "TestMessageThatIsEarly",
		text: "firstPutOff<<min(max(e.PutOff, 0), mostPutOffs)", with: "firstPutOff<<min(max(e.PutOff, 0), mostPutOffs-10)"},
	{name: "the beginning of a pass is the clock's of a machine", file: "internal/alarm/alarm.go", pkg: alarms, story: "TestClockThatIsCorrectedInPass",
		text: "\tif now := c.Now(); began.After(now) {", with: "\tif now := c.Now(); false && began.After(now) {"},
	{name: "a pass waits for its runs", file: "host/internal/app/pass.go", pkg: programs, story: "TestLongRunHoldsUpNoOtherJob",
		text: "\tp.rest(ctx, firstPause)\n", with: "\tp.all.Wait()\n"},
	{name: "a simulated pass waits for its runs", file: "internal/sim/pass.go", zero: true,
		text: "\tp.until(ctx, time.Second+odd)\n", with: "\tp.all.Wait()\n"},
	{name: "a process is not looked for that is killed under a run by hand", file: "host/internal/app/guard.go", pkg: programs, story: "TestRunByTriggerIsFoundAgain",
		text: "const guardSpan = 45 * time.Second\n", with: "const guardSpan = 45 * time.Hour\n"},
	{name: "a message is put off by none before it", file: "internal/alarm/guard.go", pkg: alarms, story: "TestGuardIsPutOffWhileItsProcessLives",
		text: "sleep(living, span/3)", with: "sleep(living, 2*span)"},

	// What the simulation did not look at once.
	{name: "a further attempt has no starting deadline", file: "internal/plan/claim.go", pkg: root, story: "TestFurtherAttemptHasStartingDeadline",
		text: "\tcase p.lateStart(v):", with: "\tcase false:"},
	{name: "Overrun is not called for a loss after a time-out", file: "internal/supervise/overrun.go", pkg: root, story: "TestOverrunAfterEndAndLoss",
		text: "\t\theld := w.under.Lease.Context()\n\t\tif !until(over, held) {\n\t\t\treturn\n\t\t}\n\t\tcause = context.Cause(held)", with: "\t\treturn"},
	{name: "nobody takes a job back after an aborted deploy", file: "internal/plan/definition.go", pkg: root, story: "TestAbortedDeployIsTakenBack",
		text: "o.At.Sub(o.UnchangedSince) < patience {", with: "o.At.Sub(o.UnchangedSince) < 1000*patience {"},
	{name: "who may not write keeps the lease", file: "internal/runner/hold.go", pkg: root, story: "TestReaderCostsNoTick",
		text: "\tif !errors.Is(err, lease.ErrNotReadBack) && (!errors.Is(err, store.ErrLost) || errors.Is(err, errSlotLost)) {\n\t\tr.release(s)", with: "\tif false {\n\t\tr.release(s)"},
	{name: "who may not write its outcome renews for ever", file: "internal/lease/write.go", pkg: root, story: "TestHolderThatCannotWriteLetsLeaseExpire",
		text: "\t\t\t\ts.giveUp()", with: ""},
	{name: "who is alone writes its outcome for ever", file: "internal/lease/write.go", pkg: root, story: "TestOutcomeThatStoreDoesNotTakeStopsNoJob",
		text: "\t\t\t\tcancel(errNotTaken)", with: ""},
	{name: "an outage ends the patience with an outcome", file: "internal/lease/write.go", pkg: root, story: "TestOutcomeAfterOutageIsKept",
		text: "\t\t\t\tanswered = max(answered, now)", with: ""},
	{name: "a suspension uses up the patience with an outcome", file: "internal/lease/write.go", pkg: root, story: "TestOutcomeAfterSuspensionIsKept",
		text: "suspended := now-tried > maxPause+s.Length", with: "suspended := now-tried < 0"},
	{name: "a renewal that failed counts as the revival", file: "internal/lease/write.go", pkg: root, story: "TestOutcomeAfterOutageIsKept",
		text: "\tif err = s.Renew(ctx); err == nil {\n\t\ts.ledger.revived = s.ledger.gaveUp\n", with: "\t\ts.ledger.revived = s.ledger.gaveUp\n\t\tif err = s.Renew(ctx); err == nil {\n"},
	{name: "a claim that runs nothing is told as running", file: "internal/runner/unanswered.go", pkg: root, story: "TestAppliedClaimThatIsCutOffIsTold",
		text: "run.Status == store.Running && u.session", with: "run.Status == \"\" && u.session"},
	{name: "a longer lease outlives its holder", file: "internal/plan/next.go", pkg: root, story: "TestShorterLeaseComesIntoForceAfterDeath",
		text: "r.MayRun() && seen != store.Expired", with: "r.MayRun()"},
	{name: "who is cut off after a claim keeps the lease", file: "internal/runner/hold.go", pkg: root, story: "TestRunByHandFreesItsOwnLease",
		text: "\t\tr.denial.left = unanswered{session: s, err: err}\n", with: ""},
	{name: "who is cut off after an acquisition keeps the lease", file: "internal/runner/step.go", pkg: root, story: "TestRunByHandFreesItsOwnLease",
		text: "\t\tr.denial.left = unanswered{session: s, err: fmt.Errorf(\"%w: %w\", errAcquisition, err)}\n", with: ""},
	{name: "a claim that was applied is released", file: "internal/runner/unanswered.go", pkg: root, story: "TestAppliedClaimOfCutOffReplicaKeepsLease",
		text: "!u.idle && r.view.entry.ETag != u.session.ETag() || ", with: ""},
	{name: "a claim is run after a stop", file: "internal/runner/run.go",
		text: "\tif r.stops(stop, c, rec.Run.Tick) {\n\t\tif c.take", with: "\tif false {\n\t\tif c.take"},
	{name: "a token comes back after quick deletions", file: "internal/runner/hold.go", pkg: root, story: "TestTokensGrowOverDeletions",
		text: "r.existed(s).Add(time.Second))", with: "r.existed(s).Add(-time.Second))"},
	{name: "a stalled run keeps no end under skipped ticks", file: "internal/plan/finish.go",
		text: "slices.IndexFunc(r.History, func", with: "slices.IndexFunc(r.History[:min(1, len(r.History))], func"},
	{name: "a count that stopped looks exact", file: "internal/plan/past.go",
		text: "min(n, maxCount), n > maxCount", with: "min(n, maxCount), false"},
	{name: "a tick that both schedules name is dropped", file: "internal/plan/claim.go",
		text: "\t\treturn r.Due.Add(-1)\n", with: "\t\treturn now\n"},
	{name: "a tick that both schedules name is dropped after a stopped run", file: "internal/plan/policy.go", pkg: root, story: "TestCommonTickIsOwedAfterStoppedRun",
		text: "\t\treturn r.Due\n\t}\n\treturn p.unclaimed(r)\n", with: "\t\treturn r.Due\n\t}\n\treturn p.NextTick(r)\n"},
	{name: "a tick that both schedules name is dropped after a new record", file: "internal/plan/wake.go", pkg: root, story: "TestCommonTickIsOwedByNewJob",
		text: "\tr.Due = p.due(&r)\n", with: ""},
	{name: "a call tells an outcome that nobody has written", file: "internal/plan/past.go", pkg: root, story: "TestRequestHasOneOutcome",
		text: "\tcase r.Run.Request != request, r.Run.Status == store.Running && !lease.Live():\n\t\treturn store.Outcome{}, false\n",
		with: "\tcase r.Run.Request != request:\n\t\treturn store.Outcome{}, false\n\tcase r.Run.Status == store.Running && !lease.Live():\n\t\treturn LastOutcome(r, store.Abandoned, endReason(r, lease == store.Broken)), true\n"},
	{name: "who gets no answers does not give way", file: "internal/runner/denial.go", pkg: root, story: "TestHangingWritesDelayNoTickAfterPause",
		text: "d.gaveWay = d.unproved && !d.gaveWay", with: "d.gaveWay = false"},
	{name: "who gets no answers acquires before a tick like others", file: "internal/runner/ahead.go", pkg: root, story: "TestHangingWritesCostNoTickOfMany",
		text: "\tcase r.denial.unproved: //", with: "\tcase false: //"},
	{name: "who gets no answers never finds out that it does", file: "internal/runner/step.go", pkg: root, story: "TestReplicaThatWritesAgainRunsTicks",
		text: "(r.denial.lasting() || r.denial.unproved)", with: "r.denial.lasting()"},
	{name: "who is cut off after an empty write keeps the lease", file: "internal/runner/annotate.go", pkg: root, story: "TestReplicaThatIsCutOffCostsNoTick",
		text: "\t\tr.denial.left = unanswered{s, cmp.Or(err, rerr), true}\n", with: ""},
	{name: "a process that is started owes no tick everywhere", file: "internal/runner/everyreplica.go",
		text: "\tcase c.bounded && len(c.ran) == 0:\n", with: "\tcase c.bounded && len(c.ran) == 0 && !settled.IsZero():\n"},
	{name: "each write of a hold is remembered", file: "internal/lease/ledger.go", pkg: ".", story: "TestMemoryDoesNotGrowWithSaves",
		text: "\tl.ours = slices.DeleteFunc(l.ours, func(m signature) bool { return m.nonce != nonce })\n", with: "",
		also: [2]string{"\t\tl.ours = slices.Delete(l.ours, 0, extra)\n", "\t\t_ = extra\n"}},
	{name: "an outcome is told before it is written", file: "internal/runner/run.go",
		text: "\terr := r.confirm(ctx, c, s, func(last ", with: "\ta.Emit(event.Event{Kind: event.Ended, Outcome: plan.LastOutcome(rec, status, reason), Took: took})\n\terr := r.confirm(ctx, c, s, func(last ",
		also: [2]string{"\ta.Emit(event.Event{Kind: event.Ended, Outcome: outcome, Took: took})\n", ""}},
	{name: "ticks that came due under a run are not told", file: "internal/runner/run.go",
		text: "\ttold.tell(r.view.rec.History)\n", with: ""},
	{name: "ticks that came due under a stalled run are told twice", file: "internal/runner/run.go",
		text: "\tn.history = history\n", with: ""},
	{name: "the end of a run does not count its claim", file: "internal/runner/run.go",
		text: "\terr := r.confirm(ctx, c, s, func(last ", with: "\tend = rec.Run.Claimed.Add(took)\n\terr := r.confirm(ctx, c, s, func(last "},

	{name: "a run by hand moves what came before", file: "internal/plan/past.go",
		text: "f.Status == store.Succeeded && f.Request == \"\" {", with: "f.Status == store.Succeeded {"},
	{name: "what came before is the last tick, whatever became of it", file: "internal/plan/past.go",
		text: "f.Status == store.Succeeded && f.Request == \"\" {", with: "f.Request == \"\" {"},
	{name: "what came before is forgotten with the history", file: "internal/plan/past.go", pkg: root, story: "TestPreviousOutlivesTheHistory",
		text: "\t\tr.Past.Succeeded = LastSuccess(r)\n", with: ""},
	{name: "what came before is the record's word alone", file: "internal/plan/past.go", pkg: root, story: "TestPreviousOfARecordOfAProgramBefore",
		text: "\tlast := r.Past.Succeeded\n", with: "\tlast := r.Past.Succeeded\n\tif !last.IsZero() {\n\t\treturn last\n\t}\n"},

	{name: "a tick that has succeeded in time is late", file: "internal/plan/late.go",
		text: "return f.End.Sub(f.Tick) > p.FinishBy", with: "return true"},
	{name: "a failed tick is told when it is over", file: "internal/plan/late.go", pkg: claims, story: "TestJudge",
		text: "\t\tcase f.Tick.After(by) && i < lateKept:\n", with: "\t\tcase i < 0:\n"},
	{name: "the holder of a run does not tell that it is late", file: "internal/runner/late.go", pkg: root, story: "TestLateTickIsToldOnce",
		text: "\t\t\tr.tellLateUnder(ctx, s)\n", with: ""},
	{name: "nobody tells between two ticks that one is late", file: "internal/plan/late.go", pkg: root, story: "TestLateTickIsToldOnce",
		text: "\t\treturn Action{What: Tell, After: a.After}\n", with: "\t\treturn a\n"},
	{name: "a claim does not tell of late ticks", file: "internal/runner/hold.go", pkg: root, story: "TestLateTicksOfATimeWithoutReplicas",
		text: "\tr.emitLate(late, nil)\n", with: "\t_ = late\n"},
	{name: "each replica tells of a late tick", file: "internal/plan/late.go", pkg: claims, story: "TestJudge",
		text: "\tr.Past.Judged = instant.Later(r.Past.Judged, to)\n}", with: "\tr.Past.Judged = instant.Later(r.Past.Judged, to)\n\tif p.FinishBy > 0 && late.Count > 0 {\n\t\tr.Past.Judged = p.Ticks.Last(after)\n\t}\n}"},
	{name: "ticks of a pause are late", file: "internal/plan/late.go", pkg: root, story: "TestLateAndPaused",
		text: "from, to := nextPause(through, last, pauses)", with: "from, to := nextPause(through, last, pauses[:0])"},
	{name: "a tick that nobody has begun is not late", file: "internal/plan/late.go", pkg: claims, story: "TestJudge",
		text: "\tif p.judgeSettled(r, by, &late) {", with: "\tif p.judgeSettled(r, by, &late) && r.MayRun() {"},
	{name: "what leaves the history is told by nobody", file: "internal/plan/late.go", pkg: root, story: "TestLateOutcomesThatHistoryForgets",
		text: "f.Tick.After(by) && i < lateKept", with: "f.Tick.After(by) && i >= 0"},

	{name: "a telling that was not sent counts as told", file: "internal/runner/late.go", pkg: root, story: "TestLateTickOfAnOutageIsToldAfterIt",
		text: "s.WriteOrForget(", with: "s.WriteBestEffort("},
	{name: "long reasons cost outcomes that are still to be judged", file: "store/encode.go", pkg: root, story: "TestLateTicksWithLongReasonsAreTold",
		text: "\tcase len(r.History) > kept, ", with: "\tcase len(r.History) > 1, "},
	{name: "a replica without FinishBy wipes what is to be told", file: "internal/plan/late.go", pkg: root, story: "TestLateTickSurvivesAProgramWithoutFinishBy",
		text: "\tif !p.judges(r) {\n\t\treturn late", with: "\tif !p.judges(r) {\n\t\tr.Past = store.Past{Succeeded: r.Past.Succeeded}\n\t\treturn late"},
	{name: "a tick of the schedule before is never late", file: "internal/plan/late.go", pkg: root, story: "TestLateTickOfAScheduleBefore",
		text: "late.Count+max(1, p.Ticks.Count(after, to, most))", with: "late.Count+p.Ticks.Count(after, to, most)"},
	{name: "each late tick costs a write that only tells of it", file: "internal/plan/late.go", pkg: root, story: "TestLateTicksAreToldOnceAMinute",
		text: "\t\tr.Past.Told = now.Truncate(time.Millisecond)\n", with: ""},

	// What it has found before: docs/correctness.md.
	{name: "the wall clock tells when a replica started", file: "internal/runner/replica.go", pkg: root, story: "TestStartInOutageIgnoresWallClock",
		text: "r.Clock.Best().Add(", with: "r.Wall().Add("},
	{name: "trouble of a hold outlasts it", file: "internal/runner/hold.go", pkg: root, story: "TestTroubleEndsWithItsLease",
		text: "\ts.Stop()\n\tr.reached()", with: "\ts.Stop()\n"},
	{name: "no look at the lease before a further try", file: "internal/supervise/attempt.go", pkg: root, story: "TestNoTryWithoutLease",
		text: "\tif a.Under.Lease != nil && a.Under.Lease.Expired() {", with: "\tif false {"},
	{name: "a look does not allow for the lag of the clock", file: "internal/plan/next.go", pkg: root, story: "TestFollowerLooksOnceInThird",
		text: "\twait += wait / time.Duration(c.Drift-1)\n", with: ""},
	{name: "a late renewal brings the trust back", file: "internal/lease/trust.go", pkg: root, story: "TestRenewalAnsweredLateExtendsNothing",
		text: "\tif now < t.end() {", with: "\tif true {"},
	{name: "Overrun comes late", file: "internal/supervise/overrun.go", pkg: root, story: "TestProgressDoesNotDelayOverrun",
		text: "\tif !lease.WaitFor(over, over, w.under.callTimeout()) {", with: "\tif !lease.WaitFor(over, over, 2*w.under.callTimeout()) {"},
	{name: "a nonce alone tells whose a write is", file: "internal/lease/ledger.go", pkg: root, story: "TestHandwrittenRecordIsNotOurs",
		text: "m.nonce == nonce && m.digest == digest }", with: "m.nonce == nonce }"},
	{name: "a run stalls though its lease is lost", file: "internal/supervise/handle.go", pkg: supervise, story: "TestALostLeaseCountsBeforeAStall",
		text: " || h.under.Lease != nil && h.under.Lease.Context().Err() != nil", with: ""},
	{name: "chance decides between a verdict and a look", file: "internal/supervise/watchdog.go", pkg: supervise, story: "TestAWaitingVerdictIsJudgedFirst",
		text: "\t\tif w.judgeWaiting() {\n\t\t\tcontinue\n\t\t}\n", with: ""},

	// Machines that share a directory, runs that an operator has ended, and records
	// of the future.
	{name: "a lease of another start of a machine has ended", file: "host/local/instant.go", pkg: stores, story: "TestMachinesShareADirectory",
		text: "end = now.boot + l.Length", with: "end = now.boot"},
	{name: "the times since two starts are compared", file: "host/local/instant.go", pkg: stores, story: "TestMachinesShareADirectory",
		text: "\tcase l.Boot == now.start:", with: "\tcase true:"},
	{name: "a short HeartbeatTimeout is announced", file: "internal/supervise/watchdog.go",
		text: "\tif timeout < w.under.Approach {", with: "\tif false {"},
	{name: "an unlock is told as a death", file: "internal/plan/past.go",
		text: "\tcase !r.Run.Unlocked.At.IsZero():\n\t\treturn \"unlocked by \" + r.Run.Unlocked.By\n", with: ""},
	{name: "an unlocked run is told as running", file: "internal/plan/next.go",
		text: "\tif r.Run.Unlocked.At.IsZero() || !r.MayRun() {", with: "\tif r.Run.Unlocked.At.IsZero() || r.MayRun() {"},
	{name: "a log names the tick of a singleton", file: "eventlog.go",
		text: "\tif tick.IsZero() {\n\t\treturn nil\n", with: "\tif false {\n\t\treturn nil\n"},
	{name: "a running tick of the future is believed", file: "internal/plan/unusable.go", pkg: root, story: "TestUnusableRecordIsLeftAlone",
		text: "\tlook(\"tick\", r.Run.Tick)\n", with: ""},
	{name: "a replica of the future is believed", file: "internal/plan/unusable.go", pkg: root, story: "TestUnusableRecordIsLeftAlone",
		text: "\tlook(\"start of a replica (since)\", r.Definition.Since)\n", with: ""},
	{name: "a token is claimed that nobody reads", file: "internal/plan/unusable.go", pkg: root, story: "TestUnusableRecordIsLeftAlone",
		text: "\tif r.Token < store.MaxToken {", with: "\tif true {"},
	{name: "a pause is not looked at before the start", file: "internal/supervise/attempt.go", pkg: root, story: "TestPauseDuringClaim",
		text: "return a.Under.Barred()", with: "return nil"},
	{name: "who cannot read the orders starts all the same", file: "internal/control/watch.go", pkg: root, story: "TestUnreadableOrdersStopAll",
		text: "w.good.sent <= Fresh {", with: "w.good.sent <= 1000*Fresh {"},
	{name: "a run by hand is run once more as an order", file: "internal/plan/request.go", pkg: root, story: "TestRequestRunsOnceByHandOrOrder",
		text: "case knows(r, q.Name):", with: "case false:"},
	{name: "a served order is run by hand", file: "internal/runner/trigger.go", pkg: root, story: "TestServedOrderIsNotRunByHand",
		text: "if plan.Served(v) {", with: "if false {"},
	{name: "a run by hand does not look for orders", file: "internal/runner/trigger.go", pkg: root, story: "TestRunByHandWaitsForOrders",
		text: "return r.replica.Orders.Refresh(ctx)", with: "return nil"},
	{name: "a run by hand serves no order", file: "internal/plan/claim.go", pkg: root, story: "TestOrderThatWasRunByHandIsServed",
		text: "\tserveByHand(&next.Record, v)\n", with: ""},
	{name: "the ticks of a pause are run after it", file: "internal/plan/pause.go", pkg: root, story: "TestPauseWithoutReplicas",
		text: "if tick.After(s.From) &&", with: "if false &&"},
	{name: "a cancelled run has succeeded", file: "internal/supervise/outcome.go", pkg: root, story: "TestCancel",
		text: "return store.Cancelled, cancelledWith(cause, err)", with: "return store.Succeeded, \"\""},
	{name: "an order ends the next run too", file: "internal/runner/orders.go", pkg: root, story: "TestCancelIsForOneRun",
		text: "|| n.run.token != end.Token {", with: "|| end.Token == 0 {"},
	{name: "a resume is about the run that is under way", file: "internal/runner/orders.go", pkg: root, story: "TestResumeDuringFailure",
		text: "last.Token--", with: "last.Token += 0"},
	{name: "a request that is given back is lost", file: "internal/plan/finish.go", pkg: root, story: "TestOrderedRunIsGivenBack",
		text: "r.Orders.Served = claim.Run.Order - 1", with: "r.Orders.Served = claim.Run.Order"},
	{name: "a cancellation dies with its runner", file: "internal/plan/claim.go", pkg: root, story: "TestCancelOutlivesDeath",
		text: "if end := v.Control.End; cancelled(v) {", with: "if end := v.Control.End; end.Cancel && false {"},
	{name: "an outage of the orders is met by each job anew", file: "internal/control/watch.go", pkg: root, story: "TestOutageOfOrdersKeepsEveryReplica",
		text: "|| w.err != nil && w.ended > since", with: ""},
	{name: "a cancellation that came late is not looked for", file: "internal/runner/orders.go", pkg: root, story: "TestCancelOutlivesFailedReads",
		text: "for again && ", with: "for false && again && "},
	{name: "a pause of a job by itself ends with its first run", file: "internal/plan/pause.go", pkg: root, story: "TestSelfPauseBindsBacklog",
		text: "return append(spans, r.Orders.Pauses...)", with: "return spans"},
	{name: "requests of other jobs are kept for ever", file: "internal/control/apply.go", pkg: root, story: "TestDocumentForgetsRequests",
		text: "\tforget(c, o.At)\n", with: ""},
	{name: "orders are read late by one call", file: "internal/control/watch.go", pkg: root, story: "TestPauseEverywhereWithSlowReads",
		text: "wait = w.rest()", with: "wait = Every"},
	{name: "what a listing that fails leaves out is not there", file: "internal/runner/list.go",
		text: "all.whole = err == nil", with: "_ = err\n\tall.whole = true"},
	{name: "a resume is not noted", file: "internal/plan/claim.go", pkg: root, story: "TestResumeOutlivesDocument",
		text: "resume(&next.Record, v.Control) || changed", with: "(resume(&next.Record, v.Control) && p.Ticks.Last(v.Now).After(next.Record.Watermark)) || changed"},
	{name: "a job that pauses itself at a settlement runs on", file: "internal/plan/claim.go", pkg: root, story: "TestPauseAfterStallThatAnotherReplicaSettles",
		text: "changed = resume(&next.Record, v.Control) || changed", with: "if !selfPaused(v.Record, v.Control) {\n\t\tv.Control.Resumed.Token = store.MaxToken\n\t}\n\tchanged = resume(&next.Record, v.Control) || changed"},
	{name: "ticks come before each order", file: "internal/plan/request.go", pkg: root, story: "TestOrderedRunOfJobThatIsBehind",
		text: "return v.Record.Run.Request == \"\" && q.At.Before(v.Record.Run.Claimed)", with: "return false"},
	{name: "a cancellation dies with a claim that is given up", file: "internal/plan/claim.go", pkg: root, story: "TestCancelOutlivesTakenBackClaim",
		text: "returned.Tick.Equal(tick) && cancelled(v) {", with: "returned.Tick.Equal(tick) && false {"},
	{name: "a run by hand forgets a cancellation", file: "internal/plan/request.go", pkg: claims, story: "TestCancelOfTakenBackTickOutlivesRunByHand",
		text: "\tp.claimDue(next, v)\n", with: ""},
	{name: "orders are not read again before a tick", file: "internal/runner/await.go", pkg: root, story: "TestOrdersAreReadAgainBeforeTick",
		text: "\t\tr.refreshOrders(s, left)\n", with: ""},
	{name: "a claim before its tick leaves no doubt", file: "internal/runner/hold.go", pkg: root, story: "TestHangingWritesCostNoTickOfMany",
		text: "\t\t\tr.denial.doubt()\n", with: ""},
	{name: "a cancellation misses the attempt that begins", file: "control.go", pkg: root, story: "TestCancelOfAttemptThatBegins",
		text: "if again := gone == nil && target.RepeatedAs(next); !again {", with: "if gone == nil || target.RepeatedAs(next) {"},
	{name: "an order in doubt is called refused", file: "internal/control/client.go", pkg: root, story: "TestOrderInDoubtSaysSo",
		text: "if !lease.Definite(err) && !refused(err) {", with: "if false {"},
	{name: "a run by hand takes the place of an open tick", file: "internal/plan/request.go", pkg: root, story: "TestOrderedRunLeavesOpenTick",
		text: "v.Claims == NoRun || unsettled(r):", with: "v.Claims == NoRun:"},

	// Leases that are acquired before a tick, and claims that are written before it.
	{name: "no look at the trust at an armed tick", file: "internal/runner/await.go", story: "TestSuspensionOverAnArmedTick",
		text: "\tcase s.Expired():", with: "\tcase false:",
		other: "internal/supervise/attempt.go", also: [2]string{"\tif a.Under.Lease != nil && a.Under.Lease.Expired() {", "\tif false {"}},
	{name: "an armed run begins before its tick", file: "internal/runner/await.go",
		text: "err != nil || left <= 0 {", with: "err != nil || left <= 300*time.Millisecond {"},
	{name: "a stop releases the lease over an armed claim", file: "internal/runner/run.go",
		text: "\t\t\tdone()\n\t\t\treturn r.takeBack(ctx, c, s, before, err, a)\n", with: "\t\t\tdone()\n\t\t\treturn true\n"},
	{name: "what takes a claim back leaves its token", file: "internal/plan/finish.go",
		text: "\tr := claim.Clone()\n", with: "\tr := claim.Clone()\n\tr.Token = before.Token\n"},
	{name: "a stop leaves a lease that was acquired ahead", file: "internal/runner/hold.go",
		text: "\tcase !ok:\n\t\treturn r.leave(ctx, stop, c, s), false\n", with: "\tcase !ok:\n\t\treturn r.readAgain(0), false\n"},
	{name: "an armed run of a dead replica has never begun", file: "internal/plan/claim.go",
		text: "\tr := v.Record\n\tnext = Claim{Record: r.Clone()}\n",
		with: "\tif v.Record.Run.Armed && v.Record.MayRun() {\n\t\tnever := v.Record.Clone()\n\t\tnever.Run.Status, never.Run.Tick, never.Run.Finished = store.Abandoned, never.Watermark, never.Run.Claimed\n\t\tv.Record = &never\n\t}\n\tr := v.Record\n\tnext = Claim{Record: r.Clone()}\n"},
	{name: "an armed run is settled before its tick", file: "internal/plan/claim.go", story: "TestBreakOfAnArmedRun",
		text: "\tif early(v) {\n\t\treturn Claim{}, false\n", with: "\tif false {\n\t\treturn Claim{}, false\n",
		other: "internal/plan/observation.go", also: [2]string{"\tif v.Record.MayRun() && v.State != store.Expired &&", "\tif v.Record.MayRun() && !v.Record.Run.Armed && v.State != store.Expired &&"}},
	{name: "no hold-off after a break of an armed claim", file: "internal/plan/observation.go", story: "TestBreakOfAnArmedRun",
		text: "\tif v.Record.MayRun() && v.State != store.Expired &&", with: "\tif v.Record.MayRun() && !v.Record.Run.Armed && v.State != store.Expired &&"},
	{name: "a follower that expects another replica never looks again", file: "internal/plan/ahead.go",
		text: "\treturn Action{After: max(0, p.lookAgain(v, o, o.Expected)), Read: true}, true\n", with: "\treturn Action{After: 24 * time.Hour}, true\n",
		also: [2]string{"\tif tick.IsZero() || p.Ticks.Last(v.Now).After(tick) || p.unclaimed(v.Record).After(tick) {", "\tif tick.IsZero() {"}},
	{name: "an armed run begins though it may be taken back", file: "internal/runner/run.go", story: "TestAnswerToATakeBackIsLost",
		text: "\t\t\tdone()\n\t\t\treturn r.takeBack(ctx, c, s, before, err, a)\n",
		with: "\t\t\ttrying, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.CallTimeout())\n\t\t\terr = s.WriteBestEffort(trying, func(claim *store.Record) { *claim = r.job.Policy.TakeBack(before, claim) })\n\t\t\tif cancel(); err == nil {\n\t\t\t\tdone()\n\t\t\t\treturn true\n\t\t\t}\n"},
	{name: "an outcome waits for a start that hangs", file: "internal/runner/starts.go",
		text: "\tcase r.ahead == 0, r.made == r.seen:\n", with: "\tcase r.ahead == 0:\n",
		also: [2]string{"\tif left <= 0 {\n", "\tif left = max(left, d); left < 0 {\n"}},
	{name: "a late renewal revives an armed claim", file: "internal/lease/trust.go", story: "TestLateRenewalUnderAnArmedRun",
		text: "\tif now < t.end() {", with: "\tif true {",
		other: "internal/lease/session.go", also: [2]string{"\t\ts.lose(ErrNotRenewed)\n\t}\n\treturn min(left, s.lookAgain())", "\t}\n\treturn max(s.lookAgain(), min(left, s.lookAgain()))"}},

	// Locks, and what is done once.
	{name: "a lock is held before its claim", file: "internal/runner/hold.go",
		text: "\tif err := r.claim(",
		with: "\tif claim.Run && c.take != nil {\n\t\tr.view.rec = claim.Record\n\t\ta := r.attempt(stop, claim.Record.Run.Tick, 1, claim.Record.Token, \"\", func() {})\n\t\ta.Under.Lease, a.Under.Record = s, &notices{session: s, policy: &r.job.Policy, clock: r.client.Clock, orders: r.orders, settled: r.settled, precede: r.precede}\n\t\ta.Run()\n\t}\n\tif err := r.claim("},
	{name: "no hold-off after a break of a lock's lease", file: "internal/runner/hold.go", pkg: root, story: "TestBrokenLockIsHeldOff",
		text: "\tif wait > 0 && !r.holdOff(stop, s, wait) {", with: "\tif wait > 0 && c.take == nil && !r.holdOff(stop, s, wait) {"},
	{name: "the token of a lock does not grow", file: "internal/plan/claim.go",
		text: "\tr.Token++\n", with: "\tif v.Request == \"\" {\n\t\tr.Token++\n\t}\n"},
	{name: "what is done once is done again", file: "internal/mutex/once.go",
		text: "\tif !rec.Succeeded.IsZero() || len(rec.History) > 0 && done(rec.History[0].Status) {", with: "\tif false {"},
	{name: "what has failed counts as done once", file: "internal/mutex/once.go",
		text: "return s == store.Succeeded || s == store.Skipped", with: "return s == store.Succeeded || s == store.Skipped || s == store.Failed"},
	{name: "what is done once is given up after one failure", file: "internal/mutex/once.go",
		text: "failures >= o.Retry.Most {", with: "failures >= 1 {"},
	{name: "what is done once is tried again though it has failed for good", file: "internal/mutex/once.go", pkg: root, story: "TestOnceThatFailsForGood",
		text: "\tif forGood(rec) {", with: "\tif false {"},
	{name: "what is done once is given up after a stop", file: "internal/mutex/wish.go", pkg: root, story: "TestOnceThatIsStoppedIsNotGivenUp",
		text: "\tif rec.Run.Status != store.Failed {", with: "\tif false {"},
	{name: "what is done once ends with the first trouble", file: "internal/mutex/once.go", pkg: root, story: "TestOnceLost",
		text: "\tif errors.Is(err, errGivenUp) || runner.Unusable(err) {",
		with: "\tif _, held := errors.AsType[*runner.HeldError](err); !held && err != nil && !errors.As(err, new(*tooEarly)) {"},
	{name: "a caller that waits for a lock never looks again", file: "internal/mutex/pace.go",
		text: "\treturn pause\n}\n\n// until", with: "\treturn time.Hour\n}\n\n// until"},
	{name: "a caller that waits for a lock asks all the time", file: "internal/mutex/pace.go",
		text: "\treturn pause\n}\n\n// until", with: "\treturn time.Millisecond\n}\n\n// until"},
	{name: "a function goes on without its lock", file: "lock.go",
		text: "return f(context.WithValue(ctx, ", with: "return f(context.WithValue(context.WithoutCancel(ctx), "},
	{name: "a lock that was lost is no error", file: "internal/mutex/try.go", pkg: root, story: "TestLockLostIsAnError",
		text: "if lost := h.Leased(); lost", with: "if lost := h.Leased(); false && lost"},
	{name: "a claim of a lock that others have settled is a success", file: "internal/runner/take.go", pkg: root, story: "TestLockClaimThatOthersHaveSettled",
		text: "\tcase err == nil:\n", with: "\tcase err == nil && false:\n"},
	{name: "a panic under a lock is no error if its outcome is not written", file: "internal/mutex/try.go", pkg: root, story: "TestLockPanicWithoutOutcome",
		text: "\t\t\tpanic(p)\n", with: "\t\t\tt.err = nil\n\t\t\tpanic(p)\n"},
	{name: "the holders of two slots have the same ID", file: "run.go",
		text: "\tif r.slot > 0 {", with: "\tif false {"},
	{name: "TryDo does not look at the lock", file: "internal/mutex/mutex.go",
		text: "\tt := m.newTry(work, func() {})\n", with: "\tif m.jitter.UpTo(8) == 0 {\n\t\treturn store.ErrHeld\n\t}\n\tt := m.newTry(work, func() {})\n"},
	{name: "a job waits for a slot whose entry fails", file: "internal/mutex/try.go", pkg: root, story: "TestGroupWaitsForSlotThatFails",
		text: "runner.Terms{Brief: t.brief}", with: "runner.Terms{}"},
	{name: "a lock of slots gives up in an outage", file: "internal/mutex/mutex.go", pkg: root, story: "TestLockOfSlotsWaitsForStore",
		text: "(patience < forEver || !runner.Passing(err)):", with: "true:"},

	// Jobs that follow others.
	{name: "a follower runs after a failure", file: "internal/plan/fate.go",
		text: "\t\tcase o.Status != store.Succeeded && !p.AfterAny:", with: "\t\tcase o.Status != store.Succeeded && o.Status != store.Failed && !p.AfterAny:"},
	{name: "a follower runs before the end", file: "internal/runner/preceding.go",
		text: "\t\tk.History = slices.Clone(rec.History)\n",
		with: "\t\tif rec.Run.Status == store.Running && rec.Run.Request == \"\" && rec.Run.Tick.After(k.Watermark) {\n\t\t\tk.Watermark = rec.Run.Tick\n\t\t\trec.History = append([]store.Outcome{{Tick: rec.Run.Tick, Status: store.Succeeded}}, rec.History...)\n\t\t}\n\t\tk.History = slices.Clone(rec.History)\n"},
	{name: "a follower reads what its own replica runs", file: "internal/runner/preceding.go", pkg: root, story: "TestFollowerReadsNothingOfItsOwnReplica",
		text: " && !p.state.get().busy {", with: " {"},
	{name: "a call does not read the jobs before a follower anew", file: "internal/runner/preceding.go", pkg: root, story: "TestEachCallReadsThePredecessor",
		text: "return b.readAt.Before(l.after) || ", with: "return "},
	{name: "a follower does not hear of a stall", file: "internal/runner/run.go", pkg: root, story: "TestFollowerOfStalledRunOfItsOwnReplica",
		text: "\t\tn.precede(&stalled)\n", with: ""},
	{name: "a call leaves a follower to one that does not know", file: "internal/runner/turn.go", pkg: root, story: "TestCallWaitsForRunOfFollower",
		text: "if !waits || !t.follow(ctx) {", with: "if !waits || true {"},
	{name: "a follower guesses what is not known", file: "internal/plan/predecessor.go", pkg: root, story: "TestFollowerOfForgottenOutcomes",
		text: "\treturn nil, until\n", with: "\treturn &store.Outcome{Status: store.Succeeded}, until\n"},
	{name: "a follower takes a run by hand for the tick", file: "internal/plan/predecessor.go", pkg: root, story: "TestFollowerTakesNoRunByHandForATick",
		text: "\t\tcase o.Request != \"\":\n", with: "\t\tcase o.Request != \"\" && o.Tick.After(tick):\n\t\t\treturn o, tick\n\t\tcase o.Request != \"\":\n"},
	{name: "the deadline of a follower counts from its tick", file: "internal/plan/fate.go", pkg: root, story: "TestFollowerStartingDeadline",
		text: "\t\tdefault:\n\t\t\tf.since = instant.Later(f.since, o.End)\n", with: "\t\tdefault:\n\t\t\tf.since = tick\n"},
	{name: "a follower skips what came due under its run", file: "internal/plan/finish.go", pkg: root, story: "TestFollowerThatIsBehind",
		text: "p.Ticks == nil || p.Follows() || p.Missed", with: "p.Ticks == nil || p.Missed"},

	// Groups of jobs.
	{name: "a run goes on without the slot of its group", file: "internal/runner/hold.go", pkg: root, story: "TestGroupSlotIsLost",
		text: "\tdefer c.slot.bind(s)()\n", with: ""},
	{name: "a run by hand needs no slot of the group", file: "internal/runner/group.go", pkg: root, story: "TestGroupByHandAndByCall",
		text: "\tif !next.Run || !enough {", with: "\tif !next.Run || !enough || c.request != \"\" {"},
	{name: "a call needs no slot of the group", file: "internal/runner/step.go", pkg: root, story: "TestGroupByHandAndByCall",
		text: "if r.job.Group != nil && c.slot.held == nil {", with: "if r.job.Group != nil && c.slot.held == nil && (!c.bounded || c.request != \"\") {"},
	{name: "the ticks of a full group are told as missed", file: "internal/plan/pause.go", pkg: root, story: "TestGroupWithoutFreeSlotSkips",
		text: "\tif !waited.To.IsZero() {", with: "\tif false {"},
	{name: "a group has a slot too many", file: "group.go",
		text: "entry.Group, name, s.Groups[name], length)", with: "entry.Group, name, s.Groups[name]+1, length)"},
	{name: "a tick is told as waiting for a slot of its group that was free", file: "internal/runner/group.go",
		text: "\tgot, err := r.inSlot(", with: "\tif next.Record.Run.Tick.Unix()%7 == 0 {\n\t\tr.waits(c, next.Record.Run.Tick)\n\t\treturn r.readAgain(groupPatience)\n\t}\n\tgot, err := r.inSlot("},
	{name: "who takes a lock that was broken never ends its hold-off", file: "internal/runner/hold.go", pkg: root, story: "TestBrokenLockOfCallersWithLittleTime",
		text: "\t\tif c.bounded && c.take == nil {", with: "\t\tif c.bounded {"},
	{name: "the trust of a beat counts from its answer", file: "internal/lease/trust.go",
		text: "m.sent + trusted(m.beat)}", with: "now + trusted(m.beat)}"},
	{name: "a beat that is sent again counts from then", file: "internal/lease/ledger.go", pkg: root, story: "TestBeatsOfUnclearOutcome",
		text: "\tif _, known := l.find(p.nonce, digest); known {\n\t\treturn\n\t}\n", with: "\tl.ours = slices.DeleteFunc(l.ours, func(m signature) bool { return m.nonce == p.nonce })\n"},
	{name: "a beat that is read back counts from the read", file: "internal/lease/write.go", pkg: root, story: "TestBeatsOfUnclearOutcome",
		text: "\t\ts.applied(entry.Revision, last)\n", with: "\t\tfor i := range s.ledger.ours {\n\t\t\ts.ledger.ours[i].sent = s.client.Clock.Elapsed()\n\t\t}\n\t\ts.applied(entry.Revision, last)\n"},
	{name: "renewals extend the trust beyond the beats", file: "internal/lease/trust.go",
		text: "\tif t.beating.length == 0 {\n\t\treturn t.until\n\t}\n\treturn min(t.until, t.beating.until)\n", with: "\treturn t.until\n"},
	{name: "beats extend the trust beyond the lease", file: "internal/lease/trust.go", pkg: root, story: "TestBeatsAloneDoNotKeepShortLease",
		text: "\treturn min(t.until, t.beating.until)\n", with: "\treturn t.beating.until\n"},
	{name: "a new beat does not begin the watch anew", file: "internal/plan/observation.go", pkg: claims, story: "TestSilent",
		text: "\tif o.etag != e.ETag {\n", with: "\tif o.etag == \"\" {\n", other: "internal/plan/beat.go", also: [2]string{"o.etag == \"\" || o.etag != v.ETag", "o.etag == \"\""}},
	{name: "a follower goes by a shorter beat than the record's", file: "internal/plan/beat.go",
		text: "\tlength = silentAfter(length)\n", with: "\tlength = length * 2 / 3\n"},
	{name: "no wait for the last beat after an operator's break", file: "internal/plan/observation.go", pkg: root, story: "TestUnlockedShortLease",
		text: "beats && v.State != store.Expired && o.RecreatedAt.IsZero() {\n\t\treturn left\n", with: "beats && v.State != store.Expired && o.RecreatedAt.IsZero() {\n\t\treturn left * 0\n"},
	{name: "nobody replaces a holder that sends no beat", file: "internal/plan/next.go", pkg: root, story: "TestDeadHolderOfShortLease",
		text: " && todo && o.silent(v):", with: " && todo && o.silent(v) && false:"},
	{name: "who waits for a short lease asks as often as for one of the store", file: "internal/plan/next.go", pkg: claims, story: "TestNext",
		text: "half := cmp.Or(p.Beat, p.Lease) / 6 / 2", with: "half := cmp.Or(p.Lease, p.Beat) / 6 / 2"},
	{name: "a hand-over is forgotten between outcome and release", file: "internal/plan/observation.go", pkg: root, story: "TestHandOverIsNear",
		text: "\tcase !r.Run.Stopping && !over:\n", with: "\tcase !r.Run.Stopping || over:\n"},
	{name: "a replica is wanted just before it can replace a holder that beats", file: "internal/plan/wanted.go", pkg: root, story: "TestReplicaIsWantedAtEndOfShortLease",
		text: "\t\treturn silentAfter(beat)\n", with: "\t\treturn beat\n"},
	{name: "after an unlock a status tells the lease of the store", file: "internal/plan/next.go", pkg: claims, story: "TestWaits",
		text: "\tif beat := r.Beats(); beat > 0 {\n\t\tthird, lease", with: "\tif beat := r.Beats(); beat < 0 {\n\t\tthird, lease"},
	{name: "who takes over from a holder that beats waits long for a lost answer", file: "internal/lease/client.go", pkg: root, story: "TestLostAnswerDelaysTakeOverLittle",
		text: "\treturn min(c.CallTimeout(), max(beat/3, leastHaste))\n", with: "\treturn c.CallTimeout()\n"},
	{name: "who is far from the store never learns what a holder that beats has written", file: "internal/lease/client.go", pkg: root, story: "TestSlowFollowerOfShortLease",
		text: "\treturn c.readWithin(ctx, c.CallTimeout())\n", with: "\treturn c.readWithin(ctx, min(max(c.Hasty, leastHaste), c.CallTimeout()))\n"},
	{name: "an operator's break of a lease that beats is told as a death", file: "internal/plan/past.go", pkg: root, story: "TestBrokenShortLeaseIsTold",
		text: "\tcase v.Break.ByOperator || v.State", with: "\tcase v.State"},
	{name: "a replica's break of a lease that beats is told as an unlock", file: "internal/plan/beat.go", pkg: root, story: "TestDeadHolderOfShortLeaseIsNotToldAsUnlocked",
		text: " && o.At.Sub(after) < r.Beats()", with: ""},
	{name: "a claim has the beat of the one before", file: "internal/plan/claim.go",
		text: "\tr.Beat = store.Beat{}\n", with: "\tr.Beat.Token = r.Token\n"},

	// Ticks that are run again.
	{name: "the cursor of a backfill stays with its claim", file: "internal/plan/request.go",
		text: "\twas.Through, was.Attempt, was.Deaths = tick, 0, 0\n", with: "\twas.Attempt, was.Deaths = 0, 0\n"},
	{name: "a backfill leaves out a tick", file: "internal/plan/backfill.go",
		text: "tick := p.Ticks.Next(instant.Later(s.From, through))", with: "tick := p.Ticks.Next(p.Ticks.Next(instant.Later(s.From, through)))"},
	{name: "a backfill comes before a tick that is due", file: "internal/plan/claim.go",
		text: "\tif passedOver(v) {", with: "\tchanged = p.claimBackfill(&next, v) || changed\n\tif !next.Run && passedOver(v) {"},
	{name: "a tick of a backfill is run again after its outcome", file: "internal/plan/finish.go",
		text: "\tcase isBackfill(r) && p.endedEarly(r):", with: "\tcase isBackfill(r) && p.Interrupted == Rerun && status != store.Cancelled:"},
	{name: "a backfill moves the watermark", file: "internal/plan/finish.go",
		text: "\t\tsettleBackfilled(r, LastOutcome(r, status, reason))\n", with: "\t\tsettleBackfilled(r, LastOutcome(r, status, reason))\n\t\tr.Watermark = instant.Later(r.Watermark, p.Ticks.Next(r.Watermark))\n",
		also: [2]string{"\t\"github.com/soloist-go/soloist/store\"\n", "\t\"github.com/soloist-go/soloist/internal/instant\"\n\t\"github.com/soloist-go/soloist/store\"\n"}},
	{name: "a tick is skipped for a run of a backfill", file: "internal/plan/finish.go", pkg: root, story: "TestBackfillGivesWay",
		text: " || isBackfill(r) ||", with: " ||"},
	{name: "a backfill that was cancelled goes on", file: "internal/plan/backfill.go", pkg: root, story: "TestBackfillIsCancelled",
		text: "return b.On() && b.Seq == seq", with: "return b.Seq == seq"},
	{name: "a backfill ends with the death of its runner", file: "internal/plan/request.go", pkg: root, story: "TestBackfillOutlivesReplicas",
		text: "\tif repeats && r.Backfill.Seq == r.Run.Order && inForce(r, v, r.Run.Order) {\n", with: "\tif repeats && r.Backfill.Seq == r.Run.Order && inForce(r, v, r.Run.Order) {\n\t\tnext.Record.Backfill.Through = v.Control.Backfill.To\n\t\treturn true\n"},
	{name: "a backfill whose claim was given up skips the tick", file: "internal/plan/backfill.go", pkg: root, story: "TestBackfillIsGivenBack",
		text: "r.Backfill.Deaths = claim.Tick.Add(-1), 0", with: "r.Backfill.Deaths = claim.Tick, 0"},
	{name: "several ticks at a time leave out one", file: "internal/plan/several.go", pkg: root, story: "TestBackfillInParallel",
		text: "Attempt: 1}), tick\n", with: "Attempt: 1}), p.Ticks.Next(tick)\n"},
	{name: "several ticks at a time are one more than asked for", file: "internal/plan/several.go", pkg: root, story: "TestBackfillInParallel",
		text: "min(fill.Parallel, MaxParallel)", with: "min(fill.Parallel+1, MaxParallel)"},
	{name: "one of several ticks is run again after its outcome", file: "internal/plan/several.go", pkg: root, story: "TestBackfillInParallel",
		text: "\t\t\topen = slices.Delete(open, i, i+1)\n", with: "\t\t\to.Token = 0\n"},
	{name: "several ticks end with the death of their runner", file: "internal/plan/request.go", pkg: root, story: "TestBackfillInParallelOutlivesReplicas",
		text: "o.Deaths, o.Token = o.Deaths+1, 0\n\t\t\t\treturn openFate{again: true}\n", with: "return openFate{}\n"},
	{name: "one of several ticks has its outcome with the last of them", file: "internal/runner/several.go", pkg: root, story: "TestBackfillInParallelKeepsOutcomes",
		text: "\tif last || len(ended) == 0 {", with: "\tif last || len(ended) > 0 {"},
	{name: "a cancelled backfill ends one of several runs", file: "internal/runner/several.go", pkg: root, story: "TestBackfillInParallelIsCancelled",
		text: "c.Cancelled, c.Barred, c.Grace = cancelled, barred, grace", with: "c.Barred, c.Grace = barred, grace"},
}

// Each mistake can still be made: its text stands in the source, once.
func TestMutantsFit(t *testing.T) {
	for _, m := range mutants {
		if _, err := proctest.Edited(m.edits()...); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// TestMutants builds each mutant and demands that it is caught, by what also
// passes without the mistake.
func TestMutants(t *testing.T) {
	if !*mutantsFlag {
		t.Skip("takes minutes: go test ./internal/sim -run TestMutants -mutants -v")
	}
	var part, parts int
	if _, err := fmt.Sscanf(*partFlag, "%d/%d", &part, &parts); err != nil || part < 1 || part > parts {
		t.Fatalf("-part is %q: want a number and how many parts there are, such as 1/3", *partFlag)
	}
	program := mutant{}.build(t, tales)
	if out, err := tell(program, tales, "^("+strings.Join(stories(), "|")+")$"); err != nil {
		t.Fatalf("the stories fail without a mistake: %s", out)
	}
	for _, of := range []string{"TestSeeds", atZero} {
		if out, err := seedsOf(os.Args[0], of, 1, mostSeeds); err != nil {
			t.Fatalf("the seeds of %s fail without a mistake: %s", of, out)
		}
	}
	for i, m := range mutants {
		if !strings.Contains(m.name, *mutantFlag) || i%parts != part-1 {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if m.story != "" {
				m.inStory(t)
			} else {
				m.inSeeds(t)
			}
		})
	}
}

// stories are those of [tales] that catch mutants.
func stories() (all []string) {
	for _, m := range mutants {
		if m.story != "" && cmp.Or(m.pkg, tales) == tales {
			all = append(all, m.story)
		}
	}
	return all
}

// edits make the mistake; a mutant without a file has none.
func (m mutant) edits() (all []proctest.Edit) {
	if m.text != "" {
		all = append(all, proctest.Edit{File: m.file, Old: m.text, New: m.with})
	}
	if m.also[0] != "" {
		all = append(all, proctest.Edit{File: cmp.Or(m.other, m.file), Old: m.also[0], New: m.also[1]})
	}
	return all
}
