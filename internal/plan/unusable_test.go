package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

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
