package check_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// atZero has a platform scale the cluster to zero: the job is hourly, b ends at once, and a at 100 s, after it has said
// that an alarm is pending.
func (s *story) atZero() {
	s.Zero = &check.Zero{Kind: check.AsJob, Most: 2, Poll: 30 * time.Second, Start: 10 * time.Second, Lead: time.Minute, Stay: 2 * time.Minute, Net: 24 * time.Hour}
	for _, of := range s.Fleet {
		of[0].Every = time.Hour
	}
	s.say("b", 1, check.Gone)
	s.add(check.Event{What: check.Handed, Replica: "a", Time: at(90), Op: check.HandedOver})
	s.say("a", 100, check.Gone)
}

// mail is what befalls a message, which is visible at a time from then on.
func (s *story) mail(replica, id, op string, t, visible float64) {
	s.add(check.Event{What: check.Mail, Replica: replica, ID: id, Op: op, Time: at(t), End: at(visible)})
}

// wakes is a replica that is up for ten seconds.
func (s *story) wakes(replica string, t float64) {
	s.Fleet[replica] = s.Fleet["a"]
	s.say(replica, t, check.Up).Op = check.ByAlarm
	s.say(replica, t+10, check.Gone)
}

// dies has a replica c come for the first tick, and die in its run.
func (s *story) dies() {
	s.mail("a", "1", check.MailPut, 80, 3540)
	s.atZero()
	s.Fleet["c"] = s.Fleet["a"]
	s.say("c", 3570, check.Up).Op = check.ByAlarm
	s.hold("c", "1", 3600)
	s.run("c", 3601, 3605).Cause = "crash"
	s.say("c", 3605, check.Crash)
}

// leaves is a replica that is up for ten seconds, and leaves a message that is visible at a time.
func (s *story) leaves(replica string, t, visible float64) {
	s.wakes(replica, t)
	s.mail(replica, "2", check.MailPut, t+8, visible)
	s.mail(replica, "1", check.MailDeleted, t+8.5, visible)
	s.add(check.Event{What: check.Handed, Replica: replica, Time: at(t + 9), Op: check.HandedOver})
}

// deletes has an entry be deleted under a replica c that has come for the first tick and hands over at a time, for the next one.
func (s *story) deletes(t float64) {
	s.mail("a", "1", check.MailPut, 80, 3540)
	s.atZero()
	s.Fleet["c"] = s.Fleet["a"]
	s.say("c", 3570, check.Up).Op = check.ByAlarm
	s.add(check.Event{What: check.Deleted, Job: "job", Time: at(t - 3)})
	s.mail("c", "2", check.MailPut, t-2, 7140)
	s.mail("c", "1", check.MailDeleted, t-1, t-1)
	s.add(check.Event{What: check.Handed, Replica: "c", Time: at(t), Op: check.HandedOver})
	s.say("c", t+0.5, check.Gone)
	s.wakes("d", 7170)
}

// diesHolding has c die in its run of the first tick, and d after it had the lease of that until a time. Meanwhile e hands
// over, for when that lease would end.
func (s *story) diesHolding(released float64) {
	s.dies()
	s.Fleet["d"] = s.Fleet["a"]
	s.say("d", 3630, check.Up).Op = check.ByAlarm
	s.acquire("d", "2", 3640)
	s.request("e", "read", "", 3646, 200)
	s.leaves("e", 3641, 3664)
	s.request("d", "release", "2", released, 200)
	s.say("d", 3656, check.Crash)
	s.wakes("f", 3690)
}

// busy is a replica that is up for other jobs when the tick of 3600 s comes, which it begins at a time.
func (s *story) busy(begins float64) {
	s.mail("a", "1", check.MailPut, 80, 1000)
	s.atZero()
	s.say("", 200, check.Healed).End = at(4200)
	s.Fleet["c"] = s.Fleet["a"]
	s.say("c", 1030, check.Up).Op = check.ByAlarm
	s.acquire("c", "1", begins)
	s.claim("c", "1", begins+0.5, 3600)
	s.run("c", begins+1, begins+2)
	s.finish("c", "1", begins+2.5, store.Succeeded)
	s.request("c", "release", "1", begins+3, 200)
	s.mail("c", "2", check.MailPut, 4000, 7140)
	s.mail("c", "1", check.MailDeleted, 4001, 4001)
	s.add(check.Event{What: check.Handed, Replica: "c", Time: at(4001), Op: check.HandedOver})
	s.say("c", 4002, check.Gone)
}

