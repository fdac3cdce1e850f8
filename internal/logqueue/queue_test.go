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

// A sink keeps the lines that it has taken. It blocks at each line until gate is closed; nil: it does not block.
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

// How many lines were dropped is a line at their place, and since when the log has accepted none an error.
func TestLogThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(make(chan struct{}))
		q, log := s.queue()
		log.Info("first")
		synctest.Wait() // it is being written, and takes no room
		begun := time.Now()
		for range waiting + 7 {
			log.Info("waits")
		}
		if took := time.Since(begun); took != 0 || q.Blocked() != nil {
			t.Errorf("a log that blocks has kept its writer for %s: %v", took, q.Blocked())
		}
		q.Wait(time.Hour)
		if err := q.Blocked(); err == nil || !strings.Contains(err.Error(), begun.UTC().Format(time.RFC3339)) {
			t.Errorf("got %v, want since %s", err, begun)
		}
		close(s.gate)
		got := s.lines()
		if n := len(got); n != waiting+2 || got[n-1] != `level=WARN msg="lines were dropped: the log blocks or is too slow" lines=7` {
			t.Errorf("got %d lines, the last ones %q", n, got[max(0, n-2):])
		}
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
