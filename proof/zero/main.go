//go:build linux

// Zero measures an app that is scaled to zero between two ticks: KEDA's azure-queue scaler over the queue of Azurite decides
// when a stand-in for Container Apps starts and stops processes of the program.
//
//	go run . -for 24h -pace 60
//	go run . -for 1h -schedule '*/10 * * * *' -schedule '7,33,51 * * * *'
//
// -pace 60 has a minute of the platform, the program and of "@every" take a second: the first is a day in 24 minutes.
// Schedules in cron's form stay as they are, and so do the two seconds that a tick may be late.
//
// Code 1: a tick was lost, run twice, or started later than it may, without the platform's own polling and starting of the
// process; or a replica failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "zero:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "zero:", err)
		stop()
		os.Exit(1)
	}
}

// run measures, prints a table, and says what was wrong.
func run(ctx context.Context, o options) error {
	story, failures, err := measure(ctx, o)
	if err != nil {
		return err
	}
	ticks, err := story.Ticks()
	if err != nil {
		return err
	}
	return o.verdict(os.Stdout, story, ticks, failures)
}