// outOfTime has a replica c that is up since a time leave the first tick to another one.
func (s *story) outOfTime(up float64) {
	s.mail("a", "1", check.MailPut, 80, up-60)
	s.atZero()
	s.say("", 200, check.Healed).End = at(3800)
	s.Fleet["c"], s.Fleet["d"] = s.Fleet["a"], s.Fleet["a"]
	s.say("c", up, check.Up).Op = check.ByAlarm
	s.mail("c", "2", check.MailPut, 3612, 3612)
	s.say("c", 3614, check.Gone)
	s.say("d", 3650, check.Up).Op = check.ByAlarm
	s.acquire("d", "1", 3651)
	s.claim("d", "1", 3651.5, 3600)
	s.run("d", 3652, 3653)
	s.finish("d", "1", 3653.5, store.Succeeded)
}

// runsMomentBefore has a replica c, whose clock is fast, run the first tick, or leave it alone, and hand over for the next one
// before the first has come.
func (s *story) runsMomentBefore(runs bool) {
	s.mail("a", "1", check.MailPut, 80, 3540)
	s.atZero()
	s.Fleet["c"] = s.Fleet["a"]
	s.say("c", 3570, check.Up).Op = check.ByAlarm
	s.acquire("c", "1", 3599)
	s.claim("c", "1", 3599.1, 3600)
	s.run("c", 3599.2, 3599.4)
	s.finish("c", "1", 3599.5, store.Succeeded)
	if !runs {
		s.last.Watermark = at(0)
		s.Events = s.Events[:len(s.Events)-4]
	}
	s.mail("c", "2", check.MailPut, 3599.6, 7140)
	s.mail("c", "1", check.MailDeleted, 3599.7, 0)
	s.add(check.Event{What: check.Handed, Replica: "c", Time: at(3599.8), Op: check.HandedOver})
	s.say("c", 3599.9, check.Gone)
	s.wakes("d", 7170)
}

// wakesVersion has a message for a new version come while a replica c is up, which deletes it; or another one does, that was
// started since.
func (s *story) wakesVersion(started bool) {
	s.mail("a", "1", check.MailPut, 80, 3540)
	s.atZero()
	s.wakes("c", 1000)
	s.request("c", "read", "", 1001, 200)
	s.mail("d", "2", check.MailPut, 1004, 1004)
	s.Events[len(s.Events)-1].Note = "version 2"
	if started {
		s.wakes("d", 1006)
	}
	s.mail("c", "2", check.MailDeleted, 1008, 0)
	s.wakes("e", 3570)
}

// ordersUnderPause has somebody order a run of a job that is paused, whose last run has died; the tick of that may have to be
// run again first. A replica d hands over after that.
func (s *story) ordersUnderPause(again bool) {
	s.dies()
	s.Fleet["d"] = s.Fleet["a"]
	s.say("d", 3640, check.Up).Op = check.ByAlarm
	s.acquire("d", "2", 3641)
	s.write("d", "settle", "2", 3641.5, func(r *store.Record) {
		if r.Run.Status = store.Abandoned; !again {
			r.Watermark = r.Run.Tick
		}
	})
	s.request("d", "release", "2", 3642, 200)
	s.order(store.OrderPause, 3643, 3643.5)
	s.order(store.OrderRun, 3650, 3650.5).End = at(7000)
	s.add(check.Event{What: check.Rung, Job: "job", Replica: check.Orderer, Time: at(3651)})
	s.mail("d", "2", check.MailPut, 3660, 20000)
	s.mail("d", "1", check.MailDeleted, 3661, 0)
	s.add(check.Event{What: check.Handed, Replica: "d", Time: at(3662), Op: check.HandedOver})
	s.say("d", 3663, check.Gone)
	s.wakes("e", 6000)
}

// claimsInVain has a replica c come for the first tick, whose claim gets no answer. It runs the tick when the lease is over.
func (s *story) claimsInVain(beats bool) {
	s.mail("a", "1", check.MailPut, 80, 3540)
	s.atZero()
	s.say("", 200, check.Healed).End = at(3800)
	s.Fleet["c"] = s.Fleet["a"]
	s.say("c", 3570, check.Up).Op = check.ByAlarm
	s.acquire("c", "1", 3599.9)
	e := s.claim("c", "1", 3600.01, 3600)
	e.Status, e.Heard = 0, time.Time{}
	if beats {
		e.Record.Beat = store.Beat{Token: e.Record.Token, Length: store.Seconds(time.Second)}
	}
	s.last.Token-- // it was not applied
	s.acquire("c", "2", 3622)
	s.claim("c", "2", 3622.5, 3600)
	s.run("c", 3623, 3624)
	s.finish("c", "2", 3624.5, store.Succeeded)
}

// spoils has somebody spoil the entry until a time, and nothing be put for its next tick.
func (s *story) spoils(until float64) {
	s.corrupted("since 9999", 50, until, nil)
	s.atZero()
	s.wakes("c", 3570)
}

