package host_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A stripAnswer is what a test reads of a strip.
type stripAnswer struct {
	Mark, Note                    string
	Matched, Shown, Ticks, Unread int
	AtLeast                       bool
	Twice                         int
	Replicas, Reasons             []string
	Lanes                         []stripLane
}

type stripLane struct {
	Job            string
	At             []int64
	What           string
	By, Why, Ticks []int
	Next           []int64
	Since          int64
}

// stripOf asks for lanes.
func stripOf(t *testing.T, s site, query string) (answer stripAnswer) {
	t.Helper()
	got := s.get("/api/v1/strip" + query)
	wantAnswer(t, query, got, http.StatusOK)
	must(t, json.Unmarshal(got.Body.Bytes(), &answer))
	return answer
}

// lane is that of a job.
func (a stripAnswer) lane(t *testing.T, job string) stripLane {
	t.Helper()
	i := slices.IndexFunc(a.Lanes, func(l stripLane) bool { return l.Job == job })
	if i < 0 {
		t.Fatalf("there is no lane of %s: %+v", job, a.Lanes)
	}
	return a.Lanes[i]
}

// A lane has a cell for each tick, also for each that was missed, with the replica that ran it and the reason; and the ticks to
// come. After a mark there are only the lanes that have changed.
func TestStrip(t *testing.T) {
	bubble(t, []string{replicaName + "a"}, func(t *testing.T) {
		everywhere := soloist.Job{Name: "cache", Schedule: "@hourly", Do: do, EveryReplica: true}
		p := host.Program{Work: append(work(), everywhere), Store: &local.Memory{}}
		run(t.Context(), p, "tick")
		for range 3 {
			time.Sleep(time.Minute)
			run(t.Context(), p, "tick")
		}
		time.Sleep(10 * time.Minute)
		t.Setenv(strings.TrimSuffix(replicaName, "="), "b")
		run(t.Context(), p, "tick")
		time.Sleep(time.Minute)
		run(t.Context(), p, "tick")
		s := open(t, p)
		a := stripOf(t, s, "")
		lane := a.lane(t, "beat")
		wantEqual(t, "outcomes", lane.What, "sssmmmmmmmmmss")
		begin := time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC).Unix()
		wantEqual(t, "their ticks", lane.At, append([]int64{begin}, slices.Repeat([]int64{60}, 13)...))
		wantEqual(t, "their replicas", lane.By, []int{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2})
		wantEqual(t, "the replicas", a.Replicas, []string{"a", "b"})
		wantEqual(t, "their reasons", lane.Why, []int{0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0})
		wantEqual(t, "the reasons", a.Reasons, []string{"a newer one was due"})
		next := begin + 14*60
		wantEqual(t, "the ticks to come", lane.Next, []int64{next, next + 60, next + 120, next + 180, next + 240})
		wantEqual(t, "lanes, without the job that each replica runs", []int{a.Matched, a.Shown, len(a.Lanes)}, []int{3, 3, 3})
		wantEqual(t, "ticks, at least, twice, since", []any{a.Ticks, a.AtLeast, a.Twice, lane.Since}, []any{14, false, 0, int64(0)})

		wantEqual(t, "lanes that have changed", len(stripOf(t, s, "?after="+a.Mark).Lanes), 0)
		time.Sleep(time.Minute)
		s.tick()
		time.Sleep(5 * time.Second)
		more := stripOf(t, s, "?after="+a.Mark)
		wantEqual(t, "after a tick", more.lane(t, "beat").What, "sssmmmmmmmmmsss")
		wantEqual(t, "lanes, of all, ticks", []int{len(more.Lanes), more.Shown, more.Ticks}, []int{1, 3, 15})
		wantEqual(t, "after a mark of another process", len(stripOf(t, s, "?after=other.999").Lanes), 3)
		wantEqual(t, "of a filter", len(stripOf(t, s, "?q=berlin").Lanes), 1)

		day := stripOf(t, s, "?from=16m").lane(t, "beat") // 10 s for each cell: one for each tick
		wantEqual(t, "in its time", day.What, "sssmmmmmmmmmsss")
		day = stripOf(t, s, "?from=24h").lane(t, "beat") // a quarter of an hour for each: the gravest outcome, the last replica
		wantEqual(t, "of a day", []any{day.What, day.Ticks, day.By}, []any{"ms", []int{14, 1}, []int{1, 1}})
		wantEqual(t, "of another time", stripOf(t, s, "?from=24h&to=10m").lane(t, "beat").Ticks, []int{5})
	})
}

