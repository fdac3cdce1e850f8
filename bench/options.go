//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// options are the flags of the command line.
type options struct {
	scenarios []scenario
	peers     []string        // empty: the peers of each scenario
	leases    []time.Duration // of a leader
	ticks     int             // zero: as many as the scenario says
	trips     bool            // count round trips to PostgreSQL
}

// parse reads the command line.
func parse(args []string, out io.Writer) (o options, err error) {
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(out)
	names := set.String("scenarios", strings.Join(scenarioNames(), ","), "what to measure")
	peersText := set.String("peers", "", "whom to measure: some of "+strings.Join(peerNames(), ",")+"; empty: as each scenario says")
	lease := set.String("lease", "3s,1s", "the leases of a leader, of the scenario leader; etcd has its shortest one beside each")
	set.IntVar(&o.ticks, "ticks", 0, "how many ticks, or faults, a scenario has; 0: as it says")
	set.BoolVar(&o.trips, "trips", false, "count round trips to PostgreSQL as well, by a proxy that makes each take longer")
	set.Usage = func() { usage(set) }
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if o.leases, err = leases(*lease); err != nil {
		return o, err
	}
	for name := range strings.SplitSeq(*names, ",") {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return o, fmt.Errorf("-scenarios: there is no %q: want some of %s, with commas between them", name, strings.Join(scenarioNames(), ","))
		}
		o.scenarios = append(o.scenarios, scenarios[i])
	}
	if *peersText != "" {
		o.peers = strings.Split(*peersText, ",")
	}
	for _, name := range o.peers {
		if !slices.Contains(peerNames(), name) {
			return o, fmt.Errorf("-peers: there is no %q: want some of %s, with commas between them", name, strings.Join(peerNames(), ","))
		}
	}
	return o, o.check(set.Args())
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unknown argument %q: want flags alone; -h lists them", rest[0])
	case o.ticks < 0 || o.ticks > 3600:
		return fmt.Errorf("-ticks %d: want 1 to 3600, or 0 for as many as each scenario says", o.ticks)
	}
	return nil
}

// usage prints the flags and the scenarios.
func usage(set *flag.FlagSet) {
	fmt.Fprintln(set.Output(), "go run . [flags]: Soloist beside others, as processes over one storage.")
	set.PrintDefaults()
	fmt.Fprintln(set.Output(), "\nScenarios:")
	for _, s := range scenarios {
		fmt.Fprintf(set.Output(), "  %-8s  %s (%s)\n", s.name, s.about, strings.Join(s.peers, ","))
	}
}

// leases reads the lengths of the lease of a leader, such as 3s,1s.
func leases(text string) (all []time.Duration, err error) {
	for part := range strings.SplitSeq(text, ",") {
		d, perr := time.ParseDuration(part)
		if perr != nil || d < time.Second || d > time.Minute || d%time.Second != 0 {
			err = errors.Join(err, fmt.Errorf("-lease: %q: want whole seconds from 1s to 60s, with commas between them", part))
		}
		all = append(all, d)
	}
	return all, err
}

func scenarioNames() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}
