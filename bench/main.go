//go:build linux

// Bench compares Soloist with other programs that run jobs on several replicas: real processes
// over one storage, one log, one table.
//
//	go run .
//
// -h lists the scenarios and flags, and docs/speed.md says what is measured and how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// run measures everything that was asked for, and prints it.
func run(ctx context.Context, o options) (err error) {
	began := time.Now()
	dir, err := os.MkdirTemp("", "bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, services: &services{dir: dir, tapped: o.trips, ready: map[string]string{}}}
	defer func() { err = errors.Join(err, b.services.Close()) }()
	if err = b.prepare(ctx); err != nil {
		return err
	}
	var t table
	err = b.all(ctx, &t)
	fmt.Printf("%s, %s\n\n", machine(), time.Since(began).Round(time.Second))
	t.print(os.Stdout)
	t.printGrowth(os.Stdout)
	return err
}

// all measures each scenario.
func (b *bench) all(ctx context.Context, t *table) error {
	for _, s := range b.scenarios {
		for _, specs := range s.batches(b.options) {
			fmt.Fprintf(os.Stderr, "%s  %s: %s\n", time.Now().Format(time.TimeOnly), s.name, peersOf(specs))
			rows, err := b.batch(ctx, specs)
			if err != nil {
				return err
			}
			*t = append(*t, rows...)
		}
	}
	return nil
}
