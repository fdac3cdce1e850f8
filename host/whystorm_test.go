package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/nightly"
)

// A spell is a time in which something was so. A zero end: it is so still.
type spell struct {
	name       string
	begin, end time.Time
}

// isOn reports whether an instant lies in a spell, give or take.
func (s spell) isOn(at time.Time, give time.Duration) bool {
	return !at.Before(s.begin.Add(-give)) && (s.end.IsZero() || at.Before(s.end.Add(give)))
}

// A storm is a day of replicas that start, stop, are killed and are cut off, of runs that take long, and of pauses. It knows
// what was the case when.
type storm struct {
	*scene
	dice   *rand.Rand // of the deeds
	up     []spell    // a replica was up, and reached the store
	alive  []spell    // its process was there
	paused []spell
	next   int

	mu     sync.Mutex
	random *rand.Rand // of the runs
	runs   []spell

	named bool
}

// ceased ends the spell of a name.
func ceased(all []spell, name string) {
	for i := range all {
		if all[i].name == name && all[i].end.IsZero() {
			all[i].end = time.Now()
		}
	}
}

// during returns the names of the spells that an instant lies in.
func during(all []spell, at time.Time, give time.Duration) (names []string) {
	for _, s := range all {
		if s.isOn(at, give) {
			names = append(names, s.name)
		}
	}
	return names
}

// work takes some time, now and then long.
func (s *storm) work(ctx context.Context, r *soloist.Run) error {
	s.mu.Lock()
	s.runs = append(s.runs, spell{name: r.Tick.Format("15:04"), begin: time.Now()})
	took := time.Duration(0)
	if s.random.IntN(12) == 0 {
		took = time.Duration(s.random.IntN(12*60)) * time.Second
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		ceased(s.runs, r.Tick.Format("15:04"))
	}()
	return lasts(took)(ctx, r)
}

// deed does one thing at random.
func (s *storm) deed() {
	living := during(s.alive, time.Now(), 0)
	if len(living) == 0 || len(living) < 3 && s.dice.IntN(3) == 0 {
		s.next++
		name := fmt.Sprint("pod-", s.next)
		if s.named { // as on machines, which keep their names
			name = fmt.Sprint("vm-", s.next%3)
			if slices.Contains(living, name) {
				return
			}
		}
		s.scene.up(name)
		s.up, s.alive = append(s.up, spell{name: name, begin: time.Now()}), append(s.alive, spell{name: name, begin: time.Now()})
		return
	}
	name := living[s.dice.IntN(len(living))]
	switch s.dice.IntN(9) {
	case 0, 1, 2:
		s.stop(name)
	case 3, 4, 5: // killed
		s.cut(name)
		go s.stop(name)
	case 6, 7:
		s.cut(name)
		ceased(s.up, name)
		time.Sleep(time.Duration(1+s.dice.IntN(9)) * time.Minute)
		s.back(name)
		s.up = append(s.up, spell{name: name, begin: time.Now()})
		return
	default:
		s.do("pause report --by anna --until " + fmt.Sprint(1+s.dice.IntN(12)) + "m")
		s.paused = append(s.paused, spell{name: "anna", begin: time.Now()})
		return
	}
	ceased(s.up, name)
	ceased(s.alive, name)
}

// ask asks about each tick of the last half of an hour that did not run, and judges the answers.
func (s *storm) ask(asked map[string]bool, counts map[string]int) {
	var body struct {
		Jobs []struct{ History []event.Outcome }
	}
	got := run(s.t.Context(), s.p, "history", "report", "--outcome", "missed,skipped", "--json")
	if err := json.Unmarshal([]byte(got.out), &body); err != nil || len(body.Jobs) != 1 {
		s.t.Fatalf("%v: %+v", err, got)
	}
	for _, o := range body.Jobs[0].History {
		from := o.Tick.Add(-1)
		if !o.From.IsZero() {
			from = o.From
		}
		for tick := o.Tick; tick.After(from); tick = tick.Add(-5 * time.Minute) {
			name := tick.Format(time.RFC3339)
			if asked[name] || time.Since(tick) > 30*time.Minute {
				continue
			}
			asked[name] = true
			w := s.why("report " + name)
			counts[w.Cause]++
			s.mu.Lock()
			wrong := s.judge(tick, o, w)
			s.mu.Unlock()
			if wrong != "" {
				s.t.Errorf("tick %s, %s: %s: %s: %+v\nup %v\nalive %v", name, o.Status, o.Reason, wrong, w, s.up, s.alive)
			}
		}
	}
}

