package host

import (
	"context"
	"fmt"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/locks"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/store"
)

// showLock is history of what is no job, such as lock:tenant-42.
func (c *historyCommand) showLock(ctx context.Context, a *app.App, named locks.Named) int {
	wanted, err := c.filter(a)
	if err != nil {
		for _, text := range format.Lines(err) {
			a.Console.Tell("%s", text)
		}
		return exitUsage
	}
	lister, ok := a.Scheduler.Store.(store.Lister)
	if !ok {
		a.Console.Tell("history: %s cannot be looked for: the store does not list its entries, for which it has to implement store.Lister", format.Line(named.String()))
		return exitFail
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	records, err := locks.PastOf(ctx, lister, a.Settings.App, named)
	if err != nil {
		a.Console.Complain(err)
		return exitFail
	}
	pasts, code := []jobHistory{}, exitOK
	for _, r := range records {
		p := wanted.lockHistory(r)
		if pasts = append(pasts, p); p.Error != "" {
			code = exitFail
		}
	}
	if len(pasts) == 0 {
		lines := []string{fmt.Sprintf("no record of %s of app %q in %s: it was never held there", format.Line(named.String()), a.Settings.App, a.Place)}
		body := view.New(a, pasts)
		return tellAbsence(a, c.jsonFlag, lines, &body)
	}
	if c.JSON {
		return max(code, printed(a.Console.JSON(view.New(a, pasts))))
	}
	printHistory(a, pasts)
	return code
}

// lockHistory is the history of one slot, or of one key.
func (f filter) lockHistory(r locks.Past) jobHistory {
	p := jobHistory{Name: format.Line(r.Name), Kind: r.Kind, State: view.State(r.State), History: []past.Run{}, Counts: r.Record.Counts}
	if p.Counts == nil {
		p.Counts = map[store.Status]int64{}
	}
	if r.Err != nil {
		p.Error = format.Line(r.Err.Error())
	}
	p.words = r.State
	if r.State == "held" && r.Record.MayRun() {
		p.words += " by " + format.Line(r.Record.Run.Replica)
	}
	p.History, _ = f.Select(p.Name, past.OfRecord(&soloist.JobStatus{Record: r.Record}), 0, f.limit)
	return p
}
