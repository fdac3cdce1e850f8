package plan

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

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
		old := store.Record{Created: midnight, Watermark: midnight, Token: midnight.UnixMicro()}
		if !tt.fresh {
			old.Token++
		}
		now := store.Record{Created: midnight.Add(tt.created), Watermark: midnight.Add(tt.through), Token: old.Token + tt.token}
		if got := OlderThan(&now, &old); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

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
	if last := midnight.Add(9 * time.Minute); !r.Succeeded.Equal(last) {
		t.Errorf("the last success was at %s, want %s", r.Succeeded, last)
	}
}

// A job with old failures, for which PauseAfter is new, pauses itself after a failure alone, at the end of its run. By the clock of a
// replica that is fast that end is in the future, and the record would be refused.
func TestPauseAfterCountsFailuresAlone(t *testing.T) {
	p := Policy{Ticks: every("10s"), PauseAfter: 3}
	for status, want := range map[store.Status]bool{store.Skipped: false, store.Abandoned: false, store.Failed: true} {
		r := running()
		r.Failures = 5
		r = Finish(&p, &r, status, "", clockTime("00:03:00"), clockTime("00:01:00"), store.JobControl{})
		if at := r.Orders.Paused.At; at.IsZero() == want || want && !at.Equal(clockTime("00:01:00")) {
			t.Errorf("%s: paused itself at %s, and the store's clock shows 00:01:00", status, at.Format(time.TimeOnly))
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

func TestUnusable(t *testing.T) {
	latest := clockTime("00:10:00")
	within, beyond := latest.Add(time.Minute), latest.Add(time.Minute+1)
	for name, tt := range map[string]struct {
		also func(*store.Record, *Bounds)
		want string // in the error; empty: none
	}{
		"a running record":                 {func(r *store.Record, _ *Bounds) {}, ""},
		"a tick within a minute":           {func(r *store.Record, _ *Bounds) { r.Run.Tick = within }, ""},
		"a tick ahead":                     {func(r *store.Record, _ *Bounds) { r.Run.Tick = beyond }, "the record's tick"},
		"a watermark ahead":                {func(r *store.Record, _ *Bounds) { r.Watermark = beyond }, "the record's watermark"},
		"created ahead":                    {func(r *store.Record, _ *Bounds) { r.Created = beyond }, "the record's date of creation"},
		"a start ahead":                    {func(r *store.Record, _ *Bounds) { r.Definition.Since = beyond }, "(since)"},
		"a mark ahead":                     {func(r *store.Record, _ *Bounds) { r.Definition.Mark.Since = beyond }, "(mark)"},
		"a claim ahead":                    {func(r *store.Record, _ *Bounds) { r.Run.Claimed = beyond }, "the record's claim"},
		"a tick in the history ahead":      {func(r *store.Record, _ *Bounds) { r.History = []store.Outcome{{Tick: beyond}} }, "tick in the history"},
		"a start in the history ahead":     {func(r *store.Record, _ *Bounds) { r.History = []store.Outcome{{Start: beyond}} }, "start of a run in the history"},
		"a success ahead":                  {func(r *store.Record, _ *Bounds) { r.Past.Succeeded = beyond }, "newest tick that has succeeded"},
		"a judgement ahead":                {func(r *store.Record, _ *Bounds) { r.Past.Judged = beyond }, "newest tick judged"},
		"a late tick ahead":                {func(r *store.Record, _ *Bounds) { r.Past.Late.Tick = beyond }, "newest late tick"},
		"told ahead":                       {func(r *store.Record, _ *Bounds) { r.Past.Told = beyond }, "last told to be late"},
		"the order of a run ahead":         {func(r *store.Record, _ *Bounds) { r.Run.Order = beyond.UnixMicro() + 1 }, "order of a run"},
		"an order served ahead":            {func(r *store.Record, _ *Bounds) { r.Orders.Served = beyond.UnixMicro() + 1 }, "last order served"},
		"an order served early, ahead":     {func(r *store.Record, _ *Bounds) { r.Orders.Early = []int64{beyond.UnixMicro() + 1} }, "order served early"},
		"an order served now":              {func(r *store.Record, _ *Bounds) { r.Orders.Served = within.UnixMicro() }, ""},
		"a pause of itself ahead":          {func(r *store.Record, _ *Bounds) { r.Orders.Paused.At = beyond }, "pause of itself"},
		"the end of a pause ahead":         {func(r *store.Record, _ *Bounds) { r.Orders.Pauses = []store.Span{{To: beyond}} }, "end of a pause"},
		"a claim given back ahead":         {func(r *store.Record, _ *Bounds) { r.Orders.Returned.Tick = beyond }, "claim given back"},
		"an order given back ahead":        {func(r *store.Record, _ *Bounds) { r.Orders.Returned.Order = beyond.UnixMicro() + 1 }, "order given back"},
		"a backfill ahead":                 {func(r *store.Record, _ *Bounds) { r.Backfill.Seq = beyond.UnixMicro() + 1 }, "backfill"},
		"a tick of a backfill ahead":       {func(r *store.Record, _ *Bounds) { r.Backfill.Through = beyond }, "last tick of a backfill"},
		"the ends of runs ahead":           {func(r *store.Record, _ *Bounds) { r.Run.Finished, r.History = beyond, []store.Outcome{{End: beyond}} }, ""},
		"the next tick ahead":              {func(r *store.Record, _ *Bounds) { r.Due = beyond }, ""},
		"ahead of a clock that is unknown": {func(r *store.Record, b *Bounds) { r.Run.Tick, b.Latest = beyond, time.Time{} }, ""},
		"the last token but one":           {func(r *store.Record, _ *Bounds) { r.Token = store.MaxToken - 1 }, ""},
		"the last token":                   {func(r *store.Record, _ *Bounds) { r.Token = store.MaxToken }, "the largest there is"},
		"the longest lease":                {func(r *store.Record, _ *Bounds) { r.Run.Lease = store.Seconds(time.Minute) }, ""},
		"a lease too long":                 {func(r *store.Record, _ *Bounds) { r.Run.Lease = store.Seconds(61 * time.Second) }, "a lease of 1m1s"},
		"too long, after the end":          {func(r *store.Record, _ *Bounds) { *r = ended(); r.Run.Lease = store.Seconds(61 * time.Second) }, "a lease of 1m1s"},
		"a lease too short":                {func(r *store.Record, _ *Bounds) { r.Run.Lease = store.Seconds(14 * time.Second) }, "a lease of 14s"},
		"too short, after the end":         {func(r *store.Record, _ *Bounds) { *r = ended(); r.Run.Lease = store.Seconds(14 * time.Second) }, ""},
		"a lease with a fraction":          {func(r *store.Record, _ *Bounds) { r.Run.Lease = store.Seconds(15500 * time.Millisecond) }, "a lease of 15.5s"},
		"with a fraction, after the end":   {func(r *store.Record, _ *Bounds) { *r = ended(); r.Run.Lease = store.Seconds(15500 * time.Millisecond) }, ""},
		"too short, stalled and not ended": {func(r *store.Record, _ *Bounds) {
			r.Run.Status, r.Run.Lease = store.Stalled, store.Seconds(time.Second)
		}, "a lease of 1s"},
		"a beat":                            {func(r *store.Record, _ *Bounds) { beats(r, time.Second) }, ""},
		"a beat as long as the lease":       {func(r *store.Record, _ *Bounds) { beats(r, 15*time.Second) }, ""},
		"a beat longer than the lease":      {func(r *store.Record, _ *Bounds) { beats(r, 16*time.Second) }, "a beat of 16s"},
		"a beat too short":                  {func(r *store.Record, _ *Bounds) { beats(r, time.Millisecond) }, "a beat of 1ms"},
		"a beat with a fraction":            {func(r *store.Record, _ *Bounds) { beats(r, 1500*time.Millisecond) }, "a beat of 1.5s"},
		"a beat of none":                    {func(r *store.Record, _ *Bounds) { beats(r, 0) }, "a beat of 0s"},
		"too short a beat, after the end":   {func(r *store.Record, _ *Bounds) { *r = ended(); beats(r, time.Millisecond) }, ""},
		"the future counts before the rest": {func(r *store.Record, _ *Bounds) { r.Run.Tick, r.Token = beyond, store.MaxToken }, "the record's tick"},
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
	at, p := claim.Run.Claimed, Policy{Ticks: every("10s"), Spec: "s"}
	for _, status := range []store.Status{store.Succeeded, store.Failed, store.Stalled, store.Abandoned, store.Skipped} {
		for _, p.Interrupted = range []Interrupted{Abandon, Rerun} {
			for _, lo := range []time.Time{at, at.Add(15 * time.Minute)} { // without and with ticks that are skipped
				r, end := claim.Clone(), at.Add(123*time.Millisecond)
				r.Writer, r.Run.Stopping, r.Run.Progress = strings.Repeat("W", 26), true, store.Progress{Note: strings.Repeat("🦊", 100), At: end}
				writes := []store.Record{r}
				if status == store.Stalled {
					r = Stall(&p, &r, reason, lo, lo, store.JobControl{})
					writes = append(writes, r)
				}
				for i, w := range append(writes, Finish(&p, &r, status, reason, end, lo, store.JobControl{})) {
					if _, err := w.Encode(); err != nil {
						t.Fatalf("write %d of a run that is %s, attempt %d: %v", i, status, r.Run.Attempt, err)
					}
				}
			}
		}
	}
}
