//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// measure prints the tables that were asked for.
func measure(out io.Writer, o options) (err error) {
	tables := map[string]func(io.Writer, options) error{"due": due, "idle": idle, "cost": cost}
	for _, name := range kinds {
		if slices.Contains(o.cases, name) {
			table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			err = errors.Join(err, tables[name](table, o), table.Flush())
		}
	}
	return err
}

// due has all jobs due at once, again and again.
func due(out io.Writer, o options) error {
	fmt.Fprintln(out, "ALL DUE AT ONCE\tRUNS\tTWICE\tLOST\tMEDIAN START\tLAST START\tLAST OUTCOME\tCPU A TICK\tCALLS A TICK\tBY KIND")
	var wrong error
	for _, n := range o.jobs {
		r, err := run(load{Jobs: n, Busy: n, Period: o.period, Ticks: o.ticks, Ahead: o.ahead})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d jobs\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", n, r.Runs, r.Twice, r.Lost,
			ms(r.middle(func(d delay) time.Duration { return d.Median })), ms(r.middle(func(d delay) time.Duration { return d.Last })),
			ms(r.middle(func(d delay) time.Duration { return d.Outcome })), us(r.CPU/time.Duration(max(1, r.Runs))), r.calls())
		wrong = errors.Join(wrong, r.wrong(n))
	}
	return wrong
}

// idle has no job due: what is there has to cost next to nothing.
func idle(out io.Writer, o options) error {
	fmt.Fprintln(out, "NONE DUE\tBYTES A JOB\tCPU\tCALLS AT THE START\tCALLS A MINUTE")
	for _, n := range o.jobs {
		r, err := run(load{Jobs: n, Quiet: o.quiet})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d jobs\t%d\t%.2f %%\t%s\t%.0f\n", n, r.Bytes/int64(n), 100*r.share(), kindsOf(r.Start, 1), sum(r.Calls)/r.Wall.Minutes())
	}
	return nil
}

// cost compares the same 100 busy jobs alone and among many. What the many cost
// by themselves is measured without the busy ones, and taken off.
func cost(out io.Writer, o options) error {
	const busy = 100
	fmt.Fprintln(out, "100 JOBS DUE EACH SECOND\tRUNS\tTWICE\tLOST\tMEDIAN START\tLAST START\tCPU A TICK\tCPU WHILE IDLE\tCALLS A TICK\tBY KIND")
	var each []time.Duration
	var wrong error
	for _, n := range []int{busy, max(busy, o.jobs[len(o.jobs)-1])} {
		quiet, err := run(load{Jobs: n, Quiet: min(o.quiet, 30*time.Second)})
		if err != nil {
			return err
		}
		r, err := run(load{Jobs: n, Busy: busy, Period: time.Second, Ticks: 6 * o.ticks, Ahead: o.ahead})
		if err != nil {
			return err
		}
		each = append(each, (r.CPU-time.Duration(quiet.share()*float64(r.Wall)))/time.Duration(max(1, r.Runs)))
		fmt.Fprintf(out, "of %d\t%d\t%d\t%d\t%s\t%s\t%s\t%.2f %%\t%s\n", n, r.Runs, r.Twice, r.Lost,
			ms(r.middle(func(d delay) time.Duration { return d.Median })), ms(r.middle(func(d delay) time.Duration { return d.Last })),
			us(each[len(each)-1]), 100*quiet.share(), r.calls())
		wrong = errors.Join(wrong, r.wrong(n))
	}
	fmt.Fprintf(out, "a tick costs\t%.2f times as much\n", float64(each[1])/float64(each[0]))
	return wrong
}

// middle is the median over the ticks.
func (r result) middle(of func(delay) time.Duration) time.Duration {
	if len(r.Late) == 0 {
		return 0
	}
	var all []time.Duration
	for _, d := range r.Late {
		all = append(all, of(d))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// share is how much of one processor was used.
func (r result) share() float64 { return float64(r.CPU) / float64(r.Wall) }

// calls are the calls of the store for each run, and of which kind.
func (r result) calls() string {
	runs := float64(max(1, r.Runs))
	return fmt.Sprintf("%.2f\t%s", sum(r.Calls)/runs, kindsOf(r.Calls, runs))
}

func (r result) wrong(jobs int) error {
	if r.Twice+r.Lost == 0 {
		return nil
	}
	return fmt.Errorf("%d jobs: %d ticks ran twice, %d did not run", jobs, r.Twice, r.Lost)
}

func sum(calls map[string]int64) (n float64) {
	for _, of := range calls {
		n += float64(of)
	}
	return n
}

// kindsOf prints calls by kind, of each of so many runs.
func kindsOf(calls map[string]int64, runs float64) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(calls)) {
		all = append(all, fmt.Sprintf("%s %.4g", kind, float64(calls[kind])/runs))
	}
	return strings.Join(all, ", ")
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1e3) }
func us(d time.Duration) string { return fmt.Sprintf("%.0f us", d.Seconds()*1e6) }
