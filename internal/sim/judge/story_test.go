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
	job      string
	saved    map[string]store.Record // by entry
	previous time.Time               // what the run of the last claim is given
}

// newStory has jobs that are due every ten seconds, some that are due each minute, singletons, shards, a group, a lock of two
// slots and work that is done once.
func newStory() *story {
	s := &story{job: "job", saved: map[string]store.Record{}, Log: trace.Log{Around: true, Fleet: map[string][]trace.Definition{},
		Locks: map[string]trace.Lock{"lock": {Slots: 2, Lease: lease}}, Onces: map[string]trace.Once{key: {Lease: lease}}}}
	often, work := 10*time.Second, trace.Definition{Every: time.Minute, Interrupted: soloist.Rerun, HeartbeatTimeout: 12 * time.Second}
	prompt, grouped := work, work
	prompt.StartingDeadline, grouped.Group, grouped.Slots = often, "group", 1
	for name, d := range map[string]trace.Definition{
		"job": {Every: often}, "rerun": {Every: often, Interrupted: soloist.Rerun}, "replace": {Every: often, Overlap: soloist.Replace},
		"after": {Every: often, Follows: "job"}, "any": {Every: often, Follows: "job", FollowsAny: true},
		"g1": {Every: often, Group: "g", Slots: 1}, "g2": {Every: often, Group: "g", Slots: 1},
		"hourly": {Every: time.Hour}, "work": work, "prompt": prompt, "grouped": grouped,
		"one": {}, "s-0": {Whole: "s", Shards: 2}, "s-1": {Whole: "s", Shard: 1, Shards: 2},
	} {
		d.Name, d.Schedule, d.Lease = name, d.Every.String(), lease
		s.Fleet["a"], s.Fleet["b"] = append(s.Fleet["a"], d), append(s.Fleet["b"], d)
	}
	s.Fleet["v"] = []trace.Definition{{Name: "work", Every: 7 * time.Minute, Lease: lease}} // of an aborted deploy
	s.tell("-100 up Replica=a; -100 up Replica=b")
	return s
}

// key is the entry of work that is done once.
var key = entry.OfKey("migrate", "v1")

