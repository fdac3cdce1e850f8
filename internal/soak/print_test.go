package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Prices of 10,000 operations
// (https://learn.microsoft.com/azure/storage/blobs/blob-storage-estimate-costs).
const priceOfWrites, priceOfOthers = 0.055, 0.0044

// print writes the ledger down.
func (c *cluster) print(sums []sum) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s to %s, %d replicas\n\n", c.ledger.over.from.Format(time.RFC3339), c.ledger.over.to.Format(time.RFC3339), len(c.slots))
	printOutcomes(&b, sums)
	printReasons(&b, sums)
	c.printCalls(&b)
	o := c.office
	led := c.ledger.over.to.Add(calm).Sub(c.ledger.accounts[leader].chapters[0].after)
	fmt.Fprintf(&b, "\n%s: %d terms, %d of them taken over from a holder that was gone; up for %.3f%% of the time;\n", leader,
		o.terms, c.ledger.accounts[leader].takeovers, 100*o.up.Seconds()/led.Seconds())
	fmt.Fprintf(&b, "the longest gap %s, and %s while a replica was up and reached the service\n", o.longest.Round(time.Millisecond), o.worst.Round(time.Millisecond))
	fmt.Fprintf(&b, "imports that went on from a checkpoint: %d; runs of cache, everywhere: %d\n", c.resumed, c.here)
	fmt.Fprintf(&b, "\ntroubles: %s\nwarnings: %s\n", list(c.troubles), list(c.said))
	return b.String()
}

// printOutcomes has a line for each job.
func printOutcomes(b *strings.Builder, sums []sum) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns := []store.Status{store.Succeeded, store.Failed, store.Stalled, store.Abandoned, store.Missed, store.Skipped}
	fmt.Fprint(w, "job\tticks\t")
	for _, status := range columns {
		fmt.Fprintf(w, "%s\t", status)
	}
	fmt.Fprintln(w, "sum\tclaims\ttaken over\tattempts > 1\t")
	total := make([]int, len(columns)+5)
	line := func(job string, numbers []int) {
		fmt.Fprintf(w, "%s\t", job)
		for i, n := range numbers {
			fmt.Fprintf(w, "%d\t", n)
			total[i] += n
		}
		fmt.Fprintln(w)
	}
	for _, s := range sums {
		numbers, n := []int{s.ticks}, 0
		for _, status := range columns {
			numbers = append(numbers, s.of(status, ""))
			n += s.of(status, "")
		}
		line(s.job, append(numbers, n, s.claims, s.takeovers, s.attempts))
	}
	line("all", slices.Clone(total))
	w.Flush()
}

// printReasons has a line for each reason: ticks that stand alone in the record,
// and ticks in ranges.
func printReasons(b *strings.Builder, sums []sum) {
	fmt.Fprintln(b)
	for _, s := range sums {
		for _, k := range slices.SortedFunc(maps.Keys(s.outcomes), kind.compare) {
			if k.reason == "" {
				continue
			}
			how := "alone"
			if k.ranged {
				how = fmt.Sprintf("in %d ranges", s.entries[slices.Index(s.kinds, k)])
			}
			fmt.Fprintf(b, "%s: %d %s (%s), %s\n", s.job, s.outcomes[k], k.status, k.reason, how)
		}
	}
}

// printCalls has what the service was asked for.
func (c *cluster) printCalls(b *strings.Builder) {
	ops := []string{"acquire", "renew", "release", "claim", "take back", "settle", "progress", "finish", "read", "load", "save", "create"}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\ncalls\t%s\tall\t$ a month\t\n", strings.Join(ops, "\t"))
	month := float64(30*24*time.Hour) / float64(c.ledger.over.to.Add(calm).Sub(c.ledger.over.from))
	var total float64
	all := 0
	for _, job := range slices.Sorted(maps.Keys(c.ledger.accounts)) {
		asked := c.asked[job]
		fmt.Fprintf(w, "%s\t", job)
		n := 0
		for _, op := range ops {
			fmt.Fprintf(w, "%d\t", asked[op])
			n += asked[op]
		}
		puts := asked["save"] + asked["create"]
		cost := month * (float64(puts)*priceOfWrites + float64(n-puts)*priceOfOthers) / 10_000
		all += n
		total += cost
		fmt.Fprintf(w, "%d\t%.4f\t\n", n, cost)
	}
	w.Flush()
	fmt.Fprintf(b, "%d calls in all, $%.2f a month\n", all, total)
}

func list(counts map[string]int) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %d", k, counts[k]))
	}
	return strings.Join(all, ", ")
}