// sureDown is a sentence that says for certain that no replica was up.
var sureDown = regexp.MustCompile(`no replica was up from (\S+ \S+Z), when .* to (\S+ \S+Z), when`)

// judge returns what is wrong with an answer, empty if nothing is. An answer may name no cause, but it may name no wrong one; where
// no replica was there at all, and no other cause, it has to say so, or that none is known where names are used again.
func (s *storm) judge(tick time.Time, o event.Outcome, w reasonTold) string {
	const clocks = 3 * time.Second // from a tick to its claim, and from an end to what the record has of it
	reached := during(s.up, tick, -clocks)
	present, around := during(s.alive, tick, -clocks), during(s.alive, tick, clocks)
	switch w.Cause {
	case "down":
		if len(reached) > 0 {
			return fmt.Sprintf("%v reached the store", reached)
		}
		if len(present) > 0 && len(w.NotKnown) == 0 {
			return fmt.Sprintf("%v was up, and that this is not known is not told", present)
		}
		if span := sureDown.FindStringSubmatch(w.Sentence); span != nil {
			begin, err := time.Parse("2006-01-02 15:04:05Z", span[1])
			end, err2 := time.Parse("2006-01-02 15:04:05Z", span[2])
			if err != nil || err2 != nil {
				return fmt.Sprintf("%v, %v", err, err2)
			}
			for _, one := range s.alive {
				if one.begin.Before(end.Add(-clocks)) && (one.end.IsZero() || one.end.After(begin.Add(clocks))) {
					return one.name + " was up"
				}
			}
		}
	case "overlap":
		if len(during(s.runs, tick, clocks)) == 0 {
			return "no run was under way"
		}
	case "died": // the runner of a tick before
		if !slices.ContainsFunc(s.runs, func(r spell) bool { return r.begin.Before(tick) && tick.Sub(r.begin) < time.Hour }) {
			return "there was no such run"
		}
	case "paused-by-order":
		if o.Status != event.Skipped || len(during(s.paused, tick, 12*time.Minute)) == 0 {
			return "nobody had paused it"
		}
	case "unclaimed":
		if up := strings.Contains(w.Sentence, "though "); up && len(around) == 0 {
			return "no replica was up"
		}
	default:
		return "no such thing was played"
	}
	unlisted := strings.Contains(strings.Join(w.Known, "\n"), "is not in the list of replicas") // it started a moment ago
	unknown := s.named && w.Cause == "unclaimed" && strings.Contains(w.Sentence, "no replica is known to have been up")
	if o.Status == event.Missed && len(around) == 0 && w.Cause != "down" && w.Cause != "died" && !unlisted && !unknown {
		return "no replica was up"
	}
	return ""
}

// Each tick that did not run in a storm is told with a cause that was the case.
func TestWhyInAStorm(t *testing.T) {
	counts := map[string]int{}
	seeds := uint64(4)
	if nightly.Runs() {
		seeds = 60
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, nil, func(t *testing.T) {
				s := &storm{dice: rand.New(rand.NewPCG(seed, 7)), random: rand.New(rand.NewPCG(seed, 8)), named: seed%2 == 1}
				s.scene = newScene(t, nil, each5(s.work))
				defer s.end()
				asked := map[string]bool{}
				for range 80 {
					s.deed()
					time.Sleep(time.Duration(s.dice.IntN(12*60)) * time.Second)
					if len(s.alive) > 0 {
						s.ask(asked, counts)
					}
				}
			})
		})
	}
	t.Logf("causes: %v", counts)
	for _, cause := range []string{"down", "overlap", "paused-by-order", "unclaimed"} {
		if counts[cause] == 0 {
			t.Errorf("no tick was told with the cause %s", cause)
		}
	}
}
