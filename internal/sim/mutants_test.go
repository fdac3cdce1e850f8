package sim_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	mutantsFlag = flag.Bool("mutants", false, "build each mutant and demand that it is caught")
	mutantFlag  = flag.String("mutant", "", "only those whose name contains this")
)

// A mutant is a program with one mistake, made by a replacement of text. It is
// caught by a story of internal/interleavings where that needs a coincidence,
// else by the first seeds.
type mutant struct {
	name  string
	file  string
	text  string // in file, once
	with  string
	also  [2]string // another replacement in it
	story string    // that catches it; empty: the first seeds do
	pkg   string    // of the story; empty: internal/interleavings
}

// root is the package of the tests of the program itself.
const root = "../.."

var mutants = []mutant{
	{name: "the deadline counts from the response", file: "hold.go", story: "TestReplyOfRenewal1AfterRenewal2WasSent",
		text: "\th.extend(sent)\n", with: "\th.extend(h.clock.elapsed())\n"},
	{name: "the first deadline counts from the response", file: "hold.go", story: "TestRenewalRepliesThatNeverCome",
		text: "\th.until, h.dated = h.start+h.trust(), stamp.Date", with: "\th.until, h.dated = h.clock.elapsed()+h.trust(), stamp.Date"},
	{name: "no look at the deadline after the claim", file: "try.go", story: "TestPausePastTheDeadlineBetweenClaimReplyAndStart",
		text: "\tif h != nil && h.expired() {", with: "\tif false {"},
	{name: "one lease id per process", file: "hold.go",
		text: "c.store.Lease(c.name, uuid.NewString())", with: "c.store.Lease(c.name, uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, \"%p\", c.clock)).String())"},
	{name: "released before the job has returned", file: "try.go",
		text: "\t<-done\n\treturn err\n}\n\n// inspect", with: "\tselect {\n\tcase <-done:\n\tcase <-ctx.Done():\n\t\treturn ctx.Err()\n\t}\n\treturn err\n}\n\n// inspect"},
	{name: "the time when a renewal was sent in a shared field", file: "hold.go", story: "TestReplyOfRenewal1AfterRenewal2WasSent",
		text: "\tsent := h.clock.elapsed()\n\tstamp, err := stamped(h.lease.Renew(ctx))\n\tif err != nil {\n\t\treturn err\n\t}",
		with: "\th.start = h.clock.elapsed()\n\tstamp, err := stamped(h.lease.Renew(ctx))\n\tsent := h.start\n\tif err != nil {\n\t\treturn err\n\t}",
		also: [2]string{"\tcase h.renewing <- struct{}{}:\n\t\tdefer func() { <-h.renewing }()\n\tcase", "\tdefault:\n\tcase"}},
	{name: "no If-Match on the claim", file: "host/azure/lease.go",
		text: "\t\tModifiedAccessConditions: match,\n\t}, nil", with: "\t\tModifiedAccessConditions: nil,\n\t}, func() error { _ = match; return nil }()"},
	{name: "a web page counts as an answer of the service", file: "host/azure/genuine.go",
		text: "\tif resp.Header.Get(\"x-ms-request-id\") != \"\" && ", with: "\tif true || "},
	{name: "an answer without an ETag is a success", file: "hold.go", pkg: root, story: "TestAnAnswerWithoutAnETagIsNoSuccess",
		text: "\tif err == nil && s.ETag == \"\" {", with: "\tif false {"},
	{name: "run before the claim", file: "term.go",
		text: "\tif err := w.put(h, &next); err != nil {", with: "\tif next.run {\n\t\tw.rec = next.record\n\t\tw.do(stop, h.held, h, w.newRun(next.record.Tick, 1, next.record.Epoch))\n\t}\n\tif err := w.put(h, &next); err != nil {"},
	{name: "the loser of a race walks away", file: "worker.go", story: "TestWinnerDiesBetweenAcquireAndClaimAfterTheLosersSaw409",
		text: "\t\treturn w.again(firstLook + w.losses.next())", with: "\t\tw.rec.Through = w.dueTime()\n\t\treturn w.idle(w.dueTime())"},
	{name: "412 is taken as lost without a read", file: "book.go", story: "TestFinishAfterExpiryUntouched",
		text: "\tif err = h.once(ctx, p); err == nil {\n\t\treturn true, nil\n\t}\n", with: "\tif err = h.once(ctx, p); err == nil || definite(err) {\n\t\treturn true, err\n\t}\n"},
	{name: "finish without a lease id", file: "host/azure/lease.go",
		text: "\t\tLeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: &h.id},\n", with: ""},
	{name: "no hold-off", file: "term.go", story: "TestBreakAtOnceWithHoldOffWhileTheOldOneStillRuns",
		text: "\td := w.unsure()\n", with: "\td := w.unsure() - time.Hour\n"},
	{name: "the hold-off comes after the settling write", file: "term.go", story: "TestBreakAtOnceWithHoldOffWhileTheOldOneStillRuns",
		text: "\tif next.run && !w.runTick(ctx, stop, h, &before) {",
		with: "\tif late > 0 && !w.holdOff(stop, h.held, late) {\n\t\treturn w.again(0)\n\t}\n\tif next.run && !w.runTick(ctx, stop, h, &before) {",
		also: [2]string{"\td := w.unsure()\n\tif d > 0 && !w.holdOff(stop, h.held, d) {", "\td, late := time.Duration(0), w.unsure()\n\tif false {"}},
	{name: "release after an outcome that is not confirmed", file: "term.go",
		text: "\tif next.run && !w.runTick(ctx, stop, h, &before) {\n", with: "\tif next.run && !w.runTick(ctx, stop, h, &before) {\n\t\tw.quit(h)\n"},
	{name: "the watermark does not move at the finish", file: "record.go",
		text: "\tif f.Tick.After(r.Through) {", with: "\tif f.Tick.After(r.Through) && f.Token == 0 {"},
	{name: "Save without the record", file: "host/azure/keep.go",
		text: "\t\tMetadata:         metadata(record),\n", with: ""},
	{name: "the epoch starts anew with the entry", file: "token.go", story: "TestDeleteAndReCreate",
		text: "max(next.record.Epoch, now.Truncate(time.Second).UnixMicro())", with: "1 + 0*now.UnixMicro()"},
	{name: "ticks may move back", file: "plan.go",
		text: "\tif !newest.After(r.Through) {", with: "\tif !newest.After(r.Through) && now.Unix()%7 != 0 {"},
	{name: "catching up is off by one", file: "plan.go", story: "TestATickAndTheNextBothDueAfterAnOutage",
		text: "\tbefore := p.ticks.Last(tick.Add(-1))\n\tpassed", with: "\tbefore := p.ticks.Last(p.ticks.Last(tick.Add(-1)).Add(-1))\n\tpassed"},
	{name: "the client library repeats requests", file: "host/azure/config.go", story: "TestFinishThrottledPastTheDeadline",
		text: "policy.RetryOptions{MaxRetries: -1}", with: "policy.RetryOptions{MaxRetries: 3, RetryDelay: 1}"},
	{name: "the context is not cancelled at the deadline", file: "hold.go", story: "TestRenewalRepliesThatNeverCome",
		text: "\t\t\th.lost(errNotRenewed)\n\t\t\treturn\n\t\t}\n\t\tsleep(ctx, min(left, lookAgain))", with: "\t\t\treturn\n\t\t}\n\t\tsleep(ctx, min(left, lookAgain))"},
	{name: "the wall clock for the deadline", file: "hold.go", story: "TestWallClockSetBackWhileCutOff",
		text: "func (h *hold) left() time.Duration { return h.trusted() - h.clock.elapsed() }",
		with: "func (h *hold) left() time.Duration {\n\treturn h.trusted() - h.clock.wall().Sub(epoch0(h))\n}\n\nvar epochs sync.Map\n\nfunc epoch0(h *hold) time.Time {\n\tt, _ := epochs.LoadOrStore(h, h.clock.wall().Add(-h.clock.elapsed()))\n\treturn t.(time.Time)\n}"},

	// What the simulation did not look at once.
	{name: "a further attempt has no starting deadline", file: "plan.go", pkg: root, story: "TestAFurtherAttemptHasTheStartingDeadline",
		text: "\tif again && !late {", with: "\t_ = late\n\tif again {"},
	{name: "Overrun is not called for a loss after a time-out", file: "overrun.go", pkg: root, story: "TestOverrunAfterATimeoutAndTheLossOfTheLease",
		text: "\t\tif !until(over, m.hold.held) {\n\t\t\treturn\n\t\t}\n\t\tcause = context.Cause(m.hold.held)", with: "\t\treturn"},
	{name: "nobody takes a job back after an aborted deploy", file: "definition.go", pkg: root, story: "TestAbortedDeployIsTakenBack",
		text: "time.Since(w.still.at) < patience {", with: "time.Since(w.still.at) < 1000*patience {"},
	{name: "who may not write keeps the lease", file: "term.go", pkg: root, story: "TestAReplicaThatMayNotWriteCostsNoTick",
		text: "\tif errors.Is(err, errNotWritten) || errors.Is(err, errNotEncoded) {\n\t\tw.quit(h)", with: "\tif false {\n\t\tw.quit(h)"},
	{name: "who may not write its outcome renews for ever", file: "book.go", pkg: root, story: "TestAReplicaThatMayNotWriteItsOutcome",
		text: "\t\t\th.giveUp()", with: ""},
	{name: "a claim is run after a stop", file: "term.go",
		text: "\tif stop.Err() != nil {\n\t\treturn w.takeBack(", with: "\tif false {\n\t\treturn w.takeBack("},
	{name: "a token comes back after quick deletions", file: "token.go", pkg: root, story: "TestTokensGrowOverQuickDeletions",
		text: "w.existed(h).Add(time.Second))", with: "w.existed(h).Add(-time.Second))"},
	{name: "a stalled run keeps no end under skipped ticks", file: "plan.go",
		text: "slices.IndexFunc(r.History, func", with: "slices.IndexFunc(r.History[:min(1, len(r.History))], func"},
	{name: "a count that stopped looks exact", file: "plan.go",
		text: "min(n, maxCount), n > maxCount", with: "min(n, maxCount), false"},
	{name: "a tick that both schedules name is dropped", file: "plan.go",
		text: "\t\treturn r.Due.Add(-1)\n", with: "\t\treturn now\n"},
	{name: "a tick that both schedules name is dropped after a stopped run", file: "plan.go", pkg: root, story: "TestATickThatBothSchedulesNameIsOwedAfterAStoppedRun",
		text: "next.record.Due = p.dueOf(&next.record) }()", with: "next.record.Due = p.next(&next.record) }()",
		also: [2]string{"\t}\n\tr.Due = p.dueOf(r)\n}\n\n// skipUnder", "\t}\n\tr.Due = p.next(r)\n}\n\n// skipUnder"}},
	{name: "a process that is started owes no tick everywhere", file: "everywhere.go",
		text: "\tcase w.ran != nil:\n", with: "\tcase w.ran != nil && !w.through.IsZero():\n"},
	{name: "each write of a hold is remembered", file: "book.go", pkg: ".", story: "TestMemoryDoesNotGrowWithSaves",
		text: "\tb.ours = slices.DeleteFunc(b.ours, func(m mark) bool { return m.nonce != nonce })\n", with: "",
		also: [2]string{"\t\tb.ours = slices.Delete(b.ours, 0, extra)\n", "\t\t_ = extra\n"}},
	{name: "the end of a run does not count its claim", file: "term.go",
		text: "w.clock.elapsed() - w.claimedAt", with: "w.clock.elapsed() - start"},

	// What it has found before: docs/correctness.md.
	{name: "the wall clock tells when a replica started", file: "scheduler.go", pkg: root, story: "TestAStartInAnOutageIsNotToldByTheWallClock",
		text: "\t\tif !ok {\n\t\t\tnow = s.wall()", with: "\t\tif ok || !ok {\n\t\t\tnow = s.wall()"},
	{name: "trouble of a hold outlasts it", file: "term.go", pkg: root, story: "TestTroubleOfAHoldEndsWithIt",
		text: "\tw.reached() // whatever a call of this hold has met\n", with: ""},
	{name: "no look at the lease before a further try", file: "try.go", pkg: root, story: "TestNoFurtherTryWithoutTheLease",
		text: "\tif h != nil && h.expired() {", with: "\tif false {"},
	{name: "a look does not allow for the lag of the clock", file: "follow.go", pkg: root, story: "TestOneLookInAThird",
		text: "\twait += wait / (driftShare - 1)\n", with: ""},
	{name: "a late renewal brings the trust back", file: "hold.go", pkg: root, story: "TestARenewalThatIsAnsweredAfterTheDeadline",
		text: "\tif h.clock.elapsed() < h.until {", with: "\tif true {"},
	{name: "Overrun comes late", file: "overrun.go", pkg: root, story: "TestProgressDoesNotDelayWhatTheProcessHasToDo",
		text: "\tif !waitFor(over, over, m.cell.try()) {", with: "\tif !waitFor(over, over, 2*m.cell.try()) {"},
	{name: "a nonce alone tells whose a write is", file: "book.go", pkg: root, story: "TestARecordChangedByHandAfterALostAnswer",
		text: "\treturn slices.Contains(b.ours, mark{writer(record), sha256.Sum256(record)})", with: "\treturn slices.ContainsFunc(b.ours, func(m mark) bool { return m.nonce == writer(record) })"},
	{name: "a run stalls though its lease is lost", file: "run.go", pkg: root, story: "TestALostLeaseCountsBeforeAStall",
		text: " || l.hold != nil && l.hold.held.Err() != nil", with: ""},
	{name: "chance decides between a verdict and a look", file: "mind.go", pkg: root, story: "TestAWaitingVerdictIsJudgedFirst",
		text: "\t\tif m.judgeWaiting() {\n\t\t\tcontinue\n\t\t}\n", with: ""},
}

