//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A table has a row for each fleet.
type table []row

// print prints the table in Markdown, for bench/figures.txt; docs/speed.md has some of its columns.
func (t table) print(out io.Writer) {
	head := []string{"scenario", "peer", "ticks", "twice", "lost", "median", "95th", "99th", "largest", "to client-go", "share", "CPU", "RSS", "calls a tick", "notes"}
	lines := [][]string{head, slices.Repeat([]string{"---"}, len(head))}
	for _, r := range t {
		cells := []string{r.label(), r.peer, fmt.Sprint(r.Ticks), fmt.Sprint(r.Twice), fmt.Sprint(r.Lost)}
		for _, p := range []float64{50, 95, 99, 100} {
			cells = append(cells, r.delay(p))
		}
		lines = append(lines, append(cells, t.ratio(r), fmt.Sprintf("%.0f %%", 100*r.Share()), fmt.Sprintf("%.1f %%", r.cpu), fmt.Sprintf("%.0f MiB", r.rss),
			r.callsText(), strings.Join(r.notes(), "; ")))
	}
	for _, cells := range lines {
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
	}
}

// delay is a percentile, if there are enough ticks: the 99th of fewer than a thousand would be the largest or near it.
func (r row) delay(p float64) string {
	if p == 99 && r.Ticks < 1000 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", percentile(r.Delays, p).Seconds()*1e3)
}

// ratio compares a median with client-go's.
func (t table) ratio(r row) string {
	i := slices.IndexFunc(t, func(o row) bool { return o.peer == "clientgo" && o.label() == r.label() })
	if i < 0 || percentile(t[i].Delays, 50) <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f x", float64(percentile(r.Delays, 50))/float64(percentile(t[i].Delays, 50)))
}

// callsText has the calls for each tick of a job by kind, and their sum without round trips, which are
// other figures of the same, and without the calls for documents, which replicas read at their own pace; of replicas that idle, all calls in an hour.
func (r row) callsText() string {
	var all []string
	var sum float64
	digits, of := 2, ""
	if r.scenario == "idle" {
		digits, of = 0, " an hour"
	}
	for _, kind := range callKinds {
		n := r.calls[kind]
		if kind != roundTrip && (kind != "document" || of != "") {
			sum += n
		}
		if n > 0 {
			all = append(all, fmt.Sprintf("%s %.*f", kind, digits, n))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%.*f%s: %s", digits, sum, of, strings.Join(all, ", "))
}

// notes say what followed faults: how soon, in the middle and at the longest.
func (r row) notes() (notes []string) {
	for _, what := range []string{"kill", "term", "stop"} {
		var next []time.Duration
		for _, f := range r.Faults {
			if f.What == what {
				next = append(next, f.Next)
			}
		}
		slices.Sort(next)
		if m := percentile(next, 50); m > 0 { // below: mostly none has followed
			notes = append(notes, fmt.Sprintf("next run after %s %.1f s, at most %.1f s", what, m.Seconds(), percentile(next, 100).Seconds()))
		}
	}
	if n := r.Changes(); r.lease > 0 && n > 0 {
		notes = append(notes, fmt.Sprintf("%d changes of the leader without a kill", n))
	}
	return notes
}

// peersOf names the peers of a batch, once each.
func peersOf(specs []spec) string {
	var names []string
	for _, s := range specs {
		names = append(names, s.peer)
	}
	return strings.Join(slices.Compact(names), ", ")
}

// machine says where and when this was measured.
func machine() string {
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo") // without it the processor is unknown
	for line := range strings.Lines(string(info)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
		}
	}
	load, _ := os.ReadFile("/proc/loadavg") // also of others: compare only what was measured at the same time
	return fmt.Sprintf("%s, %d processors (%s), %s, Azurite in memory, loads %s", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), model,
		runtime.Version(), strings.TrimSpace(string(load)))
}
