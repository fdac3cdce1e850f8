package plan

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// looked is the instant, by the monotonic clock, of the decisions in these tests.
var looked = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return looked.Add(-d) }

// ended is a record whose last tick, 00:00:10, has its outcome.
func ended() store.Record {
	return store.Record{Definition: store.Definition{Spec: "mine", Since: midnight}, Watermark: clockTime("00:00:10"), Token: 5,
		Run: store.Run{Tick: clockTime("00:00:10"), Attempt: 1, Status: store.Succeeded, Claimed: clockTime("00:00:10"),
			Finished: clockTime("00:00:11"), Lease: store.Seconds(15 * time.Second)}}
}

// running is a record whose tick 00:00:10 runs.
func running() store.Record {
	r := ended()
	r.Watermark, r.Run.Status, r.Run.Finished = midnight, store.Running, time.Time{}
	return r
}

// armedRecord is a record whose tick 00:00:20 is claimed ahead.
func armedRecord() store.Record {
	r := running()
	r.Watermark, r.Run.Tick, r.Run.Armed = clockTime("00:00:10"), clockTime("00:00:20"), true
	return r
}

// foreign is a record of a replica that started at 00:00:05 with another definition.
func foreign(mark store.Mark) store.Record {
	r := ended()
	r.Definition.Spec, r.Definition.Since, r.Definition.Mark = "younger", clockTime("00:00:05"), mark
	return r
}

