package plan

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Where a claim leaves room, each outcome of its run can be written, and all that
// the run writes before.
func TestAClaimWithRoomHasRoomForEachOutcome(t *testing.T) {
	for _, holder := range []string{"a", strings.Repeat("é", 60)} {
		for _, attempt := range []int{1, 2, store.MaxAttempt} {
			size := sort.Search(7500, func(n int) bool { return RoomForOutcome(claimBeside(t, n, attempt, holder)) != nil }) - 1
			for i := range 3 {
				claim := claimBeside(t, size-i, attempt, holder)
				for _, reason := range []string{"", strings.Repeat("🦊", 500)} {
					writeAll(t, claim, reason)
				}
			}
		}
	}
}

// claimBeside is the claim of an attempt beside an unknown field of that size.
func claimBeside(t *testing.T, size, attempt int, holder string) *store.Record {
	t.Helper()
	tick := midnight.Add(10 * time.Second)
	json := fmt.Sprintf(`{"schema":1,"app":"app","job":"job","created":%[1]q,"watermark":%[1]q,"token":7,"writer":"w","definition":{"spec":"s","since":%[1]q},"run":{"status":"idle"},"x":%[2]q}`,
		midnight.Format(time.RFC3339), strings.Repeat("x", size))
	r, err := store.DecodeRecord([]byte(json), "app", "job")
	if err != nil {
		t.Fatal(err)
	}
	c := newClaiming(&Policy{Ticks: every("10s"), Spec: "s"}, View{Record: &r})
	c.claim(tick, attempt)
	next := &c.next
	next.Record.Run.Claimed, next.Record.Run.Replica, next.Record.Run.Lease = tick, holder, store.Seconds(15*time.Second)
	return &next.Record
}

// writeAll makes the writes of a run that ends in each way: all have to fit.
func writeAll(t *testing.T, claim *store.Record, reason string) {
	t.Helper()
	for _, status := range []store.Status{store.Succeeded, store.Failed, store.Stalled, store.Abandoned, store.Skipped} {
		for _, interrupted := range []Interrupted{Abandon, Rerun} {
			for _, under := range []time.Duration{0, 15 * time.Minute} { // without and with ticks that are skipped
				p := Policy{Ticks: every("10s"), Spec: "s", Interrupted: interrupted}
				end := claim.Run.Claimed.Add(123 * time.Millisecond)
				r := claim.Clone()
				r.Writer, r.Run.Stopping, r.Run.Progress = strings.Repeat("W", 26), true, store.Progress{Note: strings.Repeat("🦊", 100), At: end}
				writeOne(t, &r, "progress", status)
				if status == store.Stalled {
					r = p.Stall(&r, reason, claim.Run.Claimed.Add(under), store.JobControl{})
					writeOne(t, &r, "stall", status)
				}
				r = p.Finish(&r, status, reason, end, claim.Run.Claimed.Add(under), store.JobControl{})
				writeOne(t, &r, "outcome", status)
			}
		}
	}
}

func writeOne(t *testing.T, r *store.Record, what string, status store.Status) {
	t.Helper()
	if _, err := r.Encode(); err != nil {
		t.Fatalf("%s, %s, attempt %d: %v", what, status, r.Run.Attempt, err)
	}
}
