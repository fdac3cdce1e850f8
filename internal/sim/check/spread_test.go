package check_test

import (
	"fmt"

	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// share has a and b do three shards of a singleton, each of them the shards of its list, until the end
// of a calm that begins at 10.
func (s *story) share(ofA, ofB []int) {
	var all []check.Definition
	for i := range 3 {
		all = append(all, check.Definition{Name: fmt.Sprint("parts-", i), Whole: "parts", Shard: i, Shards: 3, Lease: lease})
	}
	s.Fleet["a"], s.Fleet["b"] = all, all
	s.say("", 10, check.Healed).End = at(10 + (check.Settling + check.Spreading).Seconds())
	for replica, shards := range map[string][]int{"a": ofA, "b": ofB} {
		for _, i := range shards {
			s.leads(replica, all[i].Name, 2+0.1*float64(i), 500)
		}
	}
	for _, d := range all { // each looks at each shard now and then
		s.job = d.Name
		s.request("a", "read", "", 20, 200)
		s.request("b", "read", "", 20, 200)
	}
}

// leads is one run of a singleton from its claim to its outcome.
func (s *story) leads(replica, job string, from, to float64) {
	s.job = job
	s.last.Run, s.last.History = store.Run{Status: store.Idle, Lease: store.Seconds(lease)}, nil
	s.write(replica, "create", "", from-1, func(*store.Record) {})
	s.acquire(replica, job, from)
	s.write(replica, "claim", job, from+0.2, func(r *store.Record) {
		r.Token, r.Run.Attempt, r.Run.Status = r.Token+1, 1, store.Running
	})
	token := s.last.Token
	for t := from + 5; t < to; t += 5 {
		s.request(replica, "renew", job, t, 200)
	}
	for _, note := range []string{"run started", "run ended"} {
		s.add(check.Event{What: check.Said, Replica: replica, Job: job, Token: token, Time: at(from + 0.5), Note: note})
	}
	s.add(check.Event{What: check.Ran, Replica: replica, Job: job, Token: token, Attempt: 1, Try: 1, Time: at(from + 0.5), End: at(to)})
	s.write(replica, "finish", job, to+0.1, func(r *store.Record) {
		r.Run.Status, r.Run.Finished = store.Succeeded, at(to+0.1)
	})
	s.request(replica, "release", job, to+0.3, 200)
}

// late is when an uneven spread is old.
const late = 300

var _ = plant(stories{
	"": {
		func(s *story) { s.share([]int{0, 2}, []int{1}) },
		func(s *story) { // a shard has no holder for a while
			s.share([]int{0, 2}, nil)
			s.leads("b", "parts-1", 120, 500)
		},
		func(s *story) { // one of them has just come
			s.share([]int{0, 1, 2}, nil)
			s.say("b", 365, check.Up)
		},
		func(s *story) { // one of them is woken up by calls
			s.share([]int{0, 1, 2}, nil)
			for _, e := range s.Events {
				if e.What == check.Up && e.Replica == "b" {
					e.Cause = "woken up"
				}
			}
		},
		func(s *story) { // a run of another one goes on after the end of its context
			s.share([]int{0, 1, 2}, nil)
			s.job = "stray"
			s.leads("b", "stray", 2, 400)
			for _, e := range s.Events {
				if e.What == check.Ran && e.Replica == "b" {
					e.Cancelled = at(100)
				}
			}
		},
	},
	"I28 alone": {
		func(s *story) { // nobody holds a shard for long
			s.share([]int{0, 2}, nil)
			s.leads("b", "parts-1", 200, 500)
		},
	},
	"I28 spread": {
		func(s *story) { s.share([]int{0, 1, 2}, nil) },
		func(s *story) { s.share([]int{0, 2}, nil) }, // a shard has no holder
		func(s *story) { // it began even, and a replica has stopped long ago
			s.share([]int{0, 1, 2}, nil)
			s.say("c", 5, check.Up)
			s.Fleet["c"] = s.Fleet["a"]
			s.say("c", late, check.Gone)
		},
	},
})
