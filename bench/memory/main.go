//go:build linux

// Memory measures what the scheduler itself takes: one replica with many jobs over a store in
// memory, where no call waits for anything.
//
//	go run ./memory
//
// Each row of its table is a process of its own, so that no row pays for what the one before has
// left. PROFILE=dir writes profiles of CPU and allocations of each. Code 1: a tick ran twice or
// was lost, or a process failed.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
)

// options are those of the command line.
type options struct {
	cases         []string
	jobs          []int
	period, quiet time.Duration
	ticks         int
	ahead         bool
}

// kinds are the cases, in the order of the tables.
var kinds = []string{"due", "idle", "cost"}

func main() {
	if order, ok := proctest.Order(); ok {
		if err := serve(order); err != nil {
			fmt.Fprintln(os.Stderr, "memory:", err)
			os.Exit(1)
		}
		return
	}
	o, err := read(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(2)
	}
	if err := measure(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

// read reads the command line.
func read(args []string) (o options, err error) {
	set := flag.NewFlagSet("memory", flag.ContinueOnError)
	cases := set.String("case", strings.Join(kinds, ","), "what to measure: due, all jobs at once; idle, none; cost, 100 jobs among many")
	jobs := set.String("jobs", "1000,10000", "how many jobs, of due and idle; cost compares 100 with the last number")
	set.DurationVar(&o.period, "period", 10*time.Second, "how often the jobs of due are due")
	set.IntVar(&o.ticks, "ticks", 5, "how many ticks of due are measured, after one that is not; cost measures six times as many, of a second")
	set.DurationVar(&o.quiet, "quiet", 70*time.Second, "how long idle measures: a replica reads each record once a minute")
	set.BoolVar(&o.ahead, "ahead", false, "claim ahead")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	o.cases = strings.Split(*cases, ",")
	for _, name := range o.cases {
		if !slices.Contains(kinds, name) {
			return o, fmt.Errorf("-case %q: want some of %s, with commas between them", name, strings.Join(kinds, ","))
		}
	}
	for text := range strings.SplitSeq(*jobs, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100_000 {
			return o, fmt.Errorf("-jobs %q: want numbers from 1 to 100000, with commas between them", *jobs)
		}
		o.jobs = append(o.jobs, n)
	}
	return o, o.check(set.Args())
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unknown argument %q: want flags alone; -h lists them", rest[0])
	case o.period < time.Second || o.period%time.Second != 0:
		return fmt.Errorf("-period %s: want whole seconds", o.period)
	case o.ticks < 1:
		return fmt.Errorf("-ticks %d: want one or more", o.ticks)
	case o.quiet < time.Second:
		return fmt.Errorf("-quiet %s: want a second or more", o.quiet)
	}
	return nil
}

// run has a process measure a load, and returns what it says.
func run(l load) (r result, err error) {
	order, _ := json.Marshal(l) // of numbers
	var told []byte
	p, err := proctest.Command{Program: proctest.Self(), Env: []string{proctest.As(string(order))},
		Stdout: func(line string) { told = []byte(line) }}.Start()
	if err != nil {
		return r, err
	}
	if code := p.Code(); code != 0 {
		return r, fmt.Errorf("the process with %d jobs ended with code %d", l.Jobs, code)
	}
	return r, json.Unmarshal(told, &r)
}

// serve is such a process.
func serve(order string) error {
	var l load
	if err := json.Unmarshal([]byte(order), &l); err != nil {
		return err
	}
	r, err := l.measure()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
