//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/soloist-go/soloist/bench/internal/database"
)

// A moment is how large the tables of a fleet were.
type moment struct {
	after          time.Duration // the first tick
	tables, before []database.Table
}

// growth looks at the tables at five moments of a window, and says what it saw.
func (b *bench) growth(ctx context.Context, f *fleet, w Window) (all []moment, err error) {
	const parts = 4
	if f.settings.Service != b.services.ready[postgres] {
		return nil, errors.New(f.scenario + " is for peers on PostgreSQL alone: want -peers of them")
	}
	for i := range parts + 1 {
		m := moment{after: w.End.Sub(w.Begin) * time.Duration(i) / parts}
		if err := errors.Join(until(ctx, w.Begin.Add(m.after)), f.check()); err != nil {
			return all, err
		}
		if m.tables, err = b.services.server.Tables(ctx, f.settings.Space); err != nil {
			return all, err
		}
		if i > 0 {
			m.before = all[i-1].tables
		}
		m.print(os.Stderr, f.peer)
		all = append(all, m)
	}
	return all, nil
}

// print prints a line for each table.
func (m moment) print(out io.Writer, peer string) {
	for _, t := range m.tables {
		fmt.Fprintf(out, "| %s | %s | %s | %d | %d | %d | %s | %d | %d | %d | %d |\n", peer, m.after, t.Name, t.Rows, t.Updates, t.Hot,
			m.share(t), t.Dead, t.Size>>10, t.Indexes>>10, t.Vacuums)
	}
}

// share is the share of HOT updates since the moment before.
func (m moment) share(t database.Table) string {
	for _, b := range m.before {
		if b.Name == t.Name {
			t.Updates, t.Hot = t.Updates-b.Updates, t.Hot-b.Hot
		}
	}
	if t.Updates == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(t.Hot)/float64(t.Updates))
}

// printGrowth prints what was seen of tables, as a second table.
func (t table) printGrowth(out io.Writer) {
	head := "\n| peer | after | table | rows added | updates | HOT | share since before | dead rows | " +
		"table, KiB | indexes, KiB | autovacuums |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
	for _, r := range t {
		if len(r.growth) > 0 {
			fmt.Fprint(out, head)
			head = ""
		}
		for _, m := range r.growth {
			m.print(out, r.peer)
		}
	}
}
