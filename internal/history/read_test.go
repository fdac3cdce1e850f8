package history_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/store"
)

// A past is the logs of a job that has run each twenty seconds.
type past struct {
	way
	start  time.Time
	runs   int
	number int
	size   int64
}

// grow appends n outcomes, many at a time: the logs are what counts.
func (p *past) grow(t *testing.T, n int) {
	t.Helper()
	for n > 0 {
		var b bytes.Buffer
		for e := json.NewEncoder(&b); n > 0 && b.Len() < store.MaxAppend-1000; n-- {
			at := p.start.Add(time.Duration(p.runs) * 20 * time.Second)
			p.runs++
			_ = e.Encode(history.Line{Outcome: event.Outcome{Tick: at, Status: event.Succeeded, Attempt: 1,
				Token: int64(1763827200000000 + p.runs), Replica: "vm-7775-x3ff", Start: at.Add(123456789), End: at.Add(4123456789)}})
		}
		if err := p.Memory.Append(t.Context(), store.LogName(entry, fmt.Sprintf("%06d", p.number)), p.size, b.Bytes()); err != nil {
			t.Fatal(err)
		}
		if p.size += int64(b.Len()); p.size >= store.MaxLog-store.MaxAppend {
			p.number, p.size = p.number+1, 0
		}
	}
}

func newPast(start time.Time) *past {
	return &past{way: way{Memory: new(local.Memory)}, start: start, number: 1}
}

// The newest outcomes are read without those before them.
func TestReadOfTheNewest(t *testing.T) {
	p := newPast(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC))
	p.grow(t, 30_000) // about 6 MB: one log and a half
	last := int64(1763827200000000 + p.runs)
	for what, one := range map[string]struct {
		since time.Time
		most  int
		want  int // at least; zero: all
		whole bool
		looks int
	}{
		"a few":            {time.Time{}, 100, 100, false, 2},
		"many":             {time.Time{}, 24_000, 24_000, false, 5},
		"all":              {time.Time{}, 100_000, 0, true, 5},
		"an hour":          {p.start.Add(29_820 * 20 * time.Second), 20_000, 180, true, 2},
		"too long a while": {p.start, 500, 500, false, 2},
		"a day":            {p.start.Add((30_000 - 24*60*3) * 20 * time.Second), math.MaxInt, 24 * 60 * 3, true, 2},
		"none":             {p.start.Add(30_001 * 20 * time.Second), 500, 0, true, 2},
	} {
		p.looks = 0
		lines, whole, err := history.Newest(t.Context(), p, entry, one.since, one.most, nil)
		if err != nil || whole != one.whole || len(lines) < one.want || len(lines) > one.most || p.looks > one.looks {
			t.Errorf("%s: got %d outcomes, whole %t, %v, in %d calls, want %+v", what, len(lines), whole, err, p.looks, one)
		}
		if what == "all" && len(lines) != p.runs || lines[len(lines)-1].Token != last {
			t.Errorf("%s: got %d outcomes until %d, want the last one %d", what, len(lines), lines[len(lines)-1].Token, last)
		}
	}
}

// What was read before is brought up to date by a record, as long as nothing lies between.
func TestUpdateByRecord(t *testing.T) {
	inWorld(t, func(w *world) {
		var lines []history.Line
		for n := range 200 {
			w.run(event.Succeeded)
			if n%17 > 0 {
				continue
			}
			before := slices.Clone(lines)
			all, ok := history.Update(lines, &w.rec)
			if !ok || len(all) != n+1 || all[n].Token != w.rec.Token || !slices.Equal(lines, before) {
				w.t.Fatalf("after %d runs: got %d outcomes, complete %t", n+1, len(all), ok)
			}
			if again, ok := history.Update(all, &w.rec); !ok || !slices.Equal(again, all) {
				w.t.Fatalf("the same record again adds to %d outcomes: %d", len(all), len(again))
			}
			lines = all
		}
		w.rec.History[0].End = w.rec.History[0].End.Add(time.Hour) // as that of a stalled run
		all, _ := history.Update(lines, &w.rec)
		if got := all[len(all)-1]; got.End != w.rec.History[0].End {
			w.t.Errorf("got %+v", got)
		}
		for range 21 {
			w.run(event.Succeeded)
		}
		if all, ok := history.Update(lines, &w.rec); ok || len(all) == 0 {
			w.t.Error("21 outcomes are as many as 20")
		}
	})
}

// The logs that are too old, or too many, are removed; the one that is written stays.
func TestOldLogsAreRemoved(t *testing.T) {
	for what, one := range map[string]struct {
		keep history.Keep
		left int
	}{
		"for ever":  {history.Keep{}, 4},
		"by age":    {history.Keep{Age: 6 * 24 * time.Hour}, 2},
		"by size":   {history.Keep{Bytes: 9 << 20}, 3},
		"very soon": {history.Keep{Age: time.Second}, 1},
		"none":      {history.Keep{Bytes: 1}, 1},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const day = 24 * 60 * 3
				p := newPast(time.Now().Add(-16 * 24 * time.Hour))
				p.Memory = w.store
				p.grow(w.t, 16*day)
				r := w.over(&way{})
				r.Keep = one.keep
				r.run().Take(w.run(event.Succeeded))
				time.Sleep(time.Minute)
				r.end()
				left := 0
				_ = w.store.Logs(w.t.Context(), entry, func(string, int64) bool { left++; return true })
				if left != one.left || p.number != 4 || len(r.failed) > 0 {
					w.t.Errorf("%d logs are left of %d, want %d; failures: %v", left, p.number, one.left, r.failed)
				}
				lines, err := history.Read(w.t.Context(), w.store, entry, time.Time{}, &w.rec)
				if err != nil || len(lines) == 0 || lines[len(lines)-1].Token != w.rec.Token {
					w.t.Errorf("the last outcome is missing, %v", err)
				}
			})
		})
	}
}

// What a store that crashed has left of an append is closed, and left out.
func TestTornLineIsLeftOut(t *testing.T) {
	inWorld(t, func(w *world) {
		torn := []byte(`{"tick":"2026-11-22T00:00:00Z","status":"succ`)
		if err := w.store.Append(w.t.Context(), store.LogName(entry, "000001"), 0, torn); err != nil {
			w.t.Fatal(err)
		}
		w.write(event.Succeeded)
		w.holds(nil, 0)
	})
}

// A reader of no more than the newest lines of the log does not take ticks that stay in the record for new ones.
func TestTicksThatStayAreNotReadAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.replica()
		for range 5 {
			r.Take(w.run(event.Succeeded))
		}
		w.ordered(60, r)
		time.Sleep(2 * time.Hour)
		r.end()
		lines, _, err := history.Newest(t.Context(), w.store, entry, time.Time{}, 20, nil)
		all, _, also := history.Newest(t.Context(), w.store, entry, time.Time{}, 20, &w.rec)
		updated, ok := history.Update(lines, &w.rec)
		if err != nil || also != nil || len(lines) != 20 || len(all) != 20 || len(updated) != 20 || !ok {
			t.Errorf("%d lines, %d with the record, %d updated, %t; want 20 of each, %v, %v",
				len(lines), len(all), len(updated), ok, err, also)
		}
	})
}