func (s *story) request(t float64, replica, op, id string) *trace.Event {
	return s.Add(trace.Event{Time: at(t), What: trace.Request, Replica: replica, Job: s.job, Op: op, Lease: id, Match: true, Status: 200,
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

// macros are commands that stand for others, in which $1 is the first word. The last word may be left out where it repeats the
// one before.
var macros = map[string]string{
	"hold": "req $3+0.2 $1 acquire $2; claim $3+0.5 $1 $2 $3 -", // the lease, and the claim of a tick
	"tick": "req $4+0.2 $1 acquire $2; claim $4+0.5 $1 $2 $3 -; run $4+0.7 $4+2 $1; finish $4+2.2 $1 $2 succeeded; " +
		"req $4+2.4 $1 release $2", // from the claim of a tick to the release, at a time
	"holds":  "req $1 $3 acquire $4 Span=3600; claim $1+0.1 $3 $4 - -; run $1+0.2 $2 $3", // a singleton, a shard or a slot
	"lock":   "slot $4; holds $1 $2 a $3 Job= Lock=lock Slot=$4 Call=$3 ID=$3",           // the function of a call, under a slot
	"demand": "req $1 $2 acquire $3; claim $1+0.1 $2 $3 $5 $4; run $1+0.2 $1+1 $2",       // what was ordered, for a tick
	"take":   "req $2 $1 acquire $1$2; claim $2 $1 $1$2 minute+$2 -; run $2+0.01 - $1",   // the tick of a minute, from its claim on
	"meets":  "200 single Op=over; 5 single Op=$1 Replica=a Heard=6 End=$2",              // a single fault that hits a
	"order":  "$1 ordered Op=$2 Request=$3 Heard=$1 End=$1+60",
}

// do is what a verb says, which makes an event or changes what the next ones are about.
func (s *story) do(verb string, n func(i int) float64, a []string) *trace.Event {
	switch verb {
	case "of":
		s.job = strings.Replace(a[0], "key", key, 1)
	case "slot":
		s.job = entry.OfSlot(entry.Lock, int(n(0)), "lock")
	case "tries":
		s.Onces[key] = trace.Once{MaxTries: 1}
	case "zero": // a platform starts and ends replicas; all is well from the start for four hours
		s.Zero = &trace.Zero{Kind: trace.AsJob, Poll: 30 * time.Second, Start: 10 * time.Second, Lead: time.Minute, Stay: time.Minute}
		s.tell("of hourly; 30 healed End=14400; 600 handed Op=over Replica=a; 700 gone Replica=a; 700 gone Replica=b")
	case "alarm":
		s.Zero = &trace.Zero{Poll: 30 * time.Second, Start: 10 * time.Second, Lead: 30 * time.Second, Hold: time.Second}
	case "ticks":
		for t := n(0); t <= n(1); t += 10 {
			s.tell(fmt.Sprintf("tick a %s%v %v", s.job, t, t))
		}
	case "req":
		return s.request(n(0), a[1], a[2], a[3])
	case "claim":
		return s.write(n(0), a[1], "claim", a[2], func(r *store.Record) {
			r.Token++
			r.Run = store.Run{Tick: when(a[3]), Request: strings.Join(a[4:], ""), Attempt: 1, Status: store.Running, Lease: store.Seconds(lease)}
			i := slices.IndexFunc(r.History, func(o store.Outcome) bool { return o.Status == store.Succeeded && o.Request == "" })
			if s.previous = (time.Time{}); i >= 0 {
				s.previous = r.History[i].Tick
			}
		})
	case "run": // the function under the last claim
		r := s.saved[s.job]
		e := s.Add(trace.Event{Time: at(n(0)), What: trace.Ran, Replica: a[2], Job: s.job, Token: r.Token, Tick: r.Run.Tick,
			Request: r.Run.Request, Attempt: r.Run.Attempt, Try: 1, End: when(a[1]), Previous: s.previous})
		if a[1] != "" {
			e.Result = trace.Well
		}
		return e
	case "write": // perhaps under another definition
		return s.write(n(0), a[1], a[2], a[3], func(r *store.Record) { r.Definition.Spec = strings.Join(a[4:], "") })
	case "finish":
		return s.settle(n(0), a[1], "finish", a[2], store.Outcome{Status: store.Status(a[3])})
	case "miss": // one tick
		return s.settle(n(0), a[1], "settle", a[2], store.Outcome{Tick: at(n(3)), Status: store.Missed})
	case "range": // all ticks since the start, so many
		return s.settle(n(0), a[1], "settle", a[2], store.Outcome{From: at(0), Tick: at(n(3)), Count: int(n(4)), Status: store.Missed})
	default: // the spans are those of a backfill
		return s.Add(trace.Event{Time: at(number(verb)), What: trace.What(a[0]), Job: s.job, Spans: []store.Span{{From: at(-25), To: at(-10)}}})
	}
	return nil
}

// tell adds what a text says, and returns the last event. A word that is - is empty, and one in which _ is has a space there.
func (s *story) tell(text string) (e *trace.Event) {
	for command := range strings.SplitSeq(text, ";") {
		var words, sets []string
		for _, word := range strings.Fields(command) {
			if strings.Contains(word, "=") {
				sets = append(sets, word)
			} else {
				words = append(words, word)
			}
		}
		if all := strings.Fields(command); len(words) == 0 {
			continue
		} else if words[0] == "each" { // so many times, from a time on with steps
			for i := range int(number(all[1])) {
				t := fmt.Sprint(number(all[2]) + float64(i)*number(all[3]))
				s.tell(strings.NewReplacer("@", t, ",", ";").Replace(strings.Join(all[4:], " ")))
			}
			continue
		}
		word := func(i int) string { return words[min(i, len(words)-1)] }
		if macro := macros[words[0]]; macro != "" {
			e = s.tell(strings.NewReplacer("$1", word(1), "$2", word(2), "$3", word(3), "$4", word(4), "$5", word(5)).Replace(macro))
		} else {
			for i := range words {
				words[i] = plain(words[i])
			}
			e = s.do(words[0], func(i int) float64 { return number(word(1 + i)) }, words[1:])
		}
		for _, set := range sets {
			name, value, _ := strings.Cut(set, "=")
			assign(reflect.ValueOf(e).Elem(), strings.Split(name, "."), plain(value))
		}
		if e != nil && e.Record != nil && e.What == trace.Request {
			s.saved[e.Job] = *e.Record
		}
	}
	return e
}

// plain is a word without the signs that stand for others.
func plain(word string) string { return strings.ReplaceAll(strings.TrimSuffix(word, "-"), "_", " ") }

// number reads a sum of numbers, or the minute that it is in.
func number(text string) (sum float64) {
	if of, isMinute := strings.CutPrefix(text, "minute+"); isMinute {
		return float64(int(number(of)) / 60 * 60)
	}
	for part := range strings.SplitSeq(text, "+") {
		n, err := strconv.ParseFloat(part, 64)
		if err != nil {
			panic(err)
		}
		sum += n
	}
	return sum
}

// when is the time of a number, zero for none.
func when(text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	return at(number(text))
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
		v.Set(reflect.ValueOf(when(value)))
	case v.Kind() == reflect.String:
		v.SetString(value)
	case v.Kind() == reflect.Bool:
		v.SetBool(value == "true")
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(number(value) * float64(time.Second)))
	default:
		v.SetInt(int64(number(value)))
	}
}

// TestPlanted judges logs that violate one property each, and others that are nearly the same, and fine. What is judged where one
// thing happens at a time is judged alone.
func TestPlanted(t *testing.T) {
	shown := map[string]bool{}
	is := func(name string) func(property) bool { return func(p property) bool { return p.name == name } }
	for _, p := range planted {
		t.Run(p.property+"/"+p.name, func(t *testing.T) {
			shown[p.property] = true
			always := slices.ContainsFunc(properties, is(p.property))
			for _, with := range []string{p.bad, p.fine} {
				s := newStory()
				if slices.ContainsFunc(promises, is(p.property)) {
					s.tell("-99 single Op=over")
				} else if !always {
					s.tell("-50 healed")
				}
				s.tell(strings.ReplaceAll(p.text, "$", with))
				s.Sort()
				got, want := map[string][]string{}, []string(nil)
				if with == p.bad {
					want = []string{p.property}
				}
				for _, v := range Judge(&s.Log) {
					if always || v.Property == p.property {
						got[v.Property] = append(got[v.Property], v.String())
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
