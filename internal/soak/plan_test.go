package soak_test

import (
	"math/rand/v2"
	"slices"
	"time"
)

// sort brings the deeds into their order, up to when all is to be well.
func (p *plan) sort() []deed {
	slices.SortStableFunc(p.deeds, func(a, b deed) int { return a.at.Compare(b.at) })
	return slices.DeleteFunc(p.deeds, func(d deed) bool { return d.at.After(p.over.to.Add(-calm)) })
}

// calm is how long before the end nothing happens any more, and how long after
// it all ticks before it have come to theirs.
const calm = 2 * time.Hour

// fourDays has one trouble of each kind. The clocks change in its third night.
func (p *plan) fourDays() {
	p.crash(p.at(0, 10, 30), 0)
	p.step(p.at(0, 11, 15), 1, 90*time.Minute)
	p.outage(p.at(0, 13, 10), 50*time.Minute, mute)
	p.partition(p.at(0, 15, 10), 5*time.Minute, 2, lost)
	p.step(p.at(0, 16, 0), 1, -3*time.Hour)
	p.outage(p.at(0, 18, 20), 4*time.Hour, busy)
	p.closed(p.at(1, 0, 30), 280*time.Minute, &changes[0])
	p.deploy(p.at(1, 10, 0), &changes[1])
	p.deploy(p.at(1, 16, 0), &changes[2])
	p.deploy(p.at(2, 10, 0), &changes[3])
	p.deploy(p.at(2, 16, 0), &changes[4])
	p.deploy(p.at(3, 10, 0), &changes[5])
	p.deploy(p.at(3, 16, 0), &changes[6])
	p.add(p.at(3, 18, 0), func(c *cluster) {
		c.lead() // it costs more calls than all jobs, so it comes last
		c.deploy(&changes[7])
	})
	p.dethrone(p.at(3, 20, 0))
}

// wholeYear has a deploy on each Tuesday, where every fourth changes the
// program; nights and weekends with nobody up; an outage of a day; and what
// comes by chance.
func (p *plan) wholeYear() {
	dice := rand.New(rand.NewPCG(2028, 366))
	off := map[int]bool{} // days on which nothing comes by chance
	closed := func(day, hour, minute int, d time.Duration, next *change) {
		p.closed(p.at(day, hour, minute), d, next)
		for i := range int(d.Hours()/24) + 2 {
			off[day+i] = true
		}
	}
	closed(22, 0, 30, 280*time.Minute, &changes[0])
	closed(103, 0, 30, 280*time.Minute, nil)
	closed(133, 1, 0, 54*time.Hour, nil) // a Saturday
	closed(200, 0, 30, 280*time.Minute, nil)
	closed(315, 1, 0, 54*time.Hour, nil)
	p.outage(p.at(257, 14, 0), 24*time.Hour, busy)
	off[257], off[258] = true, true
	for day := range 366 {
		switch weekday := p.at(day, 12, 0).Weekday(); {
		case weekday == time.Tuesday:
			var next *change
			if n := day / 28; day/7%4 == 0 && n > 0 && n < len(changes) {
				next = &changes[n]
			}
			p.deploy(p.at(day, 10, 0), next)
		case !off[day]:
			p.byChance(day, dice)
			if weekday != time.Saturday && weekday != time.Sunday { // one more during the day
				p.scale(p.at(day, 7, 0), 2, true)
				p.scale(p.at(day, 19, 0), 2, false)
			}
		}
		if day%30 == 17 {
			p.dethrone(p.at(day, dice.IntN(24), dice.IntN(60)))
		}
	}
}

// byChance has troubles on a day; what begins then ends before the next deploy.
func (p *plan) byChance(day int, dice *rand.Rand) {
	upTo := func(d time.Duration) time.Duration { return time.Duration(dice.Int64N(int64(d))) }
	some := func() time.Time { return p.at(day, 0, 0).Add(upTo(24 * time.Hour)) }
	if dice.IntN(4) == 0 {
		p.crash(some(), dice.IntN(2))
	}
	if dice.IntN(6) == 0 {
		p.step(some(), dice.IntN(3), upTo(time.Minute)-30*time.Second)
	}
	if dice.IntN(12) == 0 {
		p.step(some(), dice.IntN(3), upTo(6*time.Hour)-3*time.Hour)
	}
	if dice.IntN(8) == 0 {
		p.partition(some(), 10*time.Second+upTo(20*time.Minute), dice.IntN(2), faults[dice.IntN(len(faults))])
	}
	switch dice.IntN(16) {
	case 0:
		p.outage(some(), 5*time.Second+upTo(5*time.Minute), faults[dice.IntN(len(faults))])
	case 1:
		p.outage(some(), 20*time.Minute+upTo(5*time.Hour), faults[dice.IntN(len(faults))])
	}
}
