//go:build unix

// Storm runs replicas of a program as processes over Azurite or PostgreSQL, each
// on a line of its own through Toxiproxy, has random faults happen to processes,
// lines and service, several at once, and judges what came of it.
//
//	go run ./storm -for 10m -replicas 4 -seed 1
//	go run ./storm -store postgres -for 10m -replicas 4
//
// All effects of the program go to a sink that refuses stale tokens. What the sink
// received and what the service has accepted decides whether a tick ran twice, got
// no outcome or two, whether two replicas believed in one lease, and so on: see
// judge.go. It prints counts, then violations. Code 1: there are some, or nothing
// happened; with -mistake, that none is of the mistake.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
)

func main() {
	if name, ok := proctest.Order(); ok {
		replica(name)
	}
	var o options
	flag.StringVar(&o.store, "store", overAzurite, "what the records are in: azurite or postgres")
	flag.IntVar(&o.replicas, "replicas", 4, "how many replicas")
	flag.DurationVar(&o.length, "for", 10*time.Minute, "how long faults come")
	flag.Uint64Var(&o.seed, "seed", 1, "of the order of faults; what comes of them depends on the machine too")
	flag.DurationVar(&o.lease, "lease", shortest, "of all work, whole seconds from 1s to 15s; over Azurite one below 15s is kept by beats")
	flag.StringVar(&o.dir, "dir", "", "an empty directory for logs and events, which is kept; empty: one that is kept if something is wrong")
	names := strings.Join(slices.Sorted(maps.Keys(mistakes)), ", ")
	flag.StringVar(&o.mistake, "mistake", "", "over postgres: a mistake that is made, and that has to be found: "+names)
	flag.Parse()
	_, known := mistakes[o.mistake]
	canPlant := o.mistake == "" || known && o.store == overPostgres
	if !canPlant || flag.NArg() > 0 || services[o.store] == nil || o.replicas < 1 || o.length <= 0 || o.lease < time.Second || o.lease > shortest || o.lease%time.Second != 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := storms(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// storms has one storm pass, and returns whether all was well.
func storms(ctx context.Context, o options, out io.Writer) (ok bool, err error) {
	keep := o.dir != ""
	if !keep {
		if o.dir, err = os.MkdirTemp("", "storm-*"); err != nil {
			return false, err
		}
	}
	versions, err := specs()
	if err != nil {
		return false, err
	}
	began := time.Now()
	story, err := run(ctx, o, versions)
	if err != nil {
		return false, fmt.Errorf("%w; logs are in %s", err, o.dir)
	}
	fmt.Fprintf(out, "%s, %d replicas, lease %s, seed %d, faults for %s, %s in all\n\n", o.store, o.replicas, o.lease, o.seed, o.length, time.Since(began).Round(time.Second))
	report(out, story)
	bad := violations(story, versions)
	fmt.Fprintf(out, "VIOLATIONS, %d\n", len(bad))
	for _, text := range bad {
		fmt.Fprintln(out, text)
	}
	if ok = len(bad) == 0; o.mistake != "" {
		ok = mistakes[o.mistake].found(bad)
		fmt.Fprintf(out, "the mistake %q was found: %t\n", o.mistake, ok)
	}
	if !ok {
		fmt.Fprintf(out, "logs and events are in %s\n", o.dir)
	} else if !keep {
		err = os.RemoveAll(o.dir)
	}
	return ok, err
}
