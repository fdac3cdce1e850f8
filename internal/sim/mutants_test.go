package sim_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	mutantsFlag = flag.Bool("mutants", false, "build each mutant and demand that a simulation catches it")
	mutantFlag  = flag.String("mutant", "", "only those whose name contains this")
)

// A mutant is a program with one mistake, made by a replacement of text.
type mutant struct {
	name  string
	file  string
	text  string // in file, once
	with  string
	also  [2]string // another replacement in it
	seeds int       // within which it has to be caught
}

var mutants = []mutant{
	{name: "the deadline counts from the response", file: "hold.go", seeds: 20,
		text: "\th.extend(sent + h.trust())", with: "\th.extend(h.clock.elapsed() + h.trust())"},
	{name: "the first deadline counts from the response", file: "hold.go", seeds: 100,
		text: "\th.until = h.start + h.trust()", with: "\th.until = h.clock.elapsed() + h.trust()"},
	{name: "no look at the deadline after the claim", file: "term.go", seeds: 200,
		text: "\tif h.held.Err() != nil || h.left() <= 0 {", with: "\tif false {"},
	{name: "one lease id per process", file: "hold.go", seeds: 5,
		text: "c.store.Lease(c.name, uuid.NewString())", with: "c.store.Lease(c.name, uuid.NewSHA1(uuid.Nil, fmt.Append(nil, c.clock)).String())"},
	{name: "released before the job has returned", file: "try.go", seeds: 5,
		text: "\t<-done\n\treturn err\n}\n\n// outcome", with: "\tselect {\n\tcase <-done:\n\tcase <-ctx.Done():\n\t\treturn ctx.Err()\n\t}\n\treturn err\n}\n\n// outcome"},
	{name: "the time when a renewal was sent in a shared field", file: "hold.go", seeds: 400,
		text: "\tsent := h.clock.elapsed()\n\tstamp, err := h.lease.Renew(ctx)\n\tif err != nil {\n\t\treturn err\n\t}",
		with: "\th.start = h.clock.elapsed()\n\tstamp, err := h.lease.Renew(ctx)\n\tsent := h.start\n\tif err != nil {\n\t\treturn err\n\t}",
		also: [2]string{"\tcase h.renewing <- struct{}{}:\n\t\tdefer func() { <-h.renewing }()\n\tcase", "\tdefault:\n\tcase"}},
	{name: "no If-Match on the claim", file: "host/azure/lease.go", seeds: 5,
		text: "\t\tModifiedAccessConditions: match,\n\t}, nil", with: "\t\tModifiedAccessConditions: nil,\n\t}, func() error { _ = match; return nil }()"},
	{name: "run before the claim", file: "term.go", seeds: 5,
		text: "\tif err := w.put(h, &next); err != nil {", with: "\tif next.run {\n\t\tw.rec = next.record\n\t\tw.do(stop, h.held, h, w.newRun(next.record.Tick, 1, next.record.Epoch))\n\t}\n\tif err := w.put(h, &next); err != nil {"},
	{name: "the loser of a race walks away", file: "worker.go", seeds: 20,
		text: "\t\treturn w.again(firstLook + w.losses.next())", with: "\t\tw.rec.Through = w.dueTime()\n\t\treturn w.idle(w.dueTime())"},
	{name: "412 is taken as lost without a read", file: "book.go", seeds: 50,
		text: "\tif err = h.once(ctx, p); err == nil {\n\t\treturn true, nil\n\t}\n", with: "\tif err = h.once(ctx, p); err == nil || definite(err) {\n\t\treturn true, err\n\t}\n"},
	{name: "finish without a lease id", file: "host/azure/lease.go", seeds: 5,
		text: "\t\tLeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: &h.id},\n", with: ""},
	{name: "no hold-off", file: "term.go", seeds: 50,
		text: "\tif d := w.unsure(); d > 0 &&", with: "\tif d := w.unsure() - time.Hour; d > 0 &&"},
	{name: "the hold-off comes after the settling write", file: "term.go", seeds: 100,
		text: "\tif next.run && !w.runTick(ctx, stop, h) {",
		with: "\tif late > 0 && !w.holdOff(stop, h.held, late) {\n\t\treturn w.again(0)\n\t}\n\tif next.run && !w.runTick(ctx, stop, h) {",
		also: [2]string{"\tif d := w.unsure(); d > 0 && !w.holdOff(stop, h.held, d) {", "\tlate := w.unsure()\n\tif false {"}},
	{name: "release after an outcome that is not confirmed", file: "term.go", seeds: 20,
		text: "\tif next.run && !w.runTick(ctx, stop, h) {\n", with: "\tif next.run && !w.runTick(ctx, stop, h) {\n\t\tw.quit(h)\n"},
	{name: "the watermark does not move at the finish", file: "record.go", seeds: 5,
		text: "\tif f.Tick.After(r.Through) {", with: "\tif f.Tick.After(r.Through) && f.Token == 0 {"},
	{name: "Save without the record", file: "host/azure/keep.go", seeds: 5,
		text: "\t\tMetadata:         metadata(record),\n", with: ""},
	{name: "the epoch starts anew with the entry", file: "worker.go", seeds: 50,
		text: "Epoch: date.UnixMicro(),", with: "Epoch: 1,"},
	{name: "ticks may move back", file: "plan.go", seeds: 20,
		text: "\tif !newest.After(r.Through) {", with: "\tif !newest.After(r.Through) && now.Unix()%7 != 0 {"},
	{name: "catching up is off by one", file: "plan.go", seeds: 20,
		text: "\tif before := p.ticks.Last(tick.Add(-1)); before.After(r.Through) {", with: "\tif before := p.ticks.Last(p.ticks.Last(tick.Add(-1)).Add(-1)); before.After(r.Through) {"},
	{name: "the client library repeats requests", file: "host/azure/config.go", seeds: 5,
		text: "policy.RetryOptions{MaxRetries: -1}", with: "policy.RetryOptions{MaxRetries: 3, RetryDelay: 1}"},
	{name: "the context is not cancelled at the deadline", file: "hold.go", seeds: 5,
		text: "\t\t\th.lost(errNotRenewed)\n\t\t\treturn\n\t\t}\n\t\tsleep(ctx, min(left, lookAgain))", with: "\t\t\treturn\n\t\t}\n\t\tsleep(ctx, min(left, lookAgain))"},
	{name: "the wall clock for the deadline", file: "hold.go", seeds: 200,
		text: "func (h *hold) left() time.Duration { return h.trusted() - h.clock.elapsed() }",
		with: "func (h *hold) left() time.Duration {\n\treturn h.trusted() - h.clock.wall().Sub(epoch0(h))\n}\n\nvar epochs sync.Map\n\nfunc epoch0(h *hold) time.Time {\n\tt, _ := epochs.LoadOrStore(h, h.clock.wall().Add(-h.clock.elapsed()))\n\treturn t.(time.Time)\n}"},
}