// passesOver has an entry be deleted under a replica c that has come for the first tick and does not run it.
func (s *story) passesOver(deleted float64) {
	s.mail("a", "1", check.MailPut, 80, 3540)
	s.atZero()
	s.say("", 200, check.Healed).End = at(3800)
	s.Fleet["c"] = s.Fleet["a"]
	s.say("c", 3570, check.Up).Op = check.ByAlarm
	s.add(check.Event{What: check.Deleted, Job: "job", Time: at(deleted)})
	s.mail("c", "2", check.MailPut, 3620, 7140)
	s.mail("c", "1", check.MailDeleted, 3621, 3621)
	s.add(check.Event{What: check.Handed, Replica: "c", Time: at(3622), Op: check.HandedOver})
	s.say("c", 3623, check.Gone)
}

// diesAtStart has a replica c that has another schedule, or not, come at a time and die at once. It has put a message that
// comes 45 s later.
func (s *story) diesAtStart(every time.Duration, t float64) {
	s.mail("a", "1", check.MailPut, 80, 3540)
	s.atZero()
	s.Fleet["c"] = slices.Clone(s.Fleet["a"])
	s.Fleet["c"][0].Every = every
	s.say("c", t, check.Up).Op = check.ByAlarm
	s.mail("c", "2", check.MailPut, t+0.1, t+45.1)
	s.mail("c", "1", check.MailDeleted, t+0.2, 0)
	s.say("c", t+0.3, check.Crash)
	s.wakes("d", t+80)
}

// waitsForRoom has so many executions go on from before a deployment of another schedule until after one of its ticks. A replica d of
// that comes after them.
func (s *story) waitsForRoom(executions int) {
	s.mail("a", "1", check.MailPut, 80, 7140)
	s.atZero()
	s.say("", 200, check.Healed).End = at(3900)
	next := slices.Clone(s.Fleet["a"])
	s.Fleet["a"][0].Every = 2 * time.Hour
	for i := range executions {
		c := fmt.Sprint("c", i)
		s.Fleet[c] = s.Fleet["a"]
		s.say(c, 1000, check.Up).Op = check.ByAlarm
		s.say(c, 3700, check.Gone)
	}
	s.Fleet["d"] = next
	s.say("d", 3720, check.Up).Op = check.ByAlarm
	s.say("d", 3800, check.Gone)
}

// makesContainer has the container be made, which takes so long.
func (s *story) makesContainer(took float64) {
	s.mail("a", "1", check.MailPut, 80, 3540)
	s.atZero()
	e := s.request("a", "container", "", 70, 201)
	e.Job, e.Done = "", at(69.95+took)
}

// heals says that all faults are over, for three hours.
func (s *story) heals() { s.say("", 200, check.Healed).End = at(3 * 3600) }

