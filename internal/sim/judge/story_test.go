package judge

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

const lease = 15 * time.Second

func at(seconds float64) time.Time {
	return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// A story is a log of the replicas a and b. It is told as text, of commands with semicolons between them: each is a verb, or the
// time of an event of some kind, with its words, and then what is set in the last event that it makes.
type story struct {
	trace.Log
	job   string
	saved map[string]store.Record // by entry
}

// newStory has jobs that are due every ten seconds, some that are due each minute, singletons, shards, a group, a lock of two
// slots and work that is done once.
func newStory() *story {
	s := &story{job: "job", saved: map[string]store.Record{}, Log: trace.Log{Fleet: map[string][]trace.Definition{},
		Locks: map[string]trace.Lock{"lock": {Slots: 2, Lease: lease}}, Onces: map[string]trace.Once{key: {Lease: lease}}}}
	define := func(name string, every time.Duration, change func(d *trace.Definition)) {
		d := trace.Definition{Name: name, Every: every, Schedule: every.String(), Lease: lease}
		change(&d)
		for _, replica := range []string{"a", "b"} {
			s.Fleet[replica] = append(s.Fleet[replica], d)
		}
	}
	often := 10 * time.Second
	work := func(d *trace.Definition) { d.Interrupted, d.HeartbeatTimeout = soloist.Rerun, 12*time.Second }
	define("job", often, func(*trace.Definition) {})
	define("rerun", often, func(d *trace.Definition) { d.Interrupted = soloist.Rerun })
	define("after", often, func(d *trace.Definition) { d.Follows = "job" })
	define("any", often, func(d *trace.Definition) { d.Follows, d.FollowsAny = "job", true })
	define("g1", often, func(d *trace.Definition) { d.Group, d.Slots = "g", 1 })
	define("g2", often, func(d *trace.Definition) { d.Group, d.Slots = "g", 1 })
	define("replace", often, func(d *trace.Definition) { d.Overlap = soloist.Replace })
	define("hourly", time.Hour, func(*trace.Definition) {})
	define("work", time.Minute, work)
	define("prompt", time.Minute, func(d *trace.Definition) { work(d); d.StartingDeadline = often })
	define("grouped", time.Minute, func(d *trace.Definition) { work(d); d.Group, d.Slots = "group", 1 })
	define("one", 0, func(*trace.Definition) {})
	define("s-0", 0, func(d *trace.Definition) { d.Whole, d.Shard, d.Shards = "s", 0, 2 })
	define("s-1", 0, func(d *trace.Definition) { d.Whole, d.Shard, d.Shards = "s", 1, 2 })
	s.Fleet["v"] = []trace.Definition{{Name: "work", Every: 7 * time.Minute, Lease: lease}} // of an aborted deploy
	s.tell("-100 up Replica=a; -100 up Replica=b")
	return s
}

// key is the entry of work that is done once.
var key = entry.OfKey("migrate", "v1")

func (s *story) add(t float64, e trace.Event) *trace.Event {
	e.Time = at(t)
	return s.Add(e)
}

func (s *story) request(t float64, replica, op, id string) *trace.Event {
	return s.add(t, trace.Event{What: trace.Request, Replica: replica, Job: s.job, Op: op, Lease: id, Match: true, Status: 200,
		Span: map[string]time.Duration{"acquire": lease}[op], Sent: at(t - 0.05), Heard: at(t + 0.05)})
}

// write changes the record, which the first write makes.
func (s *story) write(t float64, replica, op, id string, change func(r *store.Record)) *trace.Event {
	if _, ok := s.saved[s.job]; !ok && op != "create" {
		s.saved[s.job] = store.Record{}
		s.write(-90, "a", "create", "", func(r *store.Record) { r.Token, r.Watermark, r.Run.Status = 100, at(0), store.Idle })
	}
	r := s.saved[s.job]
	r.History = slices.Clone(r.History)
	change(&r)
	s.saved[s.job] = r
	q := s.request(t, replica, op, id)
	q.Record = &r
	return q
}

func (s *story) claim(t float64, replica, id string, tick time.Time, request string) *trace.Event {
	return s.write(t, replica, "claim", id, func(r *store.Record) {
		r.Token++
		r.Run = store.Run{Tick: tick, Request: request, Attempt: 1, Status: store.Running, Lease: store.Seconds(lease)}
	})
}

// runs is the function under the last claim of the job.
func (s *story) runs(from, to float64, replica string) *trace.Event {
	r := s.saved[s.job]
	return s.add(from, trace.Event{What: trace.Ran, Replica: replica, Job: s.job, Token: r.Token, Tick: r.Run.Tick, Request: r.Run.Request,
		Attempt: r.Run.Attempt, Try: 1, End: at(to), Result: trace.Well})
}

// settle writes the outcome of a tick, or of what was ordered.
func (s *story) settle(t float64, replica, op, id string, o store.Outcome) *trace.Event {
	return s.write(t, replica, op, id, func(r *store.Record) {
		if op == "finish" {
			o.Tick, o.Request, o.Token, o.Attempt, r.Run.Status = r.Run.Tick, r.Run.Request, r.Token, r.Run.Attempt, o.Status
		}
		if r.History = append([]store.Outcome{o}, r.History...); o.Request == "" {
			r.Watermark = o.Tick
		}
	})
}

// do is what a verb says, which makes several events or changes the record. n is a word as a number; the last one may be left out
// where it repeats the one before.
func (s *story) do(verb string, n func(i int) float64, a []string) *trace.Event {
	switch verb {
	case "of":
		s.job = strings.Replace(a[0], "key", key, 1)
	case "req":
		return s.request(n(0), a[1], a[2], a[3])
	case "claim":
		return s.claim(n(0), a[1], a[2], at(n(3)), "")
	case "run":
		return s.runs(n(0), n(1), a[2])
	case "write": // perhaps under another definition
		return s.write(n(0), a[1], a[2], a[3], func(r *store.Record) { r.Definition.Spec = strings.Join(a[4:], "") })
	case "finish":
		return s.settle(n(0), a[1], "finish", a[2], store.Outcome{Status: store.Status(a[3])})
	case "miss": // one tick
		return s.settle(n(0), a[1], "settle", a[2], store.Outcome{Tick: at(n(3)), Status: store.Missed})
	case "range": // all ticks since the start, so many
		return s.settle(n(0), a[1], "settle", a[2], store.Outcome{From: at(0), Tick: at(n(3)), Count: int(n(4)), Status: store.Missed})
	case "hold": // the lease, and the claim of a tick
		s.request(n(2)+0.2, a[0], "acquire", a[1])
		return s.claim(n(2)+0.5, a[0], a[1], at(n(2)), "")
	case "tick": // from the claim of a tick to the release, at a time
		s.request(n(3)+0.2, a[0], "acquire", a[1])
		s.claim(n(3)+0.5, a[0], a[1], at(n(2)), "")
		s.runs(n(3)+0.7, n(3)+2, a[0])
		s.settle(n(3)+2.2, a[0], "finish", a[1], store.Outcome{Status: store.Succeeded})
		return s.request(n(3)+2.4, a[0], "release", a[1])
	case "ticks":
		for t := n(0); t <= n(1); t += 10 {
			s.tell(fmt.Sprintf("tick a %s%v %v", s.job, t, t))
		}
	case "holds": // a singleton, a shard or a slot
		s.request(n(0), a[2], "acquire", a[3]).Span = time.Hour
		s.claim(n(0)+0.1, a[2], a[3], time.Time{}, "")
		return s.runs(n(0)+0.2, n(1), a[2])
	case "lock": // the function of a call, under a slot
		slot := int(n(3))
		s.job = entry.OfSlot(entry.Lock, slot, "lock")
		r := s.do("holds", n, []string{a[0], a[1], "a", a[2]})
		r.Job, r.Lock, r.Slot, r.Call, r.ID = "", "lock", slot, a[2], a[2]
		return r
	case "demand": // what was ordered, for a tick
		s.request(n(0), a[1], "acquire", a[2])
		s.claim(n(0)+0.1, a[1], a[2], at(n(4)), a[3])
		return s.runs(n(0)+0.2, n(0)+1, a[1])
	case "take": // the tick of a minute, from its claim on
		id := a[0] + fmt.Sprint(s.saved[s.job].Token)
		s.request(n(1), a[0], "acquire", id)
		s.claim(n(1), a[0], id, at(n(1)).Truncate(time.Minute), "")
		r := s.runs(n(1)+.01, 0, a[0])
		r.End, r.Result = time.Time{}, ""
		return r
	case "meets": // a single fault at 5 that hits a
		s.tell("200 single Op=over")
		return s.add(5, trace.Event{What: trace.Single, Op: a[0], Replica: "a", Job: s.job, Heard: at(6), End: at(n(1))})
	case "order":
		o := s.add(n(0), trace.Event{What: trace.Ordered, Job: s.job, Op: a[1], Request: a[2], Heard: at(n(0)), End: at(n(0) + 60)})
		o.Spans = []store.Span{{From: at(-25), To: at(-10)}} // of a backfill
		return o
	default:
		return s.add(number(verb), trace.Event{What: trace.What(a[0]), Job: s.job})
	}
	return nil
}

// tell adds what a text says. A word that is - is empty, and one in which _ is has a space there.
func (s *story) tell(text string) {
	for command := range strings.SplitSeq(text, ";") {
		var words, sets []string
		all := strings.Fields(command)
		if len(all) > 0 && all[0] == "each" { // so many times, from a time on with steps
			for i := range int(number(all[1])) {
				t := fmt.Sprint(number(all[2]) + float64(i)*number(all[3]))
				s.tell(strings.NewReplacer("@", t, ",", ";").Replace(strings.Join(all[4:], " ")))
			}
			continue
		}
		for _, word := range all {
			word = strings.ReplaceAll(strings.TrimSuffix(word, "-"), "_", " ")
			if strings.Contains(word, "=") {
				sets = append(sets, word)
			} else {
				words = append(words, word)
			}
		}
		if len(words) == 0 {
			continue
		}
		e := s.do(words[0], func(i int) float64 { return number(words[min(1+i, len(words)-1)]) }, words[1:])
		for _, set := range sets {
			name, value, _ := strings.Cut(set, "=")
			assign(reflect.ValueOf(e).Elem(), strings.Split(name, "."), value)
		}
		if e != nil && e.Record != nil && e.What == trace.Request {
			s.saved[s.job] = *e.Record
		}
	}
}

// number reads a sum of numbers.
func number(text string) (sum float64) {
	for part := range strings.SplitSeq(text, "+") {
		n, err := strconv.ParseFloat(part, 64)
		if err != nil {
			panic(err)
		}
		sum += n
	}
	return sum
}

// assign sets a field, with the fields of a structure that it is in. Times are seconds.
func assign(v reflect.Value, path []string, value string) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	switch _, isTime := reflect.TypeAssert[time.Time](v); {
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(path[0]).Convert(v.Type().Key()), reflect.ValueOf(int64(number(value))))
	case len(path) > 0:
		assign(v.FieldByName(path[0]), path[1:], value)
	case isTime:
		v.Set(reflect.ValueOf(at(number(value))))
	case v.Kind() == reflect.String:
		v.SetString(value)
	case v.Kind() == reflect.Bool:
		v.SetBool(value == "true")
	default:
		v.SetInt(int64(number(value)))
	}
}

