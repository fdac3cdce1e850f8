//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/soloist-go/soloist/bench/internal/replica"
)

// A scenario is what happens to the fleets of peers.
type scenario struct {
	name, about string
	peers       []string
	jobs        int
	every       time.Duration
	works       []time.Duration // of the jobs, in turn
	replicas    int             // zero: three
	skews       []time.Duration // each in a fleet of its own, all at once
	together    bool            // all peers at once, at different seconds
	ticks       int             // how many; of a scenario with faults, how many faults
	faults      func(n int) faults
	idle        []int // numbers of jobs that are not due, for so many minutes as there are ticks; each in a fleet of its own, all at once
	growth      bool  // its jobs keep a history, and the growth of its tables is looked at
	leads       bool  // there is one leader, and no ticks: a fleet for each lease of the options
}

const ms = time.Millisecond

// soloists are the two ways of Soloist on blobs.
var soloists = []string{"soloist", "ahead"}

// scenarios are in the order of the table.
var scenarios = []scenario{
	{name: "one", about: "one job a second", peers: peerNames(), jobs: 1, every: time.Second, ticks: 12},
	{name: "twenty", about: "20 jobs in each second", peers: peerNames(), jobs: 20, every: time.Second, ticks: 50},
	{name: "hundred", about: "100 jobs in each second", peers: []string{"soloist", "ahead", "etcd", "postgres", "pgahead", "river", "dbos", "gocronpg"}, jobs: 100, every: time.Second, ticks: 10},
	{name: "minute", about: "one job a minute, all peers at once", peers: peerNames(), jobs: 1, every: time.Minute, together: true, ticks: 2},
	{name: "skew", about: "clocks that differ, and jobs of 0, 10 and 200 ms", peers: []string{"soloist", "ahead", "gocron", "blob", "postgres", "pgahead", "river", "dbos", "gocronpg"}, jobs: 3, every: time.Second,
		works: []time.Duration{0, 10 * ms, 200 * ms}, skews: []time.Duration{0, 5 * ms, 50 * ms, 400 * ms, 2 * time.Second}, ticks: 8},
	{name: "recover", about: "kill -9, SIGTERM, SIGSTOP and SIGCONT of the last runner, all peers at once", peers: peerNames(), jobs: 1, every: time.Second, together: true, ticks: 1, faults: eachSignal},
	{name: "leader", about: "kill -9 of a leader, all peers and leases at once", peers: []string{"soloist", "clientgo", "etcd", "postgres"}, jobs: 1, every: time.Second, together: true,
		ticks: 5, faults: killLeader, leads: true},
	{name: "idle", about: "jobs that are not due, for so many minutes as -ticks says, all peers at once", peers: []string{"soloist", "postgres", "river", "dbos", "gocronpg"},
		every: 24 * time.Hour, together: true, idle: []int{10, 100, 1000}, ticks: 5},
	{name: "hour", about: "100 jobs in each second with their history, and how the tables grow; an hour with -ticks 3600", peers: []string{"postgres"},
		jobs: 100, every: time.Second, ticks: 60, growth: true},
	{name: "fifty", about: "50 replicas", peers: soloists, jobs: 1, every: 5 * time.Second, replicas: 50, ticks: 3},
	{name: "balance", about: "20 jobs in each second, and a rolling restart", peers: soloists, jobs: 20, every: time.Second, ticks: 24, faults: rollingRestart},
}

// A spec is one fleet of a scenario.
type spec struct {
	scenario, variant, peer string
	jobs                    []replica.Job
	size                    int // how many replicas
	skew                    time.Duration
	skewed                  bool // its program's clock may be wrong
	idle, growth            bool
	ticks                   int
	faults                  faults
	lease                   time.Duration // of a leader; zero: it has ticks
}

// label is what a row of the table begins with.
func (s spec) label() string {
	if s.variant != "" {
		return s.scenario + " " + s.variant
	}
	return s.scenario
}

// batches are the fleets of a scenario: the fleets of a batch run at the same time.
func (s scenario) batches(o options) (batches [][]spec) {
	peers := s.peers
	if o.peers != nil {
		peers = o.peers
	}
	for i, peer := range peers {
		fleets := s.fleets(o, peer, s.second(i))
		if s.together && len(batches) > 0 {
			batches[0] = append(batches[0], fleets...)
		} else {
			batches = append(batches, fleets)
		}
	}
	return batches
}

// second is when the ticks of a peer are due, after the multiples of the period: not at the same
// time as the ticks of the peers that run in parallel.
func (s scenario) second(i int) time.Duration {
	if s.idle != nil {
		return (time.Duration(time.Now().UTC().Hour()+12)*time.Hour + 30*time.Minute) % s.every
	}
	if !s.together || s.every <= time.Second {
		return 0
	}
	soon := time.Now().Add(warmUp + 4*time.Second + time.Duration(i)*3*time.Second)
	return soon.Sub(soon.Truncate(s.every)).Truncate(time.Second)
}

// fleets returns the fleets of one peer.
func (s scenario) fleets(o options, peer string, at time.Duration) (all []spec) {
	one := spec{scenario: s.name, peer: peer, jobs: replica.Jobs(s.jobs, s.every, at, s.works...), size: max(3, s.replicas), ticks: s.ticks, growth: s.growth}
	if o.ticks > 0 {
		one.ticks = o.ticks
	}
	if s.faults != nil {
		one.faults = s.faults(one.ticks)
	}
	for _, skew := range s.skews {
		other := one
		other.skew, other.skewed, other.variant = skew, true, fmt.Sprint(skew)
		all = append(all, other)
	}
	for _, n := range s.idle {
		other := one
		other.jobs, other.idle, other.variant = replica.Jobs(n, s.every, at), true, fmt.Sprintf("%d jobs", n)
		all = append(all, other)
	}
	if s.leads {
		return leading(one, o.leases)
	}
	if all == nil {
		all = []spec{one}
	}
	return all
}

// leading are the fleets of a peer whose leaders have these leases.
func leading(one spec, leases []time.Duration) (all []spec) {
	for _, lease := range leases {
		one.lease, one.variant = lease, lease.String()
		all = append(all, one)
	}
	return all
}