// Each mistake can still be made: its text stands in the source, once.
func TestMutantsFit(t *testing.T) {
	for _, m := range mutants {
		m.source(t)
	}
}

// TestMutants builds each mutant and demands that it is caught, by what also
// passes without the mistake.
func TestMutants(t *testing.T) {
	if !*mutantsFlag {
		t.Skip("takes minutes: go test ./internal/sim -run TestMutants -mutants -v")
	}
	dir := t.TempDir()
	program := compile(t, dir, tales)
	if out, err := tell(program, tales, "."); err != nil {
		t.Fatalf("the stories fail without a mistake: %s", out)
	}
	if out, err := seedsOf(os.Args[0]); err != nil {
		t.Fatalf("the seeds fail without a mistake: %s", out)
	}
	for _, m := range mutants {
		if !strings.Contains(m.name, *mutantFlag) {
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

// source is the mutant's file: where it belongs, and what it says.
func (m mutant) source(t *testing.T) (path string, source []byte) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	if source, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]string{{m.text, m.with}, m.also} {
		if r[0] == "" {
			continue
		}
		if n := bytes.Count(source, []byte(r[0])); n != 1 {
			t.Errorf("%s: %s has %q %d times: adapt the mutant", m.name, m.file, r[0], n)
		}
		source = bytes.Replace(source, []byte(r[0]), []byte(r[1]), 1)
	}
	return path, source
}
