//go:build unix

// Rounds measures, over Azurite and with replicas that are processes, how long
// a singleton is without its leader: after kill -9 (failover), and after SIGTERM
// (handover).
//
//	go run ./rounds -rounds 20 -lease 15s -what all
//
// It prints all values beside what is wanted of them. Code 1: more than that.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
)

func main() {
	if _, ok := proctest.Order(); ok {
		replica()
	}
	rounds := flag.Int("rounds", 20, "rounds of each kind")
	lease := flag.Duration("lease", 15*time.Second, "lease, whole seconds from 15s to 60s")
	what := flag.String("what", "all", "failover, handover or all")
	verbose := flag.Bool("v", false, "tell each event, and what the replicas log")
	flag.Parse()
	kinds := kindsOf(*what, *lease)
	wrong := *lease < 15*time.Second || *lease > time.Minute || *lease%time.Second != 0
	if wrong || flag.NArg() > 0 || *rounds < 1 || len(kinds) == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ok, err := measure(kinds, *rounds, *lease, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rounds:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// measure reports whether all values are what is wanted.
func measure(kinds []kind, rounds int, lease time.Duration, verbose bool) (ok bool, err error) {
	server, err := azurite.Launch(context.Background())
	if err != nil {
		return false, err
	}
	defer server.Close()
	ok = true
	for _, k := range kinds {
		// A fleet of its own: an error in one kind spoils no other.
		storage, err := proctest.In(server)
		if err != nil {
			return false, err
		}
		f, err := newFleet(storage, k.name, lease, verbose)
		if err != nil {
			return false, err
		}
		values, err := k.run(f, rounds)
		f.Close()
		ok = report(os.Stdout, k, values, lease) && ok
		if err != nil {
			return false, fmt.Errorf("%s, round %d: %w", k.name, len(values)+1, err)
		}
	}
	return ok, nil
}
