package local_test

import (
	"fmt"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A deed is what a process of a machine did to the one lease of a directory that
// machines share, by the true time and by the clock of its machine.
type deed struct {
	at      time.Duration // true time
	machine string
	start   string // the id of the machine's start
	boot    time.Duration
	op      string // acquire, renew, write, release, break, look, die, restart
	id      string
	length  time.Duration // of an acquisition
	done    bool          // the store did it
	state   store.LeaseState
}

// A truth is what the lease is like, by the deeds alone: no file is read for it.
type truth struct {
	id      string
	machine string
	start   string
	length  time.Duration
	at      time.Duration            // of the last acquisition or renewal
	boot    time.Duration            // at, by the clock of its machine
	alive   bool                     // its process is
	broken  bool                     // nothing is promised until the next acquisition
	seen    map[string]time.Duration // by the start of another machine: when that saw the lease as it is
}

// judgeMachines returns what deeds contradict: that the lease has one holder at a
// time, that the holder keeps it, and that the lease of a dead one becomes free.
func judgeMachines(deeds []deed) (bad []string) {
	var t truth
	for _, d := range deeds {
		if why := t.contradicts(&d); why != "" {
			bad = append(bad, fmt.Sprintf("%s: %s on %s, %s: %s", d.at, d.op, d.machine, d.id, why))
		}
		t.follow(&d)
	}
	return bad
}

// trusts reports whether the holder may act on its lease: it allows for two
// clocks that are off by one in a hundred each.
func (t *truth) trusts(at time.Duration) bool {
	return t.id != "" && t.alive && !t.broken && at < t.at+t.length*98/100
}

// free reports whether a machine has to find the lease free: by the clock of its
// holder's start, or since it has seen it unchanged for its length.
func (t *truth) free(d *deed) bool {
	if t.id == "" || t.broken {
		return t.id == ""
	}
	if t.start == d.start {
		return d.boot >= t.boot+t.length
	}
	seen, known := t.seen[d.start]
	return known && d.boot >= seen+t.length
}

func (t *truth) contradicts(d *deed) string {
	own := d.id == t.id && d.id != ""
	switch {
	case d.op == "acquire" && d.done && !own && t.trusts(d.at):
		return "it takes the live lease of " + t.id + " on " + t.machine
	case d.op == "acquire" && !d.done && t.free(d):
		return "it is refused a free lease"
	case d.op == "look" && d.state != store.Leased && t.trusts(d.at):
		return fmt.Sprintf("it sees the live lease of %s as %s", t.id, d.state)
	case d.op == "look" && d.state == store.Leased && t.free(d):
		return "it sees a free lease as leased"
	case (d.op == "renew" || d.op == "write") && d.done && !own:
		return "it is not the holder"
	case d.op == "write" && d.done && t.start == d.start && t.free(d):
		return "its lease has ended"
	case (d.op == "renew" || d.op == "write") && !d.done && own && t.trusts(d.at):
		return "the holder is refused"
	}
	return ""
}

// follow lets a deed have its effect.
func (t *truth) follow(d *deed) {
	own := d.id == t.id && d.id != ""
	switch {
	case d.op == "die" && own, d.op == "restart" && d.machine == t.machine:
		t.alive = false
	case d.op == "acquire" && d.done:
		*t = truth{id: d.id, machine: d.machine, start: d.start, length: d.length, at: d.at, boot: d.boot, alive: true}
	case d.op == "renew" && d.done && own:
		t.at, t.boot, t.seen = d.at, d.boot, nil
	case d.op == "release" && d.done && own:
		*t = truth{}
	case d.op == "break" && d.done:
		t.broken = true
	}
	if _, known := t.seen[d.start]; !known && d.start != t.start && d.op != "die" && d.op != "restart" {
		if t.seen == nil {
			t.seen = map[string]time.Duration{}
		}
		t.seen[d.start] = d.boot
	}
}
