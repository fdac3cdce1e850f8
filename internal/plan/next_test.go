package plan

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// looked is the instant, by the monotonic clock, of the decisions in these tests.
var looked = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return looked.Add(-d) }

// ended is a record whose last tick, 00:00:10, has its outcome.
func ended() record.Record {
	return record.Record{Definition: record.Definition{Spec: "mine", Since: midnight}, Watermark: clockTime("00:00:10"), Token: 5,
		Run: record.Run{Tick: clockTime("00:00:10"), Attempt: 1, Status: event.Succeeded, Claimed: clockTime("00:00:10"),
			Finished: clockTime("00:00:11"), Lease: record.Seconds(15 * time.Second)}}
}

// running is a record whose tick 00:00:10 runs.
func running() record.Record {
	r := ended()
	r.Watermark, r.Run.Status, r.Run.Finished = midnight, event.Running, time.Time{}
	return r
}

// armedRecord is a record whose tick 00:00:20 is claimed ahead.
func armedRecord() record.Record {
	r := running()
	r.Watermark, r.Run.Tick, r.Run.Armed = clockTime("00:00:10"), clockTime("00:00:20"), true
	return r
}

// foreign is a record of a replica that started at 00:00:05 with another definition.
func foreign(mark record.Mark) record.Record {
	r := ended()
	r.Definition.Spec, r.Definition.Since, r.Definition.Mark = "younger", clockTime("00:00:05"), mark
	return r
}

func TestNext(t *testing.T) {
	const lease = 15 * time.Second
	type change = func(*Policy, *View, *Observation)
	later := func(now string) change { return func(_ *Policy, v *View, _ *Observation) { v.Now = clockTime(now) } }
	mine := record.Mark{Spec: "mine", Since: midnight}
	older := record.Mark{Spec: "older", Since: midnight}
	handed := running()
	handed.Run.Stopping = true
	long := running()
	long.Run.Lease = record.Seconds(30 * time.Second)
	marked := ended()
	marked.Definition.Mark = older
	others := ended() // of a definition that is older than this one, which puts itself into force by a claim
	others.Definition = record.Definition{Spec: "other", Since: midnight.Add(-time.Hour), Mark: record.Mark{Spec: "mine", Since: midnight}}
	toLapse := 4*time.Second + 4*time.Second/99 + 50*time.Millisecond // from 00:00:21 to a third of the lease after the claim

	for name, tt := range map[string]struct {
		record record.Record
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
		"acquires for its own lease after the end":      {func() record.Record { r := ended(); r.Run.Lease = long.Run.Lease; return r }(), store.Available, later("00:00:20"), Action{What: Acquire, Lease: lease}},
		"a singleton acquires at once":                  {ended(), store.Available, func(p *Policy, _ *View, _ *Observation) { p.Ticks = nil }, Action{What: Acquire, Lease: lease}},
		"follows until the next tick":                   {running(), store.Leased, nil, Action{What: Follow, After: 5 * time.Second, Read: true}},
		"follows a lease that is being broken":          {running(), store.Breaking, nil, Action{What: Follow, After: 5 * time.Second, Read: true}},
		"follows until a lapse when a tick is due":      {running(), store.Leased, later("00:00:21"), Action{What: Follow, After: toLapse, Jitter: 200 * time.Millisecond, Read: true}},
		"follows until a lapse under Rerun":             {running(), store.Leased, func(p *Policy, v *View, _ *Observation) { p.Interrupted = Rerun }, Action{What: Follow, After: toLapse, Jitter: 200 * time.Millisecond, Read: true}},
		"follows an older definition until a lapse":     {func() record.Record { r := running(); r.Definition.Spec = "older"; return r }(), store.Leased, func(_ *Policy, v *View, _ *Observation) { v.Since = clockTime("00:00:01") }, Action{What: Follow, After: toLapse, Jitter: 200 * time.Millisecond, Read: true}},
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
		"yields to a younger definition": {foreign(record.Mark{}), store.Available, nil, Action{What: Yield, After: 30 * time.Second, Read: true}},
		"marks when its tick is overdue": {foreign(record.Mark{}), store.Available, later("00:00:20"), Action{What: Mark, After: 30 * time.Second, Read: true}},
		"marks no entry that is leased":  {foreign(record.Mark{}), store.Leased, later("00:00:20"), Action{What: Yield, After: 30 * time.Second, Read: true}},
		"marks not again soon after an answer": {foreign(record.Mark{}), store.Available, func(_ *Policy, v *View, o *Observation) {
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
			v := View{Record: &tt.record, State: tt.state, Now: clockTime("00:00:15"), Earliest: clockTime("00:00:21"), Since: midnight}
			o := Observation{At: looked, LookedAt: looked, HandoverAt: looked, Sighting: Sighting{UnchangedSince: looked}, Fresh: true}
			if tt.also != nil {
				tt.also(&p, &v, &o)
			}
			got := Next(&p, v, &o)
			if got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			v.Earliest = time.Time{}
			if blind := Next(&p, v, &o); got.After == toLapse && blind.After != lease/3 {
				t.Errorf("without the service's clock it waits for %s", blind.After)
			}
		})
	}
}

