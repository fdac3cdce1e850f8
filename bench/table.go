//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/soloist-go/soloist/bench/internal/replica"
)

// A table has the rows of all repeats.
type table struct {
	keys              []key // in the order of their first row
	rows              map[key][]row
	metadata, acquire []time.Duration // what one call takes
	markdown          bool
}

// A key is what rows have in common that are repeats of each other.
type key struct{ label, peer string }

func (t *table) add(rows ...row) {
	if t.rows == nil {
		t.rows = map[key][]row{}
	}
	for _, r := range rows {
		k := key{r.label(), r.peer}
		if t.rows[k] == nil {
			t.keys = append(t.keys, k)
		}
		t.rows[k] = append(t.rows[k], r)
	}
}

// print prints the table, and what a call of the storage takes.
func (t *table) print(out io.Writer) error {
	lines := [][]string{{"scenario", "peer", "ticks", "twice", "lost", "median", "95th", "99th", "max", "to client-go", "share", "CPU", "RSS", "calls a tick", "notes"}}
	for _, k := range t.keys {
		lines = append(lines, t.line(k))
	}
	if t.markdown {
		lines = slices.Insert(lines, 1, slices.Repeat([]string{"---"}, len(lines[0])))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, cells := range lines {
		if t.markdown {
			fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
		} else {
			fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(t.metadata) > 0 {
		fmt.Fprintf(out, "\none call of the storage, median of %d: Set Metadata %s, acquire %s\n", len(t.metadata), show(median(t.metadata)), show(median(t.acquire)))
	}
	return nil
}

// line is the row of a key: counts are sums over the repeats, all else is the median of them.
func (t *table) line(k key) []string {
	cells := []string{k.label, k.peer, count(t.sum(k, func(r row) int { return r.Ticks })), count(t.sum(k, func(r row) int { return r.Twice })), count(t.sum(k, func(r row) int { return r.Lost }))}
	for _, p := range []float64{50, 95, 99, 100} {
		cells = append(cells, show(t.delay(k, p)))
	}
	cells = append(cells, t.ratio(k))
	return append(cells, fmt.Sprintf("%.0f %%", 100*t.middle(k, func(r row) float64 { return r.Share() })),
		fmt.Sprintf("%.1f %%", t.middle(k, func(r row) float64 { return r.cpu })), fmt.Sprintf("%.0f MiB", t.middle(k, func(r row) float64 { return r.rss })),
		t.callsText(k), strings.Join(t.notes(k), "; "))
}

func count(n int) string { return fmt.Sprint(n) }

// show prints a delay in milliseconds.
func show(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }

func (t *table) sum(k key, of func(row) int) (n int) {
	for _, r := range t.rows[k] {
		n += of(r)
	}
	return n
}

// middle is the median over the repeats.
func (t *table) middle(k key, of func(row) float64) float64 {
	var all []float64
	for _, r := range t.rows[k] {
		all = append(all, of(r))
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func (t *table) delay(k key, percentile float64) time.Duration {
	return time.Duration(t.middle(k, func(r row) float64 { return float64(r.Percentile(percentile)) }))
}

// ratio compares a median with that of client-go.
func (t *table) ratio(k key) string {
	other := key{k.label, "clientgo"}
	if len(t.rows[other]) == 0 || t.delay(other, 50) <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f x", float64(t.delay(k, 50))/float64(t.delay(other, 50)))
}

// callsATick are the calls for each tick of a job, without those of documents, which replicas read
// at their own pace.
func (t *table) callsATick(k key) float64 {
	return t.middle(k, func(r row) (n float64) {
		for kind, of := range r.calls {
			if kind != "document" {
				n += of
			}
		}
		return n
	})
}

func (t *table) callsText(k key) string {
	if len(t.rows[k][0].calls) == 0 {
		return ""
	}
	var all []string
	for _, kind := range callKinds {
		if n := t.middle(k, func(r row) float64 { return r.calls[kind] }); n > 0 {
			all = append(all, fmt.Sprintf("%s %.2f", kind, n))
		}
	}
	return fmt.Sprintf("%.2f: %s", t.callsATick(k), strings.Join(all, ", "))
}

// notes tell what followed faults.
func (t *table) notes(k key) (notes []string) {
	next := map[string][]time.Duration{}
	changes := 0
	for _, r := range t.rows[k] {
		for _, f := range r.Faults {
			next[f.What] = append(next[f.What], f.Next)
		}
		changes += r.Changes()
	}
	for _, what := range []string{replica.Kill, replica.Term, replica.Stop} {
		if m := median(next[what]); m > 0 { // below: mostly none has followed
			notes = append(notes, fmt.Sprintf("next run after %s %.1f s", what, m.Seconds()))
		}
	}
	if t.rows[k][0].lease > 0 && changes > 0 {
		notes = append(notes, fmt.Sprintf("%d changes of the leader without a kill", changes))
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
	return fmt.Sprintf("%s, %d processors (%s), %s, Azurite in memory", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), model, runtime.Version())
}
