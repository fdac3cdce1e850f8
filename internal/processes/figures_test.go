//go:build unix

package processes

import (
	"flag"
	"time"
)

var judge = flag.Bool("judge", false, "fail where a time is over its limit, on a machine with no other work; else each limit is 8s longer")

// busy is how much later things may be on a machine with much other work. Tests of speed are not for those.
const busy = 8 * time.Second

// patience is how long a test waits for what has to come, on any machine.
const patience = 4 * time.Minute

// limit is how long something may take that takes no longer than most on a machine with no other work.
func limit(most time.Duration) time.Duration {
	if *judge {
		return most
	}
	return most + busy
}

func median(sorted []time.Duration) time.Duration {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// p95 is the smallest value that 95 % of all do not exceed.
func p95(sorted []time.Duration) time.Duration { return sorted[(95*len(sorted)+99)/100-1] }

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