func TestWaits(t *testing.T) {
	unlocked := record.Unlocked{By: "operator", At: clockTime("00:00:30")}
	beating := running()
	beats(&beating, 3*time.Second)
	for name, tt := range map[string]struct {
		record record.Record
		p      Policy
		now    string
		want   string // empty: the job was not unlocked, or the run is over
	}{
		"not unlocked":                    {record: running(), now: "00:00:35"},
		"the run is over":                 {record: func() record.Record { r := ended(); r.Run.Unlocked = unlocked; return r }(), now: "00:00:35"},
		"nothing is due":                  {record: running(), now: "00:00:19", want: "00:01:45"},
		"a tick is due":                   {record: running(), now: "00:00:35", want: "00:00:51"},
		"Rerun":                           {record: running(), p: Policy{Interrupted: Rerun}, now: "00:00:19", want: "00:00:51"},
		"a holder that beats":             {record: beating, p: Policy{Lease: 15 * time.Second}, now: "00:00:35", want: "00:00:35.030303030"},
		"it beats, and nothing is due":    {record: beating, p: Policy{Lease: 15 * time.Second}, now: "00:00:19", want: "00:01:33.030303030"},
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

// A tick is claimed before it is due, at 00:00:19, unless something else would be settled with it.
func TestClaimEarly(t *testing.T) {
	ordered := record.JobControl{Requests: []record.Request{{Seq: 1, Name: "please", At: midnight, Until: midnight.Add(time.Hour)}}}
	for name, tt := range map[string]struct {
		through, tick string
		at            bool // claims wait for their ticks
		control       record.JobControl
		want          bool
	}{
		"the next tick":        {"00:00:10", "00:00:20", false, record.JobControl{}, true},
		"claims at its tick":   {"00:00:10", "00:00:20", true, record.JobControl{}, false},
		"an older tick is due": {"00:00:00", "00:00:20", false, record.JobControl{}, false},
		"a run is ordered":     {"00:00:10", "00:00:20", false, ordered, false},
		"one would be missed":  {"00:00:10", "00:00:30", false, record.JobControl{}, false},
		"paused":               {"00:00:10", "00:00:20", false, record.JobControl{Pause: record.Pause{At: midnight}}, false},
		"it has its outcome":   {"00:00:20", "00:00:20", false, record.JobControl{}, false},
	} {
		p := Policy{Ticks: every("10s"), ClaimAhead: !tt.at}
		r := record.Record{Watermark: clockTime(tt.through), Token: 5, Run: record.Run{Status: event.Succeeded}}
		next, ok := p.ClaimEarly(View{Record: &r, Now: clockTime("00:00:19"), Control: tt.control}, clockTime(tt.tick))
		if ok != tt.want || ok && (!next.Record.Run.Tick.Equal(clockTime(tt.tick)) || next.Record.Token != 6) {
			t.Errorf("%s: claims %t, %+v", name, ok, next.Record.Run)
		}
	}
}

// TestWanted asks for a job of each hour, whose tick of 01:00 has failed, and is late at 01:30.
func TestWanted(t *testing.T) {
	const leased, expired = store.Leased, store.Expired
	paused := func(from, until string) record.JobControl {
		c := record.JobControl{Pause: record.Pause{At: clockTime(from), By: "ann"}}
		if until != "" {
			c.Pause.Until = clockTime(until)
		}
		return c
	}
	twice := paused("02:15:00", "")
	twice.Pauses = []record.Span{{From: clockTime("01:40:00"), To: clockTime("02:10:00")}}
	running := func(r *record.Record) {
		r.Watermark, r.History = midnight, nil
		r.Run = record.Run{Tick: clockTime("01:00:00"), Claimed: clockTime("01:00:00"), Status: event.Running, Attempt: 1, Lease: record.Seconds(15 * time.Second)}
	}
	told := func(r *record.Record) { r.Past.Judged = clockTime("01:00:00") }
	runsOn := func(r *record.Record) { told(r); running(r) }
	open := func(r *record.Record) { runsOn(r); r.Run.Status = event.Abandoned }
	ahead := func(r *record.Record) {
		told(r)
		r.Run = record.Run{Tick: clockTime("02:00:00"), Claimed: clockTime("01:59:57"), Status: event.Running, Attempt: 1, Armed: true}
	}
	beating := func(r *record.Record) { runsOn(r); beats(r, 99*time.Second) }
	others := func(r *record.Record) { // another definition is in force, whose next tick is that of 01:40
		told(r)
		r.Definition, r.Due = record.Definition{Spec: "younger", Since: clockTime("00:30:00")}, clockTime("01:40:00")
	}
	seq := clockTime("00:01:00").UnixMicro() // an order after the entry was created
	// A backfill of the ticks of 22:00 to 00:00, the first of which was claimed.
	fills := func(c record.JobControl) record.JobControl {
		c.Backfill = record.Backfill{Seq: seq, Spans: []record.Span{{From: midnight.Add(-3 * time.Hour), To: midnight}}}
		return c
	}
	fill := fills(record.JobControl{})
	cancelled := fill
	cancelled.Backfill.Cancelled = record.End{Seq: seq + 1, By: "ann"}
	filled := func(b record.Backfilled) func(*record.Record) {
		return func(r *record.Record) {
			told(r)
			r.Backfill = b
			r.Backfill.Seq = seq
		}
	}
	orders := func(c record.JobControl) record.JobControl {
		c.Requests = []record.Request{{Seq: seq, Name: "please", At: clockTime("01:01:00"), Until: clockTime("03:00:00")}}
		return c
	}
	goesOn, over := filled(record.Backfilled{Through: midnight.Add(-time.Hour)}), filled(record.Backfilled{Through: midnight})
	waits := filled(record.Backfilled{Through: midnight.Add(-2 * time.Hour), Attempt: 1})
	waitsOpen := filled(record.Backfilled{Through: midnight.Add(-time.Hour), Several: true,
		Open: []record.OpenTick{{Tick: midnight.Add(-2 * time.Hour), Attempt: 1}}})
	fillsOn := func(r *record.Record) {
		filled(record.Backfilled{Through: midnight.Add(-2 * time.Hour)})(r)
		r.Run = record.Run{Tick: midnight.Add(-2 * time.Hour), Request: record.BackfillRequest(seq), Order: seq,
			Claimed: clockTime("01:04:00"), Status: event.Running, Attempt: 1}
	}
	skips := func(awaited bool) func(*Policy, *View) { // the settings pause the job for good
		return func(p *Policy, v *View) { told(v.Record); p.Paused, v.Awaited = true, awaited }
	}
	decided := func(through string) func(*Policy, *View) { // of a follower: until then the jobs before it want replicas
		before := []Predecessor{{Watermark: clockTime(through), History: []event.Outcome{{Tick: clockTime(through), Status: event.Succeeded}}}}
		return func(p *Policy, v *View) { told(v.Record); p.After, v.Before = []string{"before"}, before }
	}
	for name, tt := range map[string]struct {
		now    string
		state  store.LeaseState // empty: available
		orders record.JobControl
		change func(*record.Record)
		also   func(*Policy, *View)
		want   string // empty: never
	}{
		"the tick will be late":                          {now: "01:00:10", want: "01:30:00"},
		"will be late, and a client has the lease":       {now: "01:00:10", state: leased, want: "01:30:00"},
		"will be late, under a lease in a pause":         {now: "01:06:00", state: leased, orders: paused("01:05:00", ""), want: "01:30:00"},
		"is late":                                        {now: "01:30:05", want: "01:30:05"},
		"is late, and a client has the lease":            {now: "01:30:05", state: leased, want: "01:30:20"},
		"is late, and is reported":                       {now: "01:30:05", state: leased, change: told, want: "02:00:00"},
		"a tick is due, and a client has the lease":      {now: "02:00:05", state: leased, change: told, want: "02:00:20"},
		"the next tick comes first":                      {now: "02:59:50", state: leased, change: told, want: "03:00:00"},
		"a pause ends, and a client has the lease":       {now: "01:45:00", state: leased, orders: paused("01:40:00", "02:20:00"), change: told, want: "02:20:00"},
		"a pause ends, after the first tick in it":       {now: "01:45:00", orders: paused("01:40:00", "02:20:00"), change: told, want: "02:20:00"},
		"late ticks of an earlier pause, in another":     {now: "02:16:00", orders: twice, change: told},
		"a run is under way":                             {now: "01:05:00", state: leased, change: running, want: "01:05:15"},
		"its runner has died":                            {now: "01:05:00", state: expired, change: running, want: "01:05:00"},
		"its runner has died, in a pause":                {now: "01:05:00", state: expired, orders: paused("01:01:00", ""), change: running, want: "01:30:00"},
		"its runner has died, in a pause that ends":      {now: "01:05:00", state: expired, orders: paused("01:01:00", "01:20:00"), change: running, want: "01:20:00"},
		"a run that beats":                               {now: "01:05:00", state: leased, change: beating, want: "01:06:40"},
		"its runner may be dead at the next tick":        {now: "01:59:50", state: leased, change: runsOn, want: "02:00:00"},
		"and a pause is over by then":                    {now: "01:59:50", state: leased, orders: paused("01:50:00", "01:59:57"), change: runsOn, want: "02:00:00"},
		"and that is a tick of a pause":                  {now: "01:59:50", state: leased, orders: paused("01:50:00", "02:00:02"), change: runsOn, want: "02:00:05"},
		"and of one without an end":                      {now: "01:59:50", state: leased, orders: paused("01:50:00", ""), change: runsOn, want: "02:00:05"},
		"an attempt waits":                               {now: "01:05:00", change: open, want: "01:05:00"},
		"an attempt waits, in a pause that ends":         {now: "01:05:00", orders: paused("01:01:00", "01:20:00"), change: open, want: "01:20:00"},
		"an attempt waits, in a pause":                   {now: "01:05:00", orders: paused("01:01:00", ""), change: open},
		"a tick from before a pause":                     {now: "02:01:00", orders: paused("02:00:30", "02:06:00"), change: told, want: "02:06:00"},
		"claimed ahead, and its runner died":             {now: "01:59:59", change: ahead, want: "02:00:00"},
		"claimed ahead, and its tick is due":             {now: "02:00:00", change: ahead, want: "02:00:00"},
		"a backfill":                                     {now: "01:05:00", orders: fill, change: told, want: "01:05:00"},
		"a backfill, in a pause that ends":               {now: "01:05:00", orders: fills(paused("01:01:00", "01:20:00")), change: told, want: "01:20:00"},
		"a backfill goes on":                             {now: "01:05:00", orders: fill, change: goesOn, want: "01:05:00"},
		"a backfill has an attempt that waits":           {now: "01:05:00", orders: fill, change: waits, want: "01:05:00"},
		"of several ticks":                               {now: "01:05:00", orders: fill, change: waitsOpen, want: "01:05:00"},
		"of a backfill that is cancelled":                {now: "01:05:00", orders: cancelled, change: waits, want: "01:05:00"},
		"of several ticks, cancelled":                    {now: "01:05:00", orders: cancelled, change: waitsOpen, want: "01:05:00"},
		"a backfill is cancelled, and nothing waits":     {now: "01:05:00", orders: cancelled, change: goesOn, want: "02:00:00"},
		"a backfill is over":                             {now: "01:05:00", orders: fill, change: over, want: "02:00:00"},
		"a run of a backfill":                            {now: "01:05:00", state: leased, orders: fill, change: fillsOn, want: "01:05:15"},
		"a run of a backfill, whose runner has died":     {now: "01:05:00", state: expired, orders: fill, change: fillsOn, want: "01:05:00"},
		"a run is ordered":                               {now: "01:05:00", orders: orders(record.JobControl{}), change: told, want: "01:05:00"},
		"a run is ordered, in a pause":                   {now: "01:05:00", orders: orders(paused("01:01:00", "")), change: told, want: "01:05:00"},
		"others have the job":                            {now: "01:10:00", change: others, want: "01:40:00"},
		"their tick is due":                              {now: "01:40:10", change: others, want: "01:40:40"},
		"their tick is due for long":                     {now: "01:50:00", change: others, want: "01:55:00"},
		"their tick is due, and the next one of its own": {now: "01:59:00", change: others, want: "02:00:00"},
		"others have the job, in a pause":                {now: "01:59:00", orders: paused("01:50:00", ""), change: others},
		"a follower's tick waits":                        {now: "02:00:05", also: decided("01:00:00")},
		"a follower's next tick will wait":               {now: "01:30:00", also: decided("01:00:00")},
		"a follower's next tick is decided":              {now: "01:30:00", also: decided("02:00:00"), want: "02:00:00"},
		"a follower's tick is decided and has come":      {now: "02:00:05", also: decided("02:00:00"), want: "02:00:05"},
		"a follower waits for a skip to come":            {now: "01:30:00", also: skips(true), want: "02:00:00"},
		"a follower waits for a skip":                    {now: "02:00:05", also: skips(true), want: "02:00:05"},
		"no follower waits for a skip to come":           {now: "01:30:00", also: skips(false)},
		"no follower waits for a skip":                   {now: "02:00:05", also: skips(false)},
		"others have the job, in a pause that ends":      {now: "01:59:00", orders: paused("01:50:00", "02:20:00"), change: others, want: "02:20:00"},
	} {
		p := Policy{Ticks: every("1h"), Spec: "job", Lease: 15 * time.Second, Late: Late{Finish: 30 * time.Minute}, Interrupted: Rerun}
		r := record.Record{Created: midnight, Watermark: clockTime("01:00:00"), Definition: record.Definition{Spec: "job"}, Past: record.Past{Judged: midnight},
			History: []event.Outcome{{Tick: clockTime("01:00:00"), Status: event.Failed}}, Run: record.Run{Tick: clockTime("01:00:00"), Status: event.Failed, Attempt: 1}}
		if tt.change != nil {
			tt.change(&r)
		}
		got, v := "", View{Record: &r, State: tt.state, Now: clockTime(tt.now), Control: tt.orders}
		if v.Break.Able = true; tt.state == "" {
			v.State = store.Available
		}
		if tt.also != nil {
			tt.also(&p, &v)
			p.Late.Finish = 0
		}
		if at := Wanted(&p, v); !at.IsZero() {
			got = at.Format(time.TimeOnly)
		}
		if got != tt.want {
			t.Errorf("%s: a replica is wanted at %q, want %q", name, got, tt.want)
		}
	}
}
