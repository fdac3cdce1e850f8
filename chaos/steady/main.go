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
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/proctest"
)

// options are those of the command line.
type options struct {
	replicas        int
	length, between time.Duration
}

func main() {
	if _, ok := proctest.Order(); ok {
		host.Main(work()...)
	}
	var o options
	flag.IntVar(&o.replicas, "replicas", 3, "how many replicas")
	flag.DurationVar(&o.length, "for", 6*time.Hour, "how long they run")
	flag.DurationVar(&o.between, "every", 5*time.Minute, "how often to look at them")
	flag.Parse()
	if flag.NArg() > 0 || o.replicas < 1 || o.between < time.Second || o.length < 8*o.between {
		fmt.Fprintln(os.Stderr, "steady: want at least one replica, -every of a second or more, and eight times as long for -for")
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
