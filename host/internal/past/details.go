package past

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/history"
)

// AddDetails adds to runs of a job that have failed what the log of details has of them.
func AddDetails(ctx context.Context, a *app.App, st *desk.Status, runs []Run) error {
	var of []event.Outcome
	var at []int
	for i, r := range runs {
		if r.Token != 0 && (r.Status == event.Failed || r.Status == event.Stalled || r.Status == event.Abandoned) {
			of, at = append(of, r.Outcome), append(at, i)
		}
	}
	if a.Logs == nil || len(of) == 0 {
		return nil
	}
	texts, err := history.Details(ctx, a.Logs, entryOf(a, st), of)
	for n, text := range texts {
		runs[at[n]].Detail = text
	}
	if err != nil {
		return fmt.Errorf("the log of details could not be read: %w", err)
	}
	return nil
}

const (
	mostAnswers = 64               // that are kept, each of about one run
	answerAge   = 10 * time.Second // a detail may come a moment after its outcome
)

// An answer is what was read of a run.
type answer struct {
	runs []Run
	err  error
	read time.Time
}

// AddDetails is [AddDetails] for those who ask over HTTP: one log is read at a time, and one run once in some seconds.
func (c *Cache) AddDetails(ctx context.Context, st *desk.Status, run string, runs []Run) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
	defer cancel()
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	name := st.Name + "@" + run
	known, ok := c.answers[name] // of the one that reads
	if !ok || len(known.runs) != len(runs) || time.Since(known.read) >= answerAge {
		known = answer{runs: runs, read: time.Now()}
		known.err = AddDetails(ctx, c.app, st, runs)
		if len(c.answers) >= mostAnswers {
			clear(c.answers)
		}
		c.answers[name] = known
	}
	for i := range runs {
		runs[i].Detail = known.runs[i].Detail
	}
	return known.err
}
