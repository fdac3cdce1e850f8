package plan

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A holder is silent once one ETag was seen for the length of its beat and a hundredth more, by the record's
// length, and only if the beat is that of the run in the record.
func TestSilent(t *testing.T) {
	start := time.Now()
	record := func(beat time.Duration, of int64) *store.Record {
		return &store.Record{Token: 7, Beat: store.Beat{Token: of, Length: store.Seconds(beat)}, Run: store.Run{Status: store.Running, Lease: store.Seconds(15 * time.Second)}}
	}
	for name, tt := range map[string]struct {
		record *store.Record
		etags  []string // one read each second
		after  time.Duration
		want   bool
	}{
		"just seen":              {record(3*time.Second, 7), []string{"a"}, 0, false},
		"for the bare length":    {record(3*time.Second, 7), []string{"a"}, 3 * time.Second, false},
		"long enough":            {record(3*time.Second, 7), []string{"a"}, 3031 * time.Millisecond, true},
		"another write since":    {record(3*time.Second, 7), []string{"a", "a", "b"}, 2 * time.Second, false},
		"long enough after that": {record(3*time.Second, 7), []string{"a", "a", "b"}, 3031 * time.Millisecond, true},
		"does not beat":          {record(0, 0), []string{"a"}, time.Minute, false},
		"a beat of an older run": {record(3*time.Second, 6), []string{"a"}, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			var o Observation
			v := View{Record: tt.record, State: store.Leased, Break: Break{Able: true}}
			for i, etag := range tt.etags {
				o.At, v.ETag = start.Add(time.Duration(i)*time.Second), etag
				o.See(&store.Entry{Revision: store.Revision{ETag: etag}, State: store.Leased}, tt.record, o.At)
			}
			o.At = o.At.Add(tt.after)
			if got := o.Silent(v); got != tt.want {
				t.Errorf("silent: %t, want %t", got, tt.want)
			}
			if o.LookedAway(); o.Silent(v) {
				t.Error("silent after it has looked away")
			}
		})
	}
}

// A record whose beat no program of ours writes is left alone.
func TestBeatOutOfBounds(t *testing.T) {
	for beat, ok := range map[time.Duration]bool{0: false, time.Millisecond: false, time.Second: true, 1500 * time.Millisecond: false, 15 * time.Second: true, 16 * time.Second: false} {
		r := &store.Record{Token: 7, Beat: store.Beat{Token: 7, Length: store.Seconds(beat)}, Run: store.Run{Status: store.Running, Lease: store.Seconds(15 * time.Second)}}
		if err := beatOutOfBounds(r); (err == nil) != ok {
			t.Errorf("%s: %v", beat, err)
		}
		r.Run.Status, r.Run.Finished = store.Succeeded, time.Now()
		if err := beatOutOfBounds(r); err != nil {
			t.Errorf("%s, of a run that is over: %v", beat, err)
		}
	}
}

// Who has nothing to claim does not ask all the time, though the holder is silent.
func TestSilentWithNothingToClaim(t *testing.T) {
	start := time.Now()
	r := &store.Record{Token: 7, Beat: store.Beat{Token: 7, Length: store.Seconds(3 * time.Second)}, Run: store.Run{Status: store.Running, Lease: store.Seconds(15 * time.Second)}}
	o, v := Observation{At: start}, View{Record: r, ETag: "a", State: store.Leased, Break: Break{Able: true}}
	o.See(&store.Entry{Revision: store.Revision{ETag: "a"}, State: store.Leased}, r, start)
	o.At = start.Add(time.Minute)
	if a := o.byBeat(Action{What: Follow, After: 5 * time.Second, Read: true}, v); a.After != 5*time.Second || !a.Read {
		t.Errorf("%+v", a)
	}
}

// An operator is known to have ended the lease of a run that beats if it lets the lease end, or if no replica can have broken it yet:
// the last write came less than a beat ago.
func TestEndedByOperator(t *testing.T) {
	start := time.Now()
	r := running()
	r.Beat = store.Beat{Token: r.Token, Length: store.Seconds(3 * time.Second)}
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
			o.At = start.Add(step.at)
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
