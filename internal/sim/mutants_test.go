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
}

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
		text: "\t<-done\n\treturn err\n}\n\n// outcome", with: "\tselect {\n\tcase <-done:\n\tcase <-ctx.Done():\n\t\treturn ctx.Err()\n\t}\n\treturn err\n}\n\n// outcome"},
	{name: "the time when a renewal was sent in a shared field", file: "hold.go", story: "TestReplyOfRenewal1AfterRenewal2WasSent",
		text: "\tsent := h.clock.elapsed()\n\tstamp, err := h.lease.Renew(ctx)\n\tif err != nil {\n\t\treturn err\n\t}",
		with: "\th.start = h.clock.elapsed()\n\tstamp, err := h.lease.Renew(ctx)\n\tsent := h.start\n\tif err != nil {\n\t\treturn err\n\t}",
		also: [2]string{"\tcase h.renewing <- struct{}{}:\n\t\tdefer func() { <-h.renewing }()\n\tcase", "\tdefault:\n\tcase"}},
	{name: "no If-Match on the claim", file: "host/azure/lease.go",
		text: "\t\tModifiedAccessConditions: match,\n\t}, nil", with: "\t\tModifiedAccessConditions: nil,\n\t}, func() error { _ = match; return nil }()"},
	{name: "run before the claim", file: "term.go",
		text: "\tif err := w.put(h, &next); err != nil {", with: "\tif next.run {\n\t\tw.rec = next.record\n\t\tw.do(stop, h.held, h, w.newRun(next.record.Tick, 1, next.record.Epoch))\n\t}\n\tif err := w.put(h, &next); err != nil {"},
	{name: "the loser of a race walks away", file: "worker.go", story: "TestWinnerDiesBetweenAcquireAndClaimAfterTheLosersSaw409",
		text: "\t\treturn w.again(firstLook + w.losses.next())", with: "\t\tw.rec.Through = w.dueTime()\n\t\treturn w.idle(w.dueTime())"},
	{name: "412 is taken as lost without a read", file: "book.go", story: "TestFinishAfterExpiryUntouched",
		text: "\tif err = h.once(ctx, p); err == nil {\n\t\treturn true, nil\n\t}\n", with: "\tif err = h.once(ctx, p); err == nil || definite(err) {\n\t\treturn true, err\n\t}\n"},
	{name: "finish without a lease id", file: "host/azure/lease.go",
		text: "\t\tLeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: &h.id},\n", with: ""},
	{name: "no hold-off", file: "term.go", story: "TestBreakAtOnceWithHoldOffWhileTheOldOneStillRuns",
		text: "\tif d := w.unsure(); d > 0 &&", with: "\tif d := w.unsure() - time.Hour; d > 0 &&"},
	{name: "the hold-off comes after the settling write", file: "term.go", story: "TestBreakAtOnceWithHoldOffWhileTheOldOneStillRuns",
		text: "\tif next.run && !w.runTick(ctx, stop, h, &before) {",
		with: "\tif late > 0 && !w.holdOff(stop, h.held, late) {\n\t\treturn w.again(0)\n\t}\n\tif next.run && !w.runTick(ctx, stop, h, &before) {",
		also: [2]string{"\tif d := w.unsure(); d > 0 && !w.holdOff(stop, h.held, d) {", "\tlate := w.unsure()\n\tif false {"}},
	{name: "release after an outcome that is not confirmed", file: "term.go",
		text: "\tif next.run && !w.runTick(ctx, stop, h, &before) {\n", with: "\tif next.run && !w.runTick(ctx, stop, h, &before) {\n\t\tw.quit(h)\n"},
	{name: "the watermark does not move at the finish", file: "record.go",
		text: "\tif f.Tick.After(r.Through) {", with: "\tif f.Tick.After(r.Through) && f.Token == 0 {"},
	{name: "Save without the record", file: "host/azure/keep.go",
		text: "\t\tMetadata:         metadata(record),\n", with: ""},
	{name: "the epoch starts anew with the entry", file: "worker.go", story: "TestDeleteAndReCreate",
		text: "Epoch: date.UnixMicro(),", with: "Epoch: 1,"},
	{name: "ticks may move back", file: "plan.go",
		text: "\tif !newest.After(r.Through) {", with: "\tif !newest.After(r.Through) && now.Unix()%7 != 0 {"},
	{name: "catching up is off by one", file: "plan.go", story: "TestATickAndTheNextBothDueAfterAnOutage",
		text: "\tif before := p.ticks.Last(tick.Add(-1)); before.After(r.Through) {", with: "\tif before := p.ticks.Last(p.ticks.Last(tick.Add(-1)).Add(-1)); before.After(r.Through) {"},
	{name: "the client library repeats requests", file: "host/azure/config.go", story: "TestFinishThrottledPastTheDeadline",
		text: "policy.RetryOptions{MaxRetries: -1}", with: "policy.RetryOptions{MaxRetries: 3, RetryDelay: 1}"},
	{name: "the context is not cancelled at the deadline", file: "hold.go", story: "TestRenewalRepliesThatNeverCome",
		text: "\t\t\th.lost(errNotRenewed)\n\t\t\treturn\n\t\t}\n\t\tsleep(ctx, min(left, lookAgain))", with: "\t\t\treturn\n\t\t}\n\t\tsleep(ctx, min(left, lookAgain))"},
	{name: "the wall clock for the deadline", file: "hold.go", story: "TestWallClockSetBackWhileCutOff",
		text: "func (h *hold) left() time.Duration { return h.trusted() - h.clock.elapsed() }",
		with: "func (h *hold) left() time.Duration {\n\treturn h.trusted() - h.clock.wall().Sub(epoch0(h))\n}\n\nvar epochs sync.Map\n\nfunc epoch0(h *hold) time.Time {\n\tt, _ := epochs.LoadOrStore(h, h.clock.wall().Add(-h.clock.elapsed()))\n\treturn t.(time.Time)\n}"},
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
	if out, err := tell(program, "."); err != nil {
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