var (
	complaint = regexp.MustCompile(`(I[0-9]+[a-d']? [a-z ]+) at \d\d:`)
	failing   = regexp.MustCompile(`(?m)^\s*--- FAIL: TestSeeds/seed/(\d+)`)
)

func TestMutants(t *testing.T) {
	if !*mutantsFlag {
		t.Skip("takes minutes: go test ./internal/sim -run TestMutants -mutants -timeout 60m -v")
	}
	for _, m := range mutants {
		if !strings.Contains(m.name, *mutantFlag) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			program := m.build(t)
			for s := 1; s <= m.seeds; s += 5 {
				if m.caught(t, program, s, min(5, m.seeds-s+1)) {
					return
				}
			}
			t.Errorf("not caught by %d seeds", m.seeds)
		})
	}
}

// caught simulates the mutant with n seeds. Those with which the program itself
// fails prove nothing.
func (m mutant) caught(t *testing.T, program string, first, n int) bool {
	out, err := seedsOf(program, first, n)
	if err == nil {
		return false
	}
	what := map[string]int{}
	for _, c := range complaint.FindAllSubmatch(out, -1) {
		what[string(c[1])]++
	}
	var in []string
	for _, f := range failing.FindAllSubmatch(out, -1) {
		s, _ := strconv.Atoi(string(f[1]))
		if out, err := seedsOf(os.Args[0], s, 1); err != nil {
			t.Errorf("the program itself fails: %s", out)
			continue
		}
		in = append(in, string(f[1]))
	}
	slices.Sort(in)
	switch {
	case len(what) == 0:
		t.Logf("caught by seeds %d to %d, otherwise than by the checker: %.600s", first, first+n-1, out)
	case len(in) > 0:
		t.Logf("caught by seeds %s of %d to %d: %s", strings.Join(in, " "), first, first+n-1, list(what))
	}
	return len(what) == 0 || len(in) > 0
}

func seedsOf(program string, first, n int) ([]byte, error) {
	return exec.Command(program, "-test.run=TestSeeds$", "-test.timeout=2m", fmt.Sprintf("-from=%d", first),
		fmt.Sprintf("-seeds=%d", n), fmt.Sprintf("-length=%s", *length)).CombinedOutput()
}

// build makes a test program from the mutant's source.
func (m mutant) build(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]string{{m.text, m.with}, m.also} {
		if n := bytes.Count(source, []byte(r[0])); r[0] != "" && n != 1 {
			t.Fatalf("%s has %q %d times: adapt the mutant", m.file, r[0], n)
		} else if n == 1 {
			source = bytes.Replace(source, []byte(r[0]), []byte(r[1]), 1)
		}
	}
	dir := t.TempDir()
	mutated := filepath.Join(dir, filepath.Base(m.file))
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{path: mutated}})
	for name, b := range map[string][]byte{
		mutated:                            source,
		filepath.Join(dir, "overlay.json"): overlay,
	} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "mutant")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return program
}
