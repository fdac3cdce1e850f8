package plan

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// Either of the two that only grow, read smaller than before, tells an old version of the same entry. An entry that was made anew
// starts from its own. The create of one replica may arrive after the entry of another was deleted, which nothing has claimed: it is
// no old version.
func TestARecordThatCannotHaveFollowed(t *testing.T) {
	for name, tt := range map[string]struct {
		created, through time.Duration // after those of the record before
		token            int64         // likewise
		fresh            bool          // nothing was claimed in the record before
		want             bool
	}{
		"the same":                          {0, 0, 0, false, false},
		"one run later":                     {0, time.Second, 1, false, false},
		"settled without a claim":           {0, time.Second, 0, false, false},
		"claimed":                           {0, 0, 1, false, false},
		"a smaller token alone":             {0, 0, -1, false, true},
		"an earlier watermark alone":        {0, -time.Second, 0, false, true},
		"a smaller token, a later mark":     {0, time.Second, -1, false, true},
		"a larger token, an earlier mark":   {0, -time.Second, 1, false, true},
		"made anew":                         {time.Second, -time.Second, -1, false, false},
		"the entry before one made anew":    {-time.Second, time.Second, 1, false, true},
		"the entry before, as it was since": {-time.Second, 0, 0, false, true},
		"a create, sent a moment before":    {-time.Second, -time.Second, -1, true, false},
		"a create, sent a minute before":    {-time.Minute, -time.Minute, -1, true, false},
		"a create, older than any call":     {-time.Minute - 1, -time.Minute - 1, -1, true, true},
	} {
		old := record.Record{Created: midnight, Watermark: midnight, Token: midnight.UnixMicro()}
		if !tt.fresh {
			old.Token++
		}
		now := record.Record{Created: midnight.Add(tt.created), Watermark: midnight.Add(tt.through), Token: old.Token + tt.token}
		if got := OlderThan(&now, &old); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

func TestFailuresAreCountedUntilASuccess(t *testing.T) {
	r := record.Record{Created: midnight, Watermark: midnight}
	for i, step := range []struct {
		outcome event.Outcome
		want    int64
	}{
		{event.Outcome{Status: event.Failed}, 1},
		{event.Outcome{Status: event.Stalled}, 2},
		{event.Outcome{Status: event.Abandoned}, 2},
		{event.Outcome{Status: event.Skipped}, 2},
		{event.Outcome{Status: event.Missed, From: midnight, Count: 9}, 2},
		{event.Outcome{Status: event.Succeeded, Request: "by hand"}, 2},
		{event.Outcome{Status: event.Failed, Request: "by hand"}, 2},
		{event.Outcome{Status: event.Failed}, 3},
		{event.Outcome{Status: event.Succeeded}, 0},
		{event.Outcome{Status: event.Failed}, 1},
	} {
		step.outcome.Tick = midnight.Add(time.Duration(i+1) * time.Minute)
		step.outcome.End = step.outcome.Tick
		if settle(&r, step.outcome); r.Failures != step.want {
			t.Errorf("step %d, %s %s: got %d failures in a row, want %d", i, step.outcome.Status, step.outcome.Request, r.Failures, step.want)
		}
	}
	for status, want := range map[event.Status]int64{event.Failed: 3, event.Stalled: 1, event.Abandoned: 1, event.Skipped: 1, event.Missed: 9, event.Succeeded: 1} {
		if r.Counts[status] != want {
			t.Errorf("%d ticks are counted as %s, want %d", r.Counts[status], status, want)
		}
	}
	if last := midnight.Add(9 * time.Minute); !r.Succeeded.Equal(last) {
		t.Errorf("the last success was at %s, want %s", r.Succeeded, last)
	}
}

// A job with old failures, for which PauseAfter is new, pauses itself after a failure alone, at the end of its run. By the clock of a
// replica that is fast that end is in the future, and the record would be refused.
func TestPauseAfterCountsFailuresAlone(t *testing.T) {
	p := Policy{Ticks: every("10s"), PauseAfter: 3}
	for status, want := range map[event.Status]bool{event.Skipped: false, event.Abandoned: false, event.Failed: true} {
		r := running()
		r.Failures = 5
		r = Finish(&p, &r, status, "", clockTime("00:03:00"), clockTime("00:01:00"), record.JobControl{})
		if at := r.Orders.Paused.At; at.IsZero() == want || want && !at.Equal(clockTime("00:01:00")) {
			t.Errorf("%s: paused itself at %s, and the store's clock shows 00:01:00", status, at.Format(time.TimeOnly))
		}
	}
}

// A call with a request returns its outcome if there is one. A runner whose lease has ended may only have been cut off, and write
// its outcome yet: another one must not be told meanwhile.
func TestOutcomeOfRequest(t *testing.T) {
	long := strings.Repeat("why ", 60)
	running := record.Record{Token: 7, Run: record.Run{Request: "x", Attempt: 1, Status: event.Running, Replica: "a"}}
	stalled := running.Clone()
	stalled.Run.Status, stalled.Run.Error = event.Stalled, "no heartbeat"
	failed := running.Clone()
	failed.Run.Status, failed.Run.Error = event.Failed, long
	failed.History = []event.Outcome{{Request: "x", Token: 7, Status: event.Failed, Reason: long[:100]}}
	older := failed.Clone()
	older.Token = 8
	for name, tt := range map[string]struct {
		record  record.Record
		request string
		lease   store.LeaseState
		status  event.Status // empty: none is known
		reason  string
	}{
		"under way":                     {running, "x", store.Leased, event.Running, ""},
		"under way, another request":    {running, "y", store.Leased, "", ""},
		"the runner died or is cut off": {running, "x", store.Expired, "", ""},
		"stalled, and not returned":     {stalled, "x", store.Expired, event.Stalled, "no heartbeat"},
		"failed, with a long error":     {failed, "x", store.Available, event.Failed, long},
		"the error of a later run":      {older, "x", store.Available, event.Failed, long[:100]},
	} {
		got, known := OutcomeOfRequest(&tt.record, tt.request, tt.lease)
		if known != (tt.status != "") || got.Status != tt.status || got.Reason != tt.reason {
			t.Errorf("%s: got %s %q, %t", name, got.Status, got.Reason, known)
		}
	}
}

func TestUnusable(t *testing.T) {
	latest := clockTime("00:10:00")
	within, beyond := latest.Add(time.Minute), latest.Add(time.Minute+1)
	for name, tt := range map[string]struct {
		also func(*record.Record, *Bounds)
		want string // in the error; empty: none
	}{
		"a running record":                 {func(r *record.Record, _ *Bounds) {}, ""},
		"a tick within a minute":           {func(r *record.Record, _ *Bounds) { r.Run.Tick = within }, ""},
		"a tick ahead":                     {func(r *record.Record, _ *Bounds) { r.Run.Tick = beyond }, "the record's tick"},
		"a watermark ahead":                {func(r *record.Record, _ *Bounds) { r.Watermark = beyond }, "the record's watermark"},
		"created ahead":                    {func(r *record.Record, _ *Bounds) { r.Created = beyond }, "the record's date of creation"},
		"a start ahead":                    {func(r *record.Record, _ *Bounds) { r.Definition.Since = beyond }, "(since)"},
		"a mark ahead":                     {func(r *record.Record, _ *Bounds) { r.Definition.Mark.Since = beyond }, "(mark)"},
		"a claim ahead":                    {func(r *record.Record, _ *Bounds) { r.Run.Claimed = beyond }, "the record's claim"},
		"a tick in the history ahead":      {func(r *record.Record, _ *Bounds) { r.History = []event.Outcome{{Tick: beyond}} }, "tick in the history"},
		"a start in the history ahead":     {func(r *record.Record, _ *Bounds) { r.History = []event.Outcome{{Start: beyond}} }, "start of a run in the history"},
		"a success ahead":                  {func(r *record.Record, _ *Bounds) { r.Past.Succeeded = beyond }, "newest tick that has succeeded"},
		"a judgement ahead":                {func(r *record.Record, _ *Bounds) { r.Past.Judged = beyond }, "newest tick judged"},
		"a late tick ahead":                {func(r *record.Record, _ *Bounds) { r.Past.Late.Tick = beyond }, "newest late tick"},
		"told ahead":                       {func(r *record.Record, _ *Bounds) { r.Past.Told = beyond }, "last told to be late"},
		"the order of a run ahead":         {func(r *record.Record, _ *Bounds) { r.Run.Order = beyond.UnixMicro() + 1 }, "order of a run"},
		"an order served ahead":            {func(r *record.Record, _ *Bounds) { r.Orders.Served = beyond.UnixMicro() + 1 }, "last order served"},
		"an order served early, ahead":     {func(r *record.Record, _ *Bounds) { r.Orders.Early = []int64{beyond.UnixMicro() + 1} }, "order served early"},
		"an order served now":              {func(r *record.Record, _ *Bounds) { r.Orders.Served = within.UnixMicro() }, ""},
		"a pause of itself ahead":          {func(r *record.Record, _ *Bounds) { r.Orders.Paused.At = beyond }, "pause of itself"},
		"the end of a pause ahead":         {func(r *record.Record, _ *Bounds) { r.Orders.Pauses = []record.Span{{To: beyond}} }, "end of a pause"},
		"a claim given back ahead":         {func(r *record.Record, _ *Bounds) { r.Orders.Returned.Tick = beyond }, "claim given back"},
		"an order given back ahead":        {func(r *record.Record, _ *Bounds) { r.Orders.Returned.Order = beyond.UnixMicro() + 1 }, "order given back"},
		"a backfill ahead":                 {func(r *record.Record, _ *Bounds) { r.Backfill.Seq = beyond.UnixMicro() + 1 }, "backfill"},
		"a tick of a backfill ahead":       {func(r *record.Record, _ *Bounds) { r.Backfill.Through = beyond }, "last tick of a backfill"},
		"the ends of runs ahead":           {func(r *record.Record, _ *Bounds) { r.Run.Finished, r.History = beyond, []event.Outcome{{End: beyond}} }, ""},
		"the next tick ahead":              {func(r *record.Record, _ *Bounds) { r.Due = beyond }, ""},
		"ahead of a clock that is unknown": {func(r *record.Record, b *Bounds) { r.Run.Tick, b.Latest = beyond, time.Time{} }, ""},
		"the last token but one":           {func(r *record.Record, _ *Bounds) { r.Token = record.MaxToken - 1 }, ""},
		"the last token":                   {func(r *record.Record, _ *Bounds) { r.Token = record.MaxToken }, "the largest there is"},
		"the longest lease":                {func(r *record.Record, _ *Bounds) { r.Run.Lease = record.Seconds(time.Minute) }, ""},
		"a lease too long":                 {func(r *record.Record, _ *Bounds) { r.Run.Lease = record.Seconds(61 * time.Second) }, "a lease of 1m1s"},
		"too long, after the end":          {func(r *record.Record, _ *Bounds) { *r = ended(); r.Run.Lease = record.Seconds(61 * time.Second) }, "a lease of 1m1s"},
		"a lease too short":                {func(r *record.Record, _ *Bounds) { r.Run.Lease = record.Seconds(14 * time.Second) }, "a lease of 14s"},
		"too short, after the end":         {func(r *record.Record, _ *Bounds) { *r = ended(); r.Run.Lease = record.Seconds(14 * time.Second) }, ""},
		"a lease with a fraction":          {func(r *record.Record, _ *Bounds) { r.Run.Lease = record.Seconds(15500 * time.Millisecond) }, "a lease of 15.5s"},
		"with a fraction, after the end": {func(r *record.Record, _ *Bounds) {
			*r = ended()
			r.Run.Lease = record.Seconds(15500 * time.Millisecond)
		}, ""},
		"too short, stalled and not ended": {func(r *record.Record, _ *Bounds) {
			r.Run.Status, r.Run.Lease = event.Stalled, record.Seconds(time.Second)
		}, "a lease of 1s"},
		"a beat":                            {func(r *record.Record, _ *Bounds) { beats(r, time.Second) }, ""},
		"a beat as long as the lease":       {func(r *record.Record, _ *Bounds) { beats(r, 15*time.Second) }, ""},
		"a beat longer than the lease":      {func(r *record.Record, _ *Bounds) { beats(r, 16*time.Second) }, "a beat of 16s"},
		"a beat too short":                  {func(r *record.Record, _ *Bounds) { beats(r, time.Millisecond) }, "a beat of 1ms"},
		"a beat with a fraction":            {func(r *record.Record, _ *Bounds) { beats(r, 1500*time.Millisecond) }, "a beat of 1.5s"},
		"a beat of none":                    {func(r *record.Record, _ *Bounds) { beats(r, 0) }, "a beat of 0s"},
		"too short a beat, after the end":   {func(r *record.Record, _ *Bounds) { *r = ended(); beats(r, time.Millisecond) }, ""},
		"the future counts before the rest": {func(r *record.Record, _ *Bounds) { r.Run.Tick, r.Token = beyond, record.MaxToken }, "the record's tick"},
	} {
		r, b := running(), Bounds{Latest: latest, Shortest: 15 * time.Second, Longest: time.Minute}
		tt.also(&r, &b)
		err := Unusable(&r, b)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

// Where a claim leaves room, each outcome of its run can be written, and all that
// the run writes before.
func TestAClaimWithRoomHasRoomForEachOutcome(t *testing.T) {
	for _, holder := range []string{"a", strings.Repeat("é", 60)} {
		for _, attempt := range []int{1, 2, record.MaxAttempt} {
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
func claimBeside(t *testing.T, size, attempt int, holder string) *record.Record {
	t.Helper()
	tick := midnight.Add(10 * time.Second)
	json := fmt.Sprintf(`{"schema":1,"app":"app","job":"job","created":%[1]q,"watermark":%[1]q,"token":7,"writer":"w","definition":{"spec":"s","since":%[1]q},"run":{"status":"idle"},"x":%[2]q}`,
		midnight.Format(time.RFC3339), strings.Repeat("x", size))
	r, err := record.Decode([]byte(json), "app", "job")
	if err != nil {
		t.Fatal(err)
	}
	c := newClaiming(&Policy{Ticks: every("10s"), Spec: "s"}, View{Record: &r})
	c.claim(tick, attempt)
	next := &c.next
	next.Record.Run.Claimed, next.Record.Run.Replica, next.Record.Run.Lease = tick, holder, record.Seconds(15*time.Second)
	return &next.Record
}

// writeAll makes the writes of a run that ends in each way: all have to fit.
func writeAll(t *testing.T, claim *record.Record, reason string) {
	t.Helper()
	at, p := claim.Run.Claimed, Policy{Ticks: every("10s"), Spec: "s"}
	for _, status := range []event.Status{event.Succeeded, event.Failed, event.Stalled, event.Abandoned, event.Skipped} {
		for _, p.Interrupted = range []Interrupted{Abandon, Rerun} {
			for _, lo := range []time.Time{at, at.Add(15 * time.Minute)} { // without and with ticks that are skipped
				r, end := claim.Clone(), at.Add(123*time.Millisecond)
				r.Writer, r.Run.Stopping, r.Run.Progress = strings.Repeat("W", 26), true, record.Progress{Note: strings.Repeat("🦊", 100), At: end}
				writes := []record.Record{r}
				if status == event.Stalled {
					r = Stall(&p, &r, reason, lo, lo, record.JobControl{})
					writes = append(writes, r)
				}
				for i, w := range append(writes, Finish(&p, &r, status, reason, end, lo, record.JobControl{})) {
					if _, err := w.Encode(); err != nil {
						t.Fatalf("write %d of a run that is %s, attempt %d: %v", i, status, r.Run.Attempt, err)
					}
				}
			}
		}
	}
}
