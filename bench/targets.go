//go:build linux

package main

import (
	"fmt"
	"time"
)

// targets compares the rows that are there with what they are meant to be.
func (t *table) targets() (lines []string) {
	delay := func(label, peer string, p float64) time.Duration { return t.delay(key{label, peer}, p) }
	at := func(what string, got, most time.Duration) {
		if got != 0 && most > 0 {
			lines = append(lines, verdict(got <= most, fmt.Sprintf("%s: %.2f ms, at most %.2f", what, got.Seconds()*1e3, most.Seconds()*1e3)))
		}
	}
	if client := delay("one", "clientgo", 50); client > 0 {
		at("one, soloist, median: client-go's + 1.3 x Set Metadata", delay("one", "soloist", 50), client+median(t.metadata)*13/10)
		at("one, ahead, median: client-go's + 0.3 ms", delay("one", "ahead", 50), client+300*time.Microsecond)
		at("one, ahead, 99th: 1.5 x client-go's", delay("one", "ahead", 99), delay("one", "clientgo", 99)*3/2)
	}
	at("twenty, ahead, 99th: 1.5 x etcd's", delay("twenty", "ahead", 99), delay("twenty", "etcd", 99)*3/2)
	at("twenty, soloist, median: half of blob's", delay("twenty", "soloist", 50), delay("twenty", "blob", 50)/2)
	at("minute, ahead, median: 3 ms", delay("minute", "ahead", 50), 3*ms)
	at("cold start: 3 x an empty server's", delay("cold", "hosted", 50), 3*delay("cold", "empty", 50))
	for _, k := range t.keys {
		if k.peer == "soloist" || k.peer == "ahead" {
			lines = append(lines, t.counted(k)...)
		}
	}
	return lines
}

// counted are the targets of a row of Soloist that are counts or shares.
func (t *table) counted(k key) (lines []string) {
	say := func(ok bool, text string, args ...any) {
		lines = append(lines, verdict(ok, fmt.Sprintf("%s, %s: %s", k.label, k.peer, fmt.Sprintf(text, args...))))
	}
	twice, lost := t.sum(k, func(r row) int { return r.Twice }), t.sum(k, func(r row) int { return r.Lost })
	say(twice == 0, "%d ticks twice", twice)
	mayLose := k.label == "lead" || k.label == "recover"
	if !mayLose {
		say(lost == 0, "%d ticks lost", lost)
	}
	switch most := map[string]float64{"one": 6, "minute": 6, "fifty": 4 + 1.2*49, "hundred": 4.5}[k.label]; {
	case most > 0:
		say(t.callsATick(k) <= most, "%.2f calls a tick, at most %.1f", t.callsATick(k), most)
	case k.label == "balance":
		share := t.middle(k, func(r row) float64 { return r.Share() })
		say(share <= 0.6, "a share of %.0f %%, at most 60", 100*share)
	case k.label == "kill":
		in, of := t.onTime(k)
		say(in == of, "%d of %d next ticks within twice the usual median", in, of)
	case k.label == "lead":
		none := t.sum(k, func(r row) int { return r.outcomes["none"] + r.outcomes["several"] })
		say(none == 0, "%d ticks without their one outcome", none)
	}
	return lines
}

func verdict(ok bool, text string) string {
	if ok {
		return "holds: " + text
	}
	return "DOES NOT HOLD: " + text
}
