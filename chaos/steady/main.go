//go:build linux

// Steady runs replicas of a program as processes over Azurite for hours, with the page of each
// open and its metrics scraped, and prints what they take.
//
//	go run ./steady -for 6h -replicas 3
//
// It prints a line for each replica and interval: resident memory, goroutines, open files and
// finished runs. At the end it compares the last quarter of the time with the second one: the
// first is the start, with caches that fill. Code 1: something grew by more than a tenth, or a
// job did not run.
//
// -pace 5 has all jobs due five times as often: what a run, a renewal or an event leaves behind
// then shows in a fifth of the time. What grows with the time alone does not.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/proctest"
)

// options are those of the command line.
type options struct {
	replicas, pace  int
	length, between time.Duration
}

func main() {
	if pace, ok := proctest.Order(); ok {
		n, err := strconv.Atoi(pace)
		if err != nil {
			panic(err) // this program has written it
		}
		host.Main(work(n)...)
	}
	var o options
	flag.IntVar(&o.replicas, "replicas", 3, "how many replicas")
	flag.IntVar(&o.pace, "pace", 1, "how many times as often their jobs are due, at most 5")
	flag.DurationVar(&o.length, "for", 6*time.Hour, "how long they run")
	flag.DurationVar(&o.between, "every", 5*time.Minute, "how often to look at them")
	flag.Parse()
	if flag.NArg() > 0 || o.replicas < 1 || o.pace < 1 || o.pace > 5 || o.between < time.Second || o.length < 8*o.between {
		fmt.Fprintln(os.Stderr, "steady: want at least one replica, a -pace of 1 to 5, -every of a second or more, and eight times as long for -for")
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	samples, err := watch(ctx, o)
	if err == nil {
		err = judge(os.Stdout, samples, o.replicas)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "steady:", err)
		os.Exit(1)
	}
}
