package logqueue_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/logqueue"
)

// waiting is how many lines the queue keeps beside the one that is being written.
const waiting = 500

// A sink keeps the lines that it has taken. It blocks at each line until it gets
// a value from gate; nil: it does not block.
type sink struct {
	slog.Handler
	text bytes.Buffer
	gate chan struct{}
}

func newSink(gate chan struct{}) *sink {
	s := &sink{gate: gate}
	s.Handler = slog.NewTextHandler(&s.text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	return s
}

func (s *sink) Handle(ctx context.Context, r slog.Record) error {
	if s.gate != nil {
		<-s.gate
	}
	return s.Handler.Handle(ctx, r)
}

// lines are those that were taken so far.
func (s *sink) lines() []string {
	synctest.Wait()
	return strings.Split(strings.TrimSuffix(s.text.String(), "\n"), "\n")
}

// queue returns a queue and a logger whose lines go through it to s.
func (s *sink) queue() (*logqueue.Queue, *slog.Logger) {
	q := &logqueue.Queue{Root: s}
	return q, q.Logger(slog.New(s))
}

func TestLinesComeInTheOrderInWhichTheyWereLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(nil)
		_, log := s.queue()
		loud := log.With("job", "report").WithGroup("run")
		var want []string
		for i := range 100 {
			log.Info("line", "n", i)
			loud.Warn("line", "n", i)
			log.Debug("not enabled")
			want = append(want, fmt.Sprintf("level=INFO msg=line n=%d", i), fmt.Sprintf("level=WARN msg=line job=report run.n=%d", i))
		}
		if got := s.lines(); !slices.Equal(got, want) {
			t.Errorf("got %d lines, want %d: %q", len(got), len(want), got)
		}
	})
}

// A line that finds no room is dropped. How many were is a line at their place:
// before the next line that finds room, or after the last one.
func TestDroppedLinesAreCountedAtTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(make(chan struct{}))
		_, log := s.queue()
		begin := time.Now()
		var want []string
		fill := func(part string, lost int) {
			for i := range waiting + lost {
				log.Info(part, "n", i)
				if i < waiting {
					want = append(want, fmt.Sprintf("level=INFO msg=%s n=%d", part, i))
				}
			}
			want = append(want, fmt.Sprintf(`level=WARN msg="lines were dropped: the log blocks or is too slow" lines=%d`, lost))
		}
		log.Info("first")
		want = append(want, "level=INFO msg=first")
		synctest.Wait() // it is being written, and takes no room
		fill("one", 30)
		if took := time.Since(begin); took != 0 {
			t.Errorf("a log that blocks has kept its writer for %s", took)
		}
		for range 1 + waiting { // up to the last line that waited: the news of the drop is next
			s.gate <- struct{}{}
		}
		synctest.Wait()
		fill("two", 1)
		close(s.gate)
		if got := s.lines(); !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("line %d is %q, want %q", i, got[i], want[i])
				}
			}
			t.Errorf("got %d lines, want %d", len(got), len(want))
		}
	})
}

// Lines that were dropped are told of before a line that finds room again.
func TestDroppedLinesAreToldBeforeTheNextLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(make(chan struct{}))
		_, log := s.queue()
		log.Info("first")
		synctest.Wait()
		for range waiting + 7 {
			log.Info("waits")
		}
		s.gate <- struct{}{} // one line is written, and leaves room
		synctest.Wait()
		log.Info("last")
		close(s.gate)
		got := s.lines()
		if n := len(got); n != waiting+3 || !strings.HasSuffix(got[n-2], "lines=7") || !strings.HasSuffix(got[n-1], "msg=last") {
			t.Errorf("got %d lines, the last ones %q", n, got[max(0, n-2):])
		}
	})
}

func TestWaitEndsWithTheLastLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(make(chan struct{}))
		q, log := s.queue()
		begin := time.Now()
		if q.Wait(time.Minute); time.Since(begin) != 0 {
			t.Errorf("without a line it has waited for %s", time.Since(begin))
		}
		log.Info("one")
		log.Info("two")
		for i := range 2 {
			time.AfterFunc(time.Duration(i+1)*time.Second, func() { s.gate <- struct{}{} })
		}
		if q.Wait(time.Minute); time.Since(begin) != 2*time.Second || len(s.lines()) != 2 {
			t.Errorf("it has waited for %s, and %d of 2 lines are written", time.Since(begin), len(s.lines()))
		}
	})
}

// The patience counts from when the line was begun that blocks: two callers, one
// after the other, do not wait twice as long.
func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(make(chan struct{}))
		q, log := s.queue()
		begin := time.Now()
		log.Info("blocks")
		for _, patience := range []time.Duration{5 * time.Second, 5 * time.Second, 3 * time.Second} {
			if q.Wait(patience); time.Since(begin) != 5*time.Second {
				t.Errorf("it has waited for %s", time.Since(begin))
			}
		}
		if q.Wait(time.Minute); time.Since(begin) != time.Minute {
			t.Errorf("with more patience it has waited for %s", time.Since(begin))
		}
		close(s.gate)
	})
}

// Only one line that takes three minutes counts: a log that is slow, and takes
// line after line, is none that blocks.
func TestBlockedTellsOfALineThatTakesThreeMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(make(chan struct{}))
		q, log := s.queue()
		check := func(when string, want bool) {
			t.Helper()
			synctest.Wait()
			if err := q.Blocked(); (err != nil) != want {
				t.Errorf("%s: %v", when, err)
			}
		}
		check("no line", false)
		for range 3 {
			log.Info("slow")
		}
		for range 2 {
			time.Sleep(2 * time.Minute)
			check("two minutes after each line", false)
			s.gate <- struct{}{}
		}
		synctest.Wait()
		begun := time.Now().UTC().Format(time.RFC3339)
		time.Sleep(3*time.Minute - 1)
		check("before three minutes", false)
		time.Sleep(time.Nanosecond)
		check("after three minutes", true)
		time.Sleep(time.Hour)
		if err := q.Blocked(); err == nil || !strings.Contains(err.Error(), begun) {
			t.Errorf("got %v, want since %s", err, begun)
		}
		close(s.gate)
		check("once it takes lines again", false)
	})
}

// A lockedLog is a handler that locks to add attributes, as it does to write a line.
type lockedLog struct {
	slog.Handler
	lock chan struct{} // has room for one
}

func (h lockedLog) Handle(ctx context.Context, r slog.Record) error {
	h.lock <- struct{}{}
	defer func() { <-h.lock }()
	return h.Handler.Handle(ctx, r)
}

func (h lockedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.lock <- struct{}{}
	defer func() { <-h.lock }()
	return lockedLog{h.Handler.WithAttrs(attrs), h.lock}
}

func TestAttributesOfABlockedLogDelayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(nil)
		h := lockedLog{s, make(chan struct{}, 1)}
		log := (&logqueue.Queue{Root: h}).Logger(slog.New(h))
		h.lock <- struct{}{} // a line is being written
		begin := time.AfterFunc(time.Minute, func() { <-h.lock })
		log.With("job", "report").WithGroup("run").With("tick", 1).Info("line", "n", 2)
		if !begin.Stop() {
			t.Error("the attributes have waited for the lock")
		} else {
			<-h.lock
		}
		if got, want := s.lines(), []string{"level=INFO msg=line job=report run.tick=1 run.n=2"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
