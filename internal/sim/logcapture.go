package sim

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// A logCapture is the handler of what a replica logs: each line is an event.
type logCapture struct {
	*world.Machine
	seed  uint64
	calm  func() bool
	up    time.Time // when the replica started
	end   time.Time // of the faults
	job   string
	area  string // of the points that it comes to: ofLock, or empty
	token int64
}

// Enabled implements [slog.Handler]. It is called by the goroutine that logs, at
// that instant. A machine that is gone logs nothing.
func (h *logCapture) Enabled(_ context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo && !h.Gone()
}

// Handle implements [slog.Handler]. A line counts from when it was logged, and is
// lost where the machine goes before it is written.
func (h *logCapture) Handle(_ context.Context, rec slog.Record) error {
	h.block(rec.Message)
	if h.Gone() && rec.Time.Before(time.Now()) {
		return nil
	}
	e := trace.Event{Time: rec.Time, What: trace.Said, Replica: h.Name, Job: h.job, Token: h.token, Note: rec.Message}
	rec.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "token":
			e.Token = a.Value.Int64()
		case "wait": // in a hold-off
			time.AfterFunc(a.Value.Duration()/3, func() { h.At(h.area + "hold-off") })
		}
		return true
	})
	h.Log.Add(e)
	return nil
}

// block sometimes blocks the goroutine that writes the log, as a pipe without a
// reader does. Once in the life of some replicas it takes up to an hour, at
// whatever line.
func (h *logCapture) block(message string) {
	if h.calm() || h.seed == 0 {
		return
	}
	now := time.Now()
	r := draw.New(h.seed, 0, "log", h.Name, h.job, message, fmt.Sprint(h.token), trace.TimeOfDay(now))
	wait := time.Duration(0)
	if message == "run started" && r.Chance(0.01) {
		wait = r.Between(0, 20*time.Second)
	}
	if from, to := h.mute(); !now.Before(from) && now.Before(to) {
		wait = to.Sub(now)
	}
	if wait = min(wait, h.end.Sub(now)); wait > 0 {
		h.Sleep(context.Background(), wait, r)
	}
}

// mute is when the log of this replica takes no line.
func (h *logCapture) mute() (from, to time.Time) {
	r := draw.New(h.seed, 0, "mute log", h.Name)
	if !r.Chance(0.1) {
		return from, to
	}
	from = h.up.Add(r.Between(0, 20*time.Minute))
	return from, from.Add(r.Between(time.Minute, time.Hour))
}

// WithAttrs implements [slog.Handler].
func (h *logCapture) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	for _, a := range attrs {
		switch a.Key {
		case "job":
			c.job = a.Value.String()
		case "lock", "once":
			c.area = draw.OfLock
		case "group":
			c.area = draw.OfGroup
		case "token":
			c.token = a.Value.Int64()
		}
	}
	return &c
}

// WithGroup implements [slog.Handler].
func (h *logCapture) WithGroup(string) slog.Handler { return h }