// TestPlanted judges logs that violate one property each, and others that are nearly the same, and fine.
func TestPlanted(t *testing.T) {
	shown := map[string]bool{}
	for _, p := range planted {
		t.Run(p.property+"/"+p.name, func(t *testing.T) {
			shown[p.property] = true
			single := strings.HasPrefix(p.property, "P") // which knows no other property of the log
			isPromise := slices.ContainsFunc(promises, func(o property) bool { return o.name == p.property })
			for _, with := range []string{p.bad, p.fine} {
				got, want := map[string][]string{}, []string(nil)
				if with == p.bad {
					want = []string{p.property}
				}
				judge := Judge
				if isPromise {
					judge = Drawn
				}
				for _, v := range judge(logOf(strings.ReplaceAll(p.text, "$", with))) {
					if !single && !isPromise || v.Invariant == p.property {
						got[v.Invariant] = append(got[v.Invariant], v.String())
					}
				}
				if names := slices.Collect(maps.Keys(got)); !slices.Equal(names, want) {
					t.Errorf("with %q: got %v, want %v alone", with, got, want)
				}
			}
		})
	}
	for _, p := range slices.Concat(properties, promises) {
		if !shown[p.name] {
			t.Errorf("no log shows that %s is judged", p.name)
		}
	}
}

func logOf(text string) *trace.Log {
	s := newStory()
	for name, change := range settings {
		if rest, ok := strings.CutPrefix(text, name+"; "); ok {
			change(s)
			text = rest
		}
	}
	s.tell(text)
	s.Sort()
	return &s.Log
}

// settings are what a story can begin with.
var settings = map[string]func(s *story){
	"around": func(s *story) { s.Around = true },
	"emits":  func(s *story) { s.Emits = true },
	"tries":  func(s *story) { s.Onces[key] = trace.Once{MaxTries: 1} },
	// A platform starts and ends replicas. All is well from the start for four hours.
	"zero": func(s *story) {
		s.Zero = &trace.Zero{Kind: trace.AsJob, Poll: 30 * time.Second, Start: 10 * time.Second, Lead: time.Minute, Stay: time.Minute}
		s.tell("of hourly; 30 healed End=14400; 600 handed Op=over Replica=a; 700 gone Replica=a; 700 gone Replica=b")
	},
	"alarm": func(s *story) {
		s.Zero = &trace.Zero{Poll: 30 * time.Second, Start: 10 * time.Second, Lead: 30 * time.Second, Hold: time.Second}
	},
}
