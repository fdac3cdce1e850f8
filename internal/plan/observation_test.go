package plan

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// entry is what a read returns of an entry.
func entry(etag string, state store.LeaseState) *store.Entry {
	return &store.Entry{Revision: store.Revision{ETag: etag, Date: midnight}, State: state}
}

func TestHoldOff(t *testing.T) {
	const lease = 15 * time.Second
	stalled := running()
	stalled.Run.Status = store.Stalled
	beats := running()
	beats.Beat = store.Beat{Token: beats.Token, Length: store.Seconds(3 * time.Second)}
	returned := stalled
	returned.Run.Finished = clockTime("00:00:12")
	for name, tt := range map[string]struct {
		record store.Record
		state  store.LeaseState
		seen   time.Duration // how long ago the first read showed this state
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
		"after a stalled run has returned":   {record: returned, state: store.Broken},
		"after a longer lease":               {record: running(), state: store.Broken, also: func(o *Observation) { o.LastLease = 30 * time.Second }, want: 30 * time.Second},
		"after a deletion":                   {record: ended(), state: store.Available, also: func(o *Observation) { o.RecreatedAt, o.LastLease = ago(5*time.Second), 30*time.Second }, want: 25 * time.Second},
		"after a break under beats":          {record: beats, state: store.Broken, want: silentAfter(3 * time.Second)},
		"some time after the last beat":      {record: beats, state: store.Broken, seen: 2 * time.Second, want: silentAfter(3*time.Second) - 2*time.Second},
		"after an expiry under beats":        {record: beats, state: store.Expired},
		"after a deletion and an expiry":     {record: running(), state: store.Expired, also: func(o *Observation) { o.RecreatedAt = ago(5 * time.Second) }, want: 10 * time.Second},
	} {
		o := Observation{At: ago(tt.seen)}
		o.See(entry("1", tt.state), &tt.record, midnight)
		o.At = looked
		o.See(entry("1", tt.state), &tt.record, midnight) // counts from the first read all the same
		if tt.also != nil {
			tt.also(&o)
		}
		if got := o.HoldOff(View{Record: &tt.record, State: tt.state, ETag: "1"}); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

// The break of one run is no reason to hold off after the next one.
func TestHoldOffIsForOneRun(t *testing.T) {
	r, o := running(), Observation{At: ago(time.Second)}
	o.See(entry("1", store.Broken), &r, midnight)
	r.Token++
	o.At = looked
	o.See(entry("2", store.Leased), &r, midnight)
	if got := o.HoldOff(View{Record: &r, State: store.Leased}); got != 0 {
		t.Errorf("holds off for %s", got)
	}
}

// A follower that has seen the break, and then the lease of the next holder expire, need
// not hold off: that lease ended after the trust of the first holder.
func TestExpiryAfterBreakNeedsNoHoldOff(t *testing.T) {
	r, o := running(), Observation{At: ago(time.Second)}
	for _, state := range []store.LeaseState{store.Broken, store.Leased, store.Expired} {
		o.See(entry("1", state), &r, midnight)
		o.At = looked
	}
	if got := o.HoldOff(View{Record: &r, State: store.Expired}); got != 0 {
		t.Errorf("holds off for %s", got)
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
		if got := p.Occupied(&r, &o); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