var _ = plant(stories{
	"": {func(s *story) {
		s.mail("a", "1", check.MailPut, 80, 3540)
		s.atZero()
		s.wakes("c", 3570)
	}, func(s *story) { // the platform takes longer to start a replica than a tick may be late
		for _, of := range s.Fleet {
			of[0].StartingDeadline = 20 * time.Second
		}
		s.mail("a", "1", check.MailPut, 80, 3540)
		s.atZero()
		s.Zero.Start = 90 * time.Second
		s.heals()
		s.wakes("c", 3650)
	}, func(s *story) { // the pass of a replica that does not wait any more ends after the tick
		s.mail("a", "1", check.MailPut, 80, 3400)
		s.atZero()
		s.say("", 200, check.Healed).End = at(3800)
		s.Fleet["c"], s.Fleet["d"] = s.Fleet["a"], s.Fleet["a"]
		s.say("c", 3440, check.Up).Op = check.ByAlarm
		s.mail("c", "2", check.MailPut, 3605, 3605)
		s.say("c", 3606, check.Gone)
		s.say("d", 3640, check.Up).Op = check.ByAlarm
		s.acquire("d", "1", 3641)
		s.claim("d", "1", 3641.5, 3600)
		s.run("d", 3642, 3643)
		s.finish("d", "1", 3643.5, store.Succeeded)
		s.request("d", "release", "1", 3644, 200)
	}, func(s *story) { s.deletes(3597) }, func(s *story) { s.spoils(9000) }, func(s *story) { s.passesOver(3597) }, func(s *story) { s.diesAtStart(time.Minute, 3021) }, func(s *story) { s.waitsForRoom(2) }, func(s *story) { s.makesContainer(9.9) }, func(s *story) { // the entry could not be read
		s.dies()
		s.request("d", "read", "", 3645, 503)
		s.leaves("d", 3640, 3700)
		s.wakes("e", 3710)
	}, func(s *story) { s.busy(3600.5) }, func(s *story) { // a tool holds the lease of a job whose replica has died: nobody knows for how long
		s.dies()
		s.add(check.Event{What: check.Leased, Job: "job", Time: at(3625), End: at(3690)})
		s.leaves("d", 3640, 3700)
		s.wakes("e", 3710)
	}, func(s *story) { s.diesHolding(3653) }, func(s *story) { // faults have left messages, and each starts a replica once
		for i := range 20 {
			s.mail("a", fmt.Sprint(i), check.MailPut, 80, 1000+100*float64(i))
		}
		s.mail("a", "next", check.MailPut, 80, 3540)
		s.atZero()
		s.say("", 200, check.Healed).End = at(3800)
		for i := range 20 {
			c := fmt.Sprint("c", i)
			s.wakes(c, 1000+100*float64(i))
			s.mail(c, fmt.Sprint(i), check.MailDeleted, 1000+100*float64(i), 0)
		}
		s.Fleet["d"] = s.Fleet["a"]
		s.say("d", 3570, check.Up).Op = check.ByAlarm
		s.hold("d", "1", 3600)
		s.run("d", 3601, 3602)
		s.finish("d", "1", 3602.5, store.Succeeded)
	}, func(s *story) { s.outOfTime(1810) }, func(s *story) { s.runsMomentBefore(true) }, func(s *story) { s.wakesVersion(true) }, func(s *story) { s.claimsInVain(true) }, func(s *story) { s.ordersUnderPause(true) }, func(s *story) { // faults have left messages, and they are put off
		s.mail("a", "1", check.MailPut, 80, 3540)
		s.atZero()
		s.say("", 200, check.Healed).End = at(3550)
		for i := range 4 {
			s.mail("a", fmt.Sprint("left", i), check.MailPut, 80, 790)
			s.mail("a", fmt.Sprint(i), check.MailPut, 800+2400*float64(i/3), 20000)
			s.mail("a", fmt.Sprint("left", i), check.MailDeleted, 801, 0)
		}
		s.wakes("c", 3570)
	}},
	"I18 pending": {
		func(s *story) { s.runsMomentBefore(false) },
		func(s *story) { s.ordersUnderPause(false) },
		func(s *story) { s.spoils(60) }, // it was mended before
		func(s *story) { s.diesAtStart(time.Hour, 3570) },
		func(s *story) { s.deletes(3575) },                // before that tick there is time to make the entry anew
		func(s *story) { s.atZero(); s.wakes("c", 3570) }, // nothing was put
		func(s *story) { // it comes after its tick
			s.mail("a", "1", check.MailPut, 80, 3660)
			s.atZero()
			s.wakes("c", 3670)
		},
		func(s *story) { // it comes too late for the run of a replica that has died
			s.dies()
			s.leaves("d", 3640, 3700)
			s.wakes("e", 3710)
		},
		func(s *story) { s.diesHolding(3645) }, // nobody had the lease any more
		func(s *story) { // it is deleted while no replica is up
			s.mail("a", "1", check.MailPut, 80, 3540)
			s.atZero()
			s.mail("a", "1", check.MailDeleted, 200, 200)
			s.wakes("c", 3570)
		},
	},
	"I7a bounded": {func(s *story) { s.makesContainer(10.1) }},
	"I18 version": {func(s *story) { s.wakesVersion(false) }},
	"I18 few": {func(s *story) {
		s.atZero()
		s.heals()
		for i := range 4 {
			t := 800 + 2400*float64(i/3)
			s.mail("a", fmt.Sprint(i), check.MailPut, t, 20000)
		}
	}},
	"I18 on time": {
		func(s *story) { s.outOfTime(3000) },
		func(s *story) { s.waitsForRoom(1) },
		func(s *story) { s.passesOver(3612) }, // the entry was there when the tick came
		func(s *story) {
			s.mail("a", "1", check.MailPut, 80, 3540)
			s.atZero()
			s.heals()
		},
		func(s *story) { s.busy(3640) },          // it waits for other runs
		func(s *story) { s.claimsInVain(false) }, // the claim has its time for an answer
	},
	"I18 quiet": {func(s *story) {
		s.mail("a", "1", check.MailPut, 80, 3540)
		s.atZero()
		s.heals()
		for i := range 20 {
			s.wakes(fmt.Sprint("c", i), 1000+100*float64(i))
		}
	}},
})

var _ = plant(stories{
	"I18 pending": {func(s *story) {
		// it had been claimed ahead, and nobody is to come before the next tick
		s.dies()
		s.Fleet["c"][0].ClaimAhead, s.last.Run.Armed = true, true
		for _, e := range s.Events {
			if e.Op == "claim" {
				e.Record.Run.Armed = true
			}
		}
		s.mail("c", "2", check.MailPut, 3602, 7140)
		s.mail("c", "1", check.MailDeleted, 3603, 3603)
		s.wakes("d", 7170)
	}},
})
