package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/why"
	"github.com/soloist-go/soloist/internal/desk"
)

// whyCommand says why a tick did not run, or what became of it.
type whyCommand struct {
	Job  string  `arg:"" name:"JOB" complete:"work" missing:"of which job?" help:"the job or singleton"`
	Time *string `arg:"" optional:"" name:"TIME" help:"which tick: its instant, a time of the job's time zone such as 02:30 or 2026-03-29T02:30, a date, or a span ago such as 2h, which means the last tick up to then; not given: the newest that did not succeed, else the state now"`
	jsonFlag
}

// A whyAnswer is what why prints in JSON.
type whyAnswer struct {
	head
	why.Answer
}

func (c *whyCommand) do(ctx context.Context, a *app.App) int {
	var m why.Moment
	err := a.One(c.Job)
	if err == nil && c.Time != nil {
		if m, err = why.ReadMoment(*c.Time, a.Now(), why.ZoneOf(a, c.Job)); err != nil {
			err = fmt.Errorf("%.70q: %w", *c.Time, err)
		}
	}
	if err != nil {
		return misused(a.Console, fmt.Errorf("why: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	facts := why.Read(ctx, a).Facts(ctx, c.Job, m)
	body, code := whyAnswer{newHead(a, c.Job), facts.Of(m)}, exitOK
	if body.Cause == why.Unread {
		code = exitFail
	}
	return c.answer(a, code, body, func() { printWhy(a, c.Job, body.Answer) })
}

// printWhy prints the sentence, then what it rests on.
func printWhy(a *app.App, job string, w why.Answer) {
	about := job
	if !w.Tick.IsZero() {
		about += ", tick of " + format.Stamp(w.Tick)
	}
	fmt.Fprintf(a.Console.Stdout, "%s: %s\n", about, w.Sentence)
	for _, text := range w.Known {
		fmt.Fprintf(a.Console.Stdout, "  known: %s\n", text)
	}
	for _, text := range w.NotKnown {
		fmt.Fprintf(a.Console.Stdout, "  not known: %s\n", text)
	}
	if w.State != "" {
		fmt.Fprintf(a.Console.Stdout, "  now: %s\n", w.State)
	}
}

var errWhy = errors.New("history: --why is about the ticks of jobs: lock:NAME and once:NAME have none")

// addWhy adds the sentences of all outcomes that are no success.
func addWhy(ctx context.Context, a *app.App, pasts []jobHistory) {
	source := why.Read(ctx, a)
	source.Status = func(ctx context.Context, job string) (desk.Status, error) {
		for i := range pasts {
			if pasts[i].Name == job {
				return pasts[i].status, nil
			}
		}
		return a.Status(ctx, job)
	}
	for i := range pasts {
		p := &pasts[i]
		var facts *why.Facts
		p.Why = make([]string, len(p.History))
		for k := range p.History {
			o := &p.History[k].Outcome
			if o.Status == event.Succeeded || o.Request != "" {
				continue
			}
			if facts == nil {
				facts = source.With(ctx, p.status, p.lines)
			}
			p.Why[k] = facts.OfOutcome(o).Sentence
		}
	}
}