func TestNext(t *testing.T) {
	const lease = 15 * time.Second
	type change = func(*Policy, *View, *Observation)
	later := func(now string) change { return func(_ *Policy, v *View, _ *Observation) { v.Now = clockTime(now) } }
	mine := store.Mark{Spec: "mine", Since: midnight}
	older := store.Mark{Spec: "older", Since: midnight}
	handed := running()
	handed.Run.Stopping = true
	long := running()
	long.Run.Lease = store.Seconds(30 * time.Second)
	marked := ended()
	marked.Definition.Mark = older
	others := ended() // of a definition that is older than this one, which puts itself into force by a claim
	others.Definition = store.Definition{Spec: "other", Since: midnight.Add(-time.Hour), Mark: store.Mark{Spec: "mine", Since: midnight}}
	toLapse := 4*time.Second + 4*time.Second/99 + 50*time.Millisecond // from 00:00:21 to a third of the lease after the claim

	for name, tt := range map[string]struct {
		record store.Record
		state  store.LeaseState
		also   change
		want   Action
	}{
		"waits for the next tick":                       {ended(), store.Available, nil, Action{After: 5 * time.Second}},
		"reads at least once a minute":                  {ended(), store.Available, func(_ *Policy, _ *View, o *Observation) { o.LookedAt = ago(58 * time.Second) }, Action{After: 2 * time.Second}},
		"reads after a minute":                          {ended(), store.Available, func(_ *Policy, _ *View, o *Observation) { o.LookedAt = ago(time.Minute) }, Action{Read: true}},
		"acquires when a tick is due":                   {ended(), store.Available, later("00:00:20"), Action{What: Acquire, Lease: lease}},
		"acquires for a dead runner":                    {running(), store.Expired, nil, Action{What: Acquire, Lease: lease}},
		"acquires for the longer lease that was broken": {long, store.Broken, nil, Action{What: Acquire, Lease: 30 * time.Second}},
		"acquires for its own lease after expiry":       {long, store.Expired, nil, Action{What: Acquire, Lease: lease}},
		"acquires for its own lease after the end":      {func() store.Record { r := ended(); r.Run.Lease = long.Run.Lease; return r }(), store.Available, later("00:00:20"), Action{What: Acquire, Lease: lease}},
		"a singleton acquires at once":                  {ended(), store.Available, func(p *Policy, _ *View, _ *Observation) { p.Ticks = nil }, Action{What: Acquire, Lease: lease}},
		"follows until the next tick":                   {running(), store.Leased, nil, Action{What: Follow, After: 5 * time.Second, Read: true}},
		"follows a lease that is being broken":          {running(), store.Breaking, nil, Action{What: Follow, After: 5 * time.Second, Read: true}},
		"follows until a lapse when a tick is due":      {running(), store.Leased, later("00:00:21"), Action{What: Follow, After: toLapse, Jitter: 200 * time.Millisecond, Read: true}},
		"follows until a lapse under Rerun":             {running(), store.Leased, func(p *Policy, v *View, _ *Observation) { p.Interrupted = Rerun }, Action{What: Follow, After: toLapse, Jitter: 200 * time.Millisecond, Read: true}},
		"follows an older definition until a lapse":     {func() store.Record { r := running(); r.Definition.Spec = "older"; return r }(), store.Leased, func(_ *Policy, v *View, _ *Observation) { v.Since = clockTime("00:00:01") }, Action{What: Follow, After: toLapse, Jitter: 200 * time.Millisecond, Read: true}},
		"follows a singleton until a lapse":             {running(), store.Leased, func(p *Policy, _ *View, _ *Observation) { p.Ticks = nil }, Action{What: Follow, After: toLapse, Jitter: 200 * time.Millisecond, Read: true}},
		"follows closely when a run is handed over":     {handed, store.Leased, later("00:00:21"), Action{What: Follow, After: toLapse, Jitter: 200 * time.Millisecond, Most: 100 * time.Millisecond, Read: true}},
		"follows less closely after half a minute": {handed, store.Leased, func(_ *Policy, v *View, o *Observation) {
			v.Now, o.HandoverAt = clockTime("00:00:21"), ago(time.Minute)
		}, Action{What: Follow, After: toLapse, Jitter: 200 * time.Millisecond, Most: 200 * time.Millisecond, Read: true}},
		"does not follow closely when nothing waits": {handed, store.Leased, nil, Action{What: Follow, After: 5 * time.Second, Read: true}},
		"queues behind a lease without a claim":      {ended(), store.Leased, later("00:00:20"), Action{What: Queue, After: 1250 * time.Millisecond, Jitter: 1250 * time.Millisecond, Read: true}},
		"queues for a sixth of the beat":             {ended(), store.Leased, func(p *Policy, v *View, _ *Observation) { p.Beat, v.Now = 3*time.Second, clockTime("00:00:20") }, Action{What: Queue, After: 250 * time.Millisecond, Jitter: 250 * time.Millisecond, Read: true}},
		"queues closely behind a run that is handed over": {ended(), store.Leased, func(_ *Policy, v *View, o *Observation) {
			v.Now, o.tokens.handed = clockTime("00:00:20"), 5
		}, Action{What: Queue, After: 1250 * time.Millisecond, Jitter: 1250 * time.Millisecond, Most: 100 * time.Millisecond, Read: true}},
		"queues less closely behind one that was": {ended(), store.Leased, func(_ *Policy, v *View, o *Observation) {
			v.Now, o.tokens.handed, o.UnchangedSince = clockTime("00:00:20"), 5, ago(time.Second)
		}, Action{What: Queue, After: 1250 * time.Millisecond, Jitter: 1250 * time.Millisecond, Most: time.Second, Read: true}},
		"tries a lease that an older read has shown": {ended(), store.Leased, func(_ *Policy, v *View, o *Observation) { v.Now, o.Fresh = clockTime("00:00:20"), false }, Action{What: Acquire, Lease: lease}},
		"is blocked by a lease without a claim that lasts": {ended(), store.Leased, func(_ *Policy, v *View, o *Observation) {
			v.Now, o.Occupation.Since = clockTime("00:00:20"), ago(2*lease+5*time.Second+1)
		}, Action{What: Blocked, After: 30 * time.Second, Read: true}},
		"waits behind a lease when nothing is due": {ended(), store.Leased, nil, Action{After: 5 * time.Second}},
		"waits for the tick of a dead runner":      {armedRecord(), store.Expired, nil, Action{After: 5 * time.Second}},
		"waits for that tick in a pause too": {armedRecord(), store.Expired, func(_ *Policy, v *View, _ *Observation) {
			v.Control.Pause.At = clockTime("00:00:12")
		}, Action{After: 5 * time.Second}},
		"answers a mark":                       {marked, store.Available, nil, Action{What: Answer}},
		"answers a mark that it has just read": {marked, store.Available, func(_ *Policy, _ *View, o *Observation) { o.Fresh = false }, Action{After: 5 * time.Second}},
		"answers a mark only on a free entry":  {marked, store.Leased, nil, Action{After: 5 * time.Second}},
		"answers no mark for another definition": {others, store.Available, func(p *Policy, v *View, _ *Observation) {
			p.Ticks, v.Control.Pause.At = nil, clockTime("00:00:12")
		}, Action{After: 30 * time.Second}},
		"yields to a younger definition": {foreign(store.Mark{}), store.Available, nil, Action{What: Yield, After: 30 * time.Second, Read: true}},
		"marks when its tick is overdue": {foreign(store.Mark{}), store.Available, later("00:00:20"), Action{What: Mark, After: 30 * time.Second, Read: true}},
		"marks no entry that is leased":  {foreign(store.Mark{}), store.Leased, later("00:00:20"), Action{What: Yield, After: 30 * time.Second, Read: true}},
		"marks not again soon after an answer": {foreign(store.Mark{}), store.Available, func(_ *Policy, v *View, o *Observation) {
			v.Now, o.AskedAt = clockTime("00:00:20"), ago(2*time.Minute-1)
		}, Action{What: Yield, After: 30 * time.Second, Read: true}},
		"waits for the answer to its mark": {foreign(mine), store.Available, func(_ *Policy, v *View, o *Observation) {
			v.Now, o.UnchangedSince = clockTime("00:05:00"), ago(4*time.Minute-1)
		}, Action{What: Yield, After: 30 * time.Second, Read: true}},
		"inherits when its mark has no answer": {foreign(mine), store.Available, func(_ *Policy, v *View, o *Observation) {
			v.Now, o.UnchangedSince = clockTime("00:05:00"), ago(4*time.Minute)
		}, Action{What: Inherit, Since: clockTime("00:05:00")}},
		"inherits no entry that is leased": {foreign(mine), store.Leased, func(_ *Policy, v *View, o *Observation) {
			v.Now, o.UnchangedSince = clockTime("00:05:00"), ago(4*time.Minute)
		}, Action{What: Yield, After: 30 * time.Second, Read: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Ticks: every("10s"), Spec: "mine", Lease: lease}
			v := View{Record: &tt.record, State: tt.state, Now: clockTime("00:00:15"), Since: midnight}
			o := Observation{At: looked, LookedAt: looked, HandoverAt: looked, Sighting: Sighting{UnchangedSince: looked}, Fresh: true}
			if tt.also != nil {
				tt.also(&p, &v, &o)
			}
			if got := p.Next(v, &o, Clock{Low: clockTime("00:00:21"), Drift: 100}); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestFollowWithoutServiceClock(t *testing.T) {
	r := running()
	p := Policy{Ticks: every("10s"), Spec: "mine", Lease: 15 * time.Second}
	got := p.Next(View{Record: &r, State: store.Leased, Now: clockTime("00:00:21")}, &Observation{At: looked, Fresh: true}, Clock{Drift: 100})
	if want := (Action{What: Follow, After: 5 * time.Second, Read: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWaits(t *testing.T) {
	unlocked := store.Unlocked{By: "operator", At: clockTime("00:00:30")}
	beats := running()
	beats.Beat = store.Beat{Token: beats.Token, Length: store.Seconds(3 * time.Second)}
	for name, tt := range map[string]struct {
		record store.Record
		p      Policy
		now    string
		want   string // empty: the job was not unlocked, or the run is over
	}{
		"not unlocked":                    {record: running(), now: "00:00:35"},
		"the run is over":                 {record: func() store.Record { r := ended(); r.Run.Unlocked = unlocked; return r }(), now: "00:00:35"},
		"nothing is due":                  {record: running(), now: "00:00:19", want: "00:01:45"},
		"a tick is due":                   {record: running(), now: "00:00:35", want: "00:00:51"},
		"Rerun":                           {record: running(), p: Policy{Interrupted: Rerun}, now: "00:00:19", want: "00:00:51"},
		"a holder that beats":             {record: beats, p: Policy{Lease: 15 * time.Second}, now: "00:00:35", want: "00:00:35.030303030"},
		"it beats, and nothing is due":    {record: beats, p: Policy{Lease: 15 * time.Second}, now: "00:00:19", want: "00:01:33.030303030"},
		"the lease of the program longer": {record: running(), p: Policy{Lease: time.Minute}, now: "00:00:35", want: "00:01:36"},
	} {
		tt.p.Ticks, tt.p.Spec = every("10s"), "mine"
		want := time.Time{}
		if tt.want != "" {
			want, tt.record.Run.Unlocked = clockTime(tt.want), unlocked
		}
		if got := tt.p.Waits(&tt.record, clockTime(tt.now)); !got.Equal(want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
