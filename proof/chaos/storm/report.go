//go:build unix

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/soloist-go/soloist/event"
)

// report prints what there was, not what was wrong with it.
func report(out io.Writer, s Story) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	reportFaults(w, s)
	reportExits(w, s)
	reportOutcomes(w, s)
	reportEffects(w, s)
	reportReasons(w, s)
}

func reportFaults(w io.Writer, s Story) {
	counts, times := map[string]int{}, map[string]time.Duration{}
	for _, f := range s.Faults {
		counts[f.Kind]++
		times[f.Kind] += f.End.Sub(f.Begin)
	}
	fmt.Fprintf(w, "FAULTS, %d\tCOUNT\tTIME\n", len(s.Faults))
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%s\t%d\t%s\n", kind, counts[kind], times[kind].Round(time.Second))
	}
	fmt.Fprintln(w)
}

func reportExits(w io.Writer, s Story) {
	counts := map[string]int{}
	for _, e := range s.Exits {
		how := fmt.Sprintf("%s, code %d", cmp.Or(e.Asked, "by itself"), e.Code)
		counts[how]++
	}
	fmt.Fprintf(w, "PROCESSES ENDED, %d\tCOUNT\n", len(s.Exits))
	for _, how := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%s\t%d\n", how, counts[how])
	}
	fmt.Fprintln(w)
}

var outcomes = []event.Status{event.Succeeded, event.Failed, event.Stalled, event.Abandoned, event.Skipped, event.Missed}

// reportOutcomes prints what the last records count.
func reportOutcomes(w io.Writer, s Story) {
	counts := map[string]map[event.Status]int64{}
	for _, q := range s.Requests {
		if q.Record != nil {
			counts[q.Job] = q.Record.Counts
		}
	}
	fmt.Fprint(w, "TICKS BY FATE")
	for _, status := range outcomes {
		fmt.Fprintf(w, "\t%s", strings.ToUpper(string(status)))
	}
	fmt.Fprintln(w)
	for _, job := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprint(w, job)
		for _, status := range outcomes {
			fmt.Fprintf(w, "\t%d", counts[job][status])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

// reportEffects reports how often ticks were started by another replica, and
// what the sink has refused.
func reportEffects(w io.Writer, s Story) {
	accepted, stale, late := map[string]int{}, map[string]int{}, map[string]int{}
	tokens := map[string]map[int64]map[int64]bool{} // by job and tick
	for _, e := range s.Effects {
		if tokens[e.Job] == nil {
			tokens[e.Job] = map[int64]map[int64]bool{}
		}
		switch {
		case e.What == Late:
			late[e.Job]++
		case e.Stale:
			stale[e.Job]++
		case !e.What.note():
			accepted[e.Job]++
		}
		if tick := e.Tick.UnixNano(); e.began() && !e.Tick.IsZero() {
			if tokens[e.Job][tick] == nil {
				tokens[e.Job][tick] = map[int64]bool{}
			}
			tokens[e.Job][tick][e.Token] = true
		}
	}
	fmt.Fprintln(w, "EFFECTS\tACCEPTED\tREFUSED AS STALE\tSTARTS TOO LATE TO BELIEVE\tTICKS STARTED ONCE\tTWICE\tMORE OFTEN")
	for _, job := range slices.Sorted(maps.Keys(tokens)) {
		var times [3]int
		for _, t := range tokens[job] {
			times[min(len(t), 3)-1]++
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", job, accepted[job], stale[job], late[job], times[0], times[1], times[2])
	}
	fmt.Fprintln(w)
}
