package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Either of the two that only grow, read smaller than before, tells an old
// version of the same entry. An entry that was made anew starts from its own.
func TestARecordThatCannotHaveFollowed(t *testing.T) {
	for name, tt := range map[string]struct {
		created, through time.Duration // after those of the record before
		token            int64         // likewise
		want             bool
	}{
		"the same":                          {0, 0, 0, false},
		"one run later":                     {0, time.Second, 1, false},
		"settled without a claim":           {0, time.Second, 0, false},
		"claimed":                           {0, 0, 1, false},
		"a smaller token alone":             {0, 0, -1, true},
		"an earlier watermark alone":        {0, -time.Second, 0, true},
		"a smaller token, a later mark":     {0, time.Second, -1, true},
		"a larger token, an earlier mark":   {0, -time.Second, 1, true},
		"both":                              {0, -time.Second, -1, true},
		"made anew":                         {time.Second, -time.Second, -1, false},
		"the entry before one made anew":    {-time.Second, time.Second, 1, true},
		"the entry before, as it was since": {-time.Second, 0, 0, true},
	} {
		old := store.Record{Created: midnight, Watermark: midnight, Token: 7}
		now := old
		now.Created, now.Watermark, now.Token = old.Created.Add(tt.created), old.Watermark.Add(tt.through), old.Token+tt.token
		if got := OlderThan(&now, &old); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// The create of one replica arrives after the entry of another was deleted, which nothing has claimed. It is no old version.
func TestACreateThatArrivesLate(t *testing.T) {
	made := clockTime("00:10:00")
	for name, tt := range map[string]struct {
		ago  time.Duration // of the create that arrives late
		runs int64         // of the entry that was deleted
		want bool
	}{
		"sent a moment before":         {time.Second, 0, false},
		"sent a minute before":         {time.Minute, 0, false},
		"older than any call":          {time.Minute + 1, 0, true},
		"what was deleted was claimed": {time.Second, 1, true},
	} {
		before := store.Record{Created: made, Watermark: made, Token: made.UnixMicro() + tt.runs}
		sent := made.Add(-tt.ago)
		late := store.Record{Created: sent, Watermark: sent, Token: sent.UnixMicro()}
		if got := OlderThan(&late, &before); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
}

// The history keeps 20 outcomes, and a job may fail for longer than that.
func TestFailuresAreCountedUntilASuccess(t *testing.T) {
	r := store.Record{Created: midnight, Watermark: midnight}
	for i, step := range []struct {
		outcome store.Outcome
		want    int64
	}{
		{store.Outcome{Status: store.Failed}, 1},
		{store.Outcome{Status: store.Stalled}, 2},
		{store.Outcome{Status: store.Abandoned}, 2},
		{store.Outcome{Status: store.Skipped}, 2},
		{store.Outcome{Status: store.Missed, From: midnight, Count: 9}, 2},
		{store.Outcome{Status: store.Succeeded, Request: "by hand"}, 2},
		{store.Outcome{Status: store.Failed, Request: "by hand"}, 2},
		{store.Outcome{Status: store.Failed}, 3},
		{store.Outcome{Status: store.Succeeded}, 0},
		{store.Outcome{Status: store.Failed}, 1},
	} {
		step.outcome.Tick = midnight.Add(time.Duration(i+1) * time.Minute)
		step.outcome.End = step.outcome.Tick
		if settle(&r, step.outcome); r.Failures != step.want {
			t.Errorf("step %d, %s %s: got %d failures in a row, want %d", i, step.outcome.Status, step.outcome.Request, r.Failures, step.want)
		}
	}
	for status, want := range map[store.Status]int64{store.Failed: 3, store.Stalled: 1, store.Abandoned: 1, store.Skipped: 1, store.Missed: 9, store.Succeeded: 1} {
		if r.Counts[status] != want {
			t.Errorf("%d ticks are counted as %s, want %d", r.Counts[status], status, want)
		}
	}
	for range 100 { // of which the history keeps 20
		settle(&r, store.Outcome{Tick: midnight.Add(time.Hour), Status: store.Failed})
	}
	if last := midnight.Add(9 * time.Minute); r.Failures != 101 || !r.Succeeded.Equal(last) {
		t.Errorf("got %d failures in a row since %s, want 101 since %s", r.Failures, r.Succeeded, last)
	}
}

// A job with old failures, for which PauseAfter is new, pauses itself after a failure alone.
func TestPauseAfterCountsFailuresAlone(t *testing.T) {
	p := Policy{Ticks: every("10s"), PauseAfter: 3}
	for status, want := range map[store.Status]bool{store.Skipped: false, store.Abandoned: false, store.Failed: true} {
		r := running()
		r.Failures = 5
		r = p.Finish(&r, status, "", clockTime("00:00:15"), clockTime("00:00:15"), store.JobControl{})
		if paused := !r.Orders.Paused.At.IsZero(); paused != want {
			t.Errorf("%s: paused itself %t", status, paused)
		}
	}
}

// A call with a request returns its outcome if there is one. A runner whose lease has ended may only have been cut off, and write
// its outcome yet: another one must not be told meanwhile.
func TestOutcomeOfRequest(t *testing.T) {
	long := strings.Repeat("why ", 60)
	running := store.Record{Token: 7, Run: store.Run{Request: "x", Attempt: 1, Status: store.Running, Replica: "a"}}
	stalled := running.Clone()
	stalled.Run.Status, stalled.Run.Error = store.Stalled, "no heartbeat"
	failed := running.Clone()
	failed.Run.Status, failed.Run.Error = store.Failed, long
	failed.History = []store.Outcome{{Request: "x", Token: 7, Status: store.Failed, Reason: long[:100]}}
	older := failed.Clone()
	older.Token = 8
	for name, tt := range map[string]struct {
		record  store.Record
		request string
		lease   store.LeaseState
		status  store.Status // empty: none is known
		reason  string
	}{
		"under way":                     {running, "x", store.Leased, store.Running, ""},
		"under way, another request":    {running, "y", store.Leased, "", ""},
		"the runner died or is cut off": {running, "x", store.Expired, "", ""},
		"stalled, and not returned":     {stalled, "x", store.Expired, store.Stalled, "no heartbeat"},
		"failed, with a long error":     {failed, "x", store.Available, store.Failed, long},
		"the error of a later run":      {older, "x", store.Available, store.Failed, long[:100]},
	} {
		got, known := OutcomeOfRequest(&tt.record, tt.request, tt.lease)
		if known != (tt.status != "") || got.Status != tt.status || got.Reason != tt.reason {
			t.Errorf("%s: got %s %q, %t", name, got.Status, got.Reason, known)
		}
	}
}
