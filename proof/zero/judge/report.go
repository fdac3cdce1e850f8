package judge

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// Report prints the ticks of each job, the platform's part, and the time of replicas compared with one replica
// always up.
func (s Story) Report(out io.Writer, ticks []Tick) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "JOB\tSCHEDULE\tTICKS\tLOST\tTWICE\tSTARTED AFTER DUE: MEDIAN\t95TH\tLONGEST\tWITHOUT THE PLATFORM'S PART")
	for _, job := range slices.Sorted(maps.Keys(s.Jobs)) {
		of := slices.DeleteFunc(slices.Clone(ticks), func(t Tick) bool { return t.Job != job })
		reportJob(w, job, s.Jobs[job], of)
	}
	fmt.Fprintln(w, "\nOF THE PLATFORM\tCOUNT\tMEDIAN\t95TH\tLONGEST")
	reportTimes(w, "from a visible alarm to the look that sees it", s.Polls())
	reportTimes(w, "from the start of a process to its main function", s.ProcessStarts())
	polls := len(s.Polls())
	fmt.Fprintf(w, "\nWOKEN\t%d times\tby messages that an earlier pass had left\t%d times\n", polls, len(s.Wakes)-polls)
	length, up := s.To.Sub(s.From), s.ReplicaTime()
	fmt.Fprintf(w, "REPLICA-SECONDS\t%.0f\tof %.0f of a replica that is always up\t%.1f %%\n", up.Seconds(), length.Seconds(), 100*up.Seconds()/length.Seconds())
}

func reportJob(w io.Writer, job, schedule string, ticks []Tick) {
	var lost, twice int
	var late, own []time.Duration
	for _, t := range ticks {
		switch {
		case t.Starts == 0:
			lost++
			continue
		case t.Starts > 1:
			twice++
		}
		late, own = append(late, t.Late), append(own, t.Own())
	}
	fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", job, schedule, len(ticks), lost, twice, at(late, 50), at(late, 95), at(late, 100), at(own, 100))
}

func reportTimes(w io.Writer, what string, all []time.Duration) {
	fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", what, len(all), at(all, 50), at(all, 95), at(all, 100))
}

// at is the value that so many of a hundred do not exceed.
func at(all []time.Duration, percent int) string {
	if len(all) == 0 {
		return "-"
	}
	slices.Sort(all)
	d := all[max(0, (len(all)*percent+99)/100-1)]
	return fmt.Sprintf("%.3f s", d.Seconds())
}
