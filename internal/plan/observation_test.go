package plan

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// entry is what a read returns of an entry.
func entry(etag string, state store.LeaseState) *store.Entry {
	return &store.Entry{Revision: store.Revision{ETag: etag, Date: midnight}, State: state}
}

// beats lets the holder of the run in r beat.
func beats(r *record.Record, beat time.Duration) {
	r.Beat = record.Beat{Token: r.Token, Length: record.Seconds(beat)}
}

func TestHoldOff(t *testing.T) {
	const lease = 15 * time.Second
	change := func(r record.Record, change func(*record.Record)) record.Record { change(&r); return r }
	stalled := change(running(), func(r *record.Record) { r.Run.Status = event.Stalled })
	beating := change(running(), func(r *record.Record) { beats(r, 3*time.Second) })
	for name, tt := range map[string]struct {
		record record.Record
		before []store.LeaseState // what reads have shown before; empty: the same
		state  store.LeaseState
		seen   time.Duration // how long ago the first read was
		also   func(*Observation)
		want   time.Duration
	}{
		"after an outcome":                   {record: ended(), state: store.Available},
		"after an outcome, broken":           {record: ended(), state: store.Broken},
		"after an expiry":                    {record: running(), state: store.Expired},
		"after a break":                      {record: running(), state: store.Broken, want: lease},
		"some time after a break":            {record: running(), state: store.Broken, seen: 5 * time.Second, want: 10 * time.Second},
		"long after a break":                 {record: running(), state: store.Broken, seen: 20 * time.Second, want: -5 * time.Second},
		"after a release without an outcome": {record: running(), state: store.Available, want: lease},
		"after a break of a stalled run":     {record: stalled, state: store.Broken, want: lease},
		"after a stalled run has returned":   {record: change(stalled, func(r *record.Record) { r.Run.Finished = clockTime("00:00:12") }), state: store.Broken},
		"after a longer lease":               {record: running(), state: store.Broken, also: func(o *Observation) { o.LastLease = 30 * time.Second }, want: 30 * time.Second},
		"after a deletion":                   {record: ended(), state: store.Available, also: func(o *Observation) { o.RecreatedAt, o.LastLease = ago(5*time.Second), 30*time.Second }, want: 25 * time.Second},
		"after a break under beats":          {record: beating, state: store.Broken, want: silentAfter(3 * time.Second)},
		"some time after the last beat":      {record: beating, state: store.Broken, seen: 2 * time.Second, want: silentAfter(3*time.Second) - 2*time.Second},
		"after an expiry under beats":        {record: beating, state: store.Expired},
		"after a deletion and an expiry":     {record: running(), state: store.Expired, also: func(o *Observation) { o.RecreatedAt = ago(5 * time.Second) }, want: 10 * time.Second},
		// The lease of the next holder ended after the trust of the first one.
		"after a break and an expiry": {record: running(), before: []store.LeaseState{store.Broken, store.Leased}, state: store.Expired, seen: time.Second},
		"after the break of a run before": {record: running(), before: []store.LeaseState{store.Broken}, state: store.Leased, seen: time.Second,
			also: func(o *Observation) { o.tokens.broken-- }},
	} {
		o := Observation{At: ago(tt.seen)}
		for _, state := range append(tt.before, tt.state, tt.state) { // it counts from the first read
			o.See(entry("1", state), &tt.record, midnight)
			o.At = looked
		}
		if tt.also != nil {
			tt.also(&o)
		}
		if got := o.HoldOff(View{Record: &tt.record, State: tt.state, ETag: "1"}); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

func TestOccupied(t *testing.T) {
	type read struct {
		after time.Duration // the read before
		etag  string
		state store.LeaseState
		run   bool
	}
	held := read{10 * time.Second, "1", store.Leased, false}
	held2 := read{10 * time.Second, "2", store.Leased, false}
	for name, tt := range map[string]struct {
		reads []read
		want  bool
	}{
		"for as long as a replica may need": {[]read{held, held, held, held}, false},
		"for longer":                        {[]read{held, held, held, held, held}, true},
		"free in between":                   {[]read{held, held, {10 * time.Second, "1", store.Available, false}, held, held, held}, false},
		"a run in between":                  {[]read{held, held, {10 * time.Second, "1", store.Leased, true}, held, held, held}, false},
		"written in between":                {[]read{held, held, held, held2, held2}, false},
		"an idle job is read once a minute": {[]read{held, {57 * time.Second, "1", store.Leased, false}}, false},
		"watched just often enough":         {[]read{held, {45 * time.Second, "1", store.Leased, false}}, true},
	} {
		o := Observation{At: looked}
		p := Policy{Lease: 15 * time.Second}
		r := ended()
		for _, step := range tt.reads {
			if r = ended(); step.run {
				r = running()
			}
			o.At = o.At.Add(step.after)
			o.See(entry(step.etag, step.state), &r, midnight)
		}
		if got := o.Occupied(p.OccupiedAfter(&r)); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// A holder is silent once one ETag was seen for the length of its beat and a hundredth more, by the record's
// length, and only if the beat is that of the run in the record. Who has nothing to claim then does not ask all the time.
func TestSilent(t *testing.T) {
	for name, tt := range map[string]struct {
		beat  time.Duration
		older bool   // the beat is of an older run
		etags string // one read each second
		after time.Duration
		want  bool
	}{
		"just seen":              {3 * time.Second, false, "a", 0, false},
		"for the bare length":    {3 * time.Second, false, "a", 3 * time.Second, false},
		"long enough":            {3 * time.Second, false, "a", 3031 * time.Millisecond, true},
		"another write since":    {3 * time.Second, false, "aab", 2 * time.Second, false},
		"long enough after that": {3 * time.Second, false, "aab", 3031 * time.Millisecond, true},
		"does not beat":          {0, false, "a", time.Minute, false},
		"a beat of an older run": {3 * time.Second, true, "a", time.Minute, false},
	} {
		r, o := running(), Observation{At: looked}
		if beats(&r, tt.beat); tt.older {
			r.Token++
		}
		v := View{Record: &r, State: store.Leased, Break: Break{Able: true}}
		for _, etag := range tt.etags {
			o.At, v.ETag = o.At.Add(time.Second), string(etag)
			o.See(entry(v.ETag, store.Leased), &r, o.At)
		}
		o.At = o.At.Add(tt.after)
		if got := o.Silent(v); got != tt.want {
			t.Errorf("%s: silent: %t, want %t", name, got, tt.want)
		}
		asks := Action{What: Follow, After: 5 * time.Second, Read: true}
		if got := o.byBeat(asks, v); tt.want && got != asks {
			t.Errorf("%s: with nothing to claim: %+v", name, got)
		}
		if o.LookedAway(); o.Silent(v) {
			t.Errorf("%s: silent after it has looked away", name)
		}
	}
}

// An operator is known to have ended the lease of a run that beats if it lets the lease end, or if no replica can have broken it yet:
// the last write came less than a beat ago.
func TestEndedByOperator(t *testing.T) {
	r := running()
	beats(&r, 3*time.Second)
	type read struct {
		at    time.Duration
		etag  string
		state store.LeaseState
	}
	for name, tt := range map[string]struct {
		reads []read
		want  bool
	}{
		"leased":                        {[]read{{0, "a", store.Leased}, {time.Second, "b", store.Leased}}, false},
		"broken just after a beat":      {[]read{{0, "a", store.Leased}, {time.Second, "b", store.Broken}}, true},
		"broken less than a beat after": {[]read{{0, "a", store.Leased}, {time.Second, "b", store.Leased}, {2900 * time.Millisecond, "b", store.Broken}}, true},
		"broken a beat after":           {[]read{{0, "a", store.Leased}, {time.Second, "b", store.Leased}, {3 * time.Second, "b", store.Broken}}, false},
		"read after long":               {[]read{{0, "a", store.Leased}, {time.Minute, "b", store.Broken}}, false},
		"never read before":             {[]read{{0, "a", store.Broken}}, false},
		"about to end":                  {[]read{{0, "a", store.Breaking}}, true},
		"about to end, and broken":      {[]read{{0, "a", store.Breaking}, {time.Minute, "a", store.Broken}}, true},
		"expired":                       {[]read{{0, "a", store.Leased}, {time.Second, "b", store.Expired}}, false},
	} {
		o := Observation{}
		for _, step := range tt.reads {
			o.At = looked.Add(step.at)
			o.Sends(o.At)
			o.See(entry(step.etag, step.state), &r, midnight)
			o.LookedAway() // what this replica has looked for since does not count
		}
		if got := o.Unlocked(&r); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
		next := r
		next.Token++
		if o.Unlocked(&next) {
			t.Errorf("%s: so is the next run", name)
		}
	}
}