// What is left out of a strip is told: lanes, and outcomes that were not read.
func TestStripIsBounded(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}}
		for i := range 1200 {
			p.Work = append(p.Work, soloist.Job{Name: fmt.Sprintf("job-%04d", i), Schedule: "@every 1m", Do: do})
		}
		s := open(t, p)
		for query, want := range map[string]struct {
			lanes int
			note  string
		}{
			"": {500, "700 lanes left out of 1200."}, "?offset=1000": {200, "1000 lanes left out of 1200."},
			"?q=job-119": {10, ""}, "?limit=1&q=job-119": {1, "9 lanes left out of 10."},
		} {
			if a := stripOf(t, s, query); len(a.Lanes) != want.lanes || a.Shown != want.lanes || a.Note != want.note {
				t.Errorf("%q: got %d lanes of %d, %q", query, len(a.Lanes), a.Matched, a.Note)
			}
		}
		for query, want := range map[string]string{
			"?x=1": "want q, from, to, after, offset or limit", "?limit=501": "want a number from 1 to 500", "?offset=-1": "want a number",
			"?from=never": "want a span such as 90m", "?to=2000-01-02": "want a time that has passed", "?from=1m": "want from 1m36s",
			"?from=40d": "want from 1m36s to 744h0m0s", "?from=1h&to=2h": "want from 1m36s",
			"?q=%zz": "cannot be read", "?q=a&q=b": "want it once",
		} {
			wantAnswer(t, query, s.get("/api/v1/strip"+query), http.StatusBadRequest, want)
		}
	})
}

// With a log a lane reaches back to its beginning. The log is read once; if it cannot be, the answer says why.
func TestStripOfLog(t *testing.T) {
	bubble(t, []string{"SOLOIST_HISTORY=8760h"}, func(t *testing.T) {
		backend := &logs{Memory: new(local.Memory)}
		p := frequent(backend)
		ticks(t, p, 140)
		broken := errors.New("no route to the logs")
		backend.err.Store(&broken)
		s := open(t, p)
		a := stripOf(t, s, "")
		const want = "1 lane as short as the records: no route to the logs."
		if a.Note != want || a.Unread != 1 || len(a.lane(t, "often").At) != 20 || !a.AtLeast {
			t.Errorf("without its log: got %q, %+v", a.Note, a)
		}
		backend.err.Store(nil)
		time.Sleep(time.Minute)
		backend.calls.Store(0)
		for range 3 {
			if a = stripOf(t, s, ""); len(a.lane(t, "often").At) != 60 || a.Ticks != 139 || a.AtLeast || a.Note != "" {
				t.Errorf("got %d cells, %d ticks, %q", len(a.lane(t, "often").At), a.Ticks, a.Note)
			}
			time.Sleep(10 * time.Minute)
		}
		wantEqual(t, "how often the log was read", backend.calls.Load(), 1)
	})
}

// Of a history of a year the end is read, whatever is asked for.
func TestStripOfYear(t *testing.T) {
	bubble(t, []string{"SOLOIST_HISTORY=8760h"}, func(t *testing.T) {
		backend := &logs{Memory: new(local.Memory)}
		var b bytes.Buffer
		const n = 12_000
		begin := time.Now().Add(-n * 20 * time.Second)
		for i := range n {
			at := begin.Add(time.Duration(i) * 20 * time.Second)
			o := event.Outcome{Tick: at, Status: event.Succeeded, Attempt: 1, Token: int64(100 + i), Replica: "vm-7775-x3ff", Start: at,
				End: at.Add(time.Second)}
			if i == n-10 || i == n-4 {
				o.Tick = o.Tick.Add(-20 * time.Second) // a second outcome of that tick
			}
			must(t, json.NewEncoder(&b).Encode(o))
		}
		for from := 0; from < b.Len(); from += store.MaxAppend {
			part := b.Bytes()[from:min(b.Len(), from+store.MaxAppend)]
			must(t, backend.Append(t.Context(), store.LogName("demo/often", "000001"), int64(from), part))
		}
		s := open(t, frequent(backend))
		a := stripOf(t, s, "")
		lane := a.lane(t, "often")
		if len(lane.At) != 60 || a.Ticks != 1440 || !a.AtLeast || lane.Since == 0 || a.Twice != 2 {
			t.Errorf("got %d cells of %d ticks, at least: %t, since %d, %d twice", len(lane.At), a.Ticks, a.AtLeast, lane.Since, a.Twice)
		}
		a = stripOf(t, s, "?from=31d")
		lane = a.lane(t, "often")
		if sum := lane.Ticks; len(sum) > 97 || a.Ticks != 1440 {
			t.Errorf("in a month there are %d cells: %v", len(sum), sum)
		}
		wantEqual(t, "how often the log was read", backend.calls.Load(), 1)
	})
}
