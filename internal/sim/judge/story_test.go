package judge

import (
	"cmp"
	_ "embed"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/sim/trace"
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
	saved map[string]record.Record // by entry
}

// entries are the names of those that are of no job: work that is done once, and the slots of a lock.
var entries = map[string]string{"key": entry.OfKey("migrate", "v1"), "tries": entry.OfKey("migrate", "v2"),
	"slot0": entry.OfSlot(entry.Lock, 0, "lock"), "slot1": entry.OfSlot(entry.Lock, 1, "lock")}

// newStory has jobs that are due every ten seconds, some that are due each minute, singletons, shards and a group.
func newStory(text string) *story {
	s := &story{job: "job", saved: map[string]record.Record{}, Log: trace.Log{Fleet: map[string][]trace.Definition{},
		Around: strings.Contains(text, "Previous"), Locks: map[string]trace.Lock{"lock": {Slots: 2, Lease: lease}},
		Onces: map[string]trace.Once{entries["key"]: {Lease: lease}, entries["tries"]: {Lease: lease, MaxTries: 1}}}}
	often, work := 10*time.Second, trace.Definition{Every: time.Minute, Job: soloist.Job{Interrupted: soloist.Rerun, HeartbeatTimeout: 12 * time.Second}}
	prompt, grouped := work, work
	prompt.Late.Start, grouped.Group, grouped.Slots = often, "group", 1
	for name, d := range map[string]trace.Definition{
		"job": {Every: often}, "rerun": {Every: often, Job: soloist.Job{Interrupted: soloist.Rerun}}, "replace": {Every: often, Job: soloist.Job{Overlap: soloist.Replace}},
		"after": {Every: often, Follows: "job"}, "any": {Every: often, Follows: "job", Job: soloist.Job{After: soloist.After{Any: true}}},
		"g1": {Every: often, Job: soloist.Job{Group: "g"}, Slots: 1}, "g2": {Every: often, Job: soloist.Job{Group: "g"}, Slots: 1},
		"hourly": {Every: time.Hour}, "work": work, "prompt": prompt, "grouped": grouped,
		"one": {}, "s-0": {Whole: "s", Job: soloist.Job{Shards: 2}}, "s-1": {Whole: "s", Shard: 1, Job: soloist.Job{Shards: 2}},
	} {
		d.Name, d.Schedule, d.Lease = name, d.Every.String(), lease
		s.Fleet["a"], s.Fleet["b"] = append(s.Fleet["a"], d), append(s.Fleet["b"], d)
	}
	s.Fleet["v"] = []trace.Definition{{Every: 7 * time.Minute, Job: soloist.Job{Name: "work", Lease: lease}}} // of an aborted deploy
	s.tell("-100 up Replica=a; -100 up Replica=b; " + text)
	s.Sort()
	return s
}

func (s *story) request(t float64, replica, op, id string) *trace.Event {
	return s.Add(trace.Event{Time: at(t), What: trace.Request, Replica: replica, Job: s.job, Op: op, Lease: id, Match: true, Status: 200,
		Span: map[string]time.Duration{"acquire": lease}[op], Sent: at(t - 0.05), Heard: at(t + 0.05)})
}

// write changes the record, which the first write makes.
func (s *story) write(t float64, replica, op, id string, change func(r *record.Record)) *trace.Event {
	if _, ok := s.saved[s.job]; !ok && op != "create" {
		s.saved[s.job] = record.Record{Token: 100, Watermark: at(0), Run: record.Run{Status: record.Idle}}
		s.write(-90, "a", "create", "", func(*record.Record) {})
	}
	r := s.saved[s.job]
	change(&r)
	q := s.request(t, replica, op, id)
	q.Record = &r
	return q
}

//go:embed testdata/planted.txt
var planted string

// macros are the commands that stand for others, by their verb.
var macros = map[string]string{}

// logs are the planted ones, a line each. It also reads the macros.
func logs() (all []string) {
	for line := range strings.Lines(strings.ReplaceAll(planted, "\n\t", " ")) {
		verb, text, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "let "), ": ")
		if strings.HasPrefix(line, "let ") {
			macros[verb] = text
		} else if text != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all
}

// do is what a verb says, which makes an event or changes what the next ones are about.
func (s *story) do(verb string, n func(i int) float64, a []string) *trace.Event {
	switch verb {
	case "of":
		s.job = cmp.Or(entries[a[0]], a[0])
	case "scaled": // a platform starts and ends replicas
		s.Zero = &trace.Zero{Kind: trace.AsJob, Poll: 30 * time.Second, Start: 10 * time.Second, Lead: 30 * time.Second,
			Stay: time.Minute, Hold: time.Second}
	case "req":
		return s.request(n(0), a[1], a[2], a[3])
	case "claim":
		return s.write(n(0), a[1], "claim", a[2], func(r *record.Record) {
			r.Token++
			r.Run = record.Run{Tick: when(a[3]), Request: a[4], Attempt: 1, Status: event.Running, Lease: record.Seconds(lease)}
		})
	case "run": // the function under the last claim
		r, result := s.saved[s.job], map[bool]trace.Result{true: trace.Well}
		return s.Add(trace.Event{Time: at(n(0)), What: trace.Ran, Replica: a[2], Job: s.job, Token: r.Token, Tick: r.Run.Tick,
			Request: r.Run.Request, Attempt: r.Run.Attempt, Try: 1, End: when(a[1]), Result: result[a[1] != ""]})
	case "write": // perhaps under another definition
		return s.write(n(0), a[1], a[2], a[3], func(r *record.Record) { r.Definition.Spec = a[4] })
	case "outcome": // of a tick, of a range, or of the run
		return s.write(n(0), a[1], a[2], a[3], func(r *record.Record) {
			o := event.Outcome{Status: event.Status(a[4]), Tick: when(a[5]), From: when(a[6]), Count: int(n(7))}
			if a[2] == "finish" {
				o.Tick, o.Request, o.Token, o.Attempt, r.Run.Status = r.Run.Tick, r.Run.Request, r.Token, r.Run.Attempt, o.Status
			}
			if r.History = append([]event.Outcome{o}, r.History...); o.Request == "" {
				r.Watermark = o.Tick
			}
		})
	default: // the spans are those of a backfill
		return s.Add(trace.Event{Time: at(number(verb)), What: trace.What(a[0]), Job: s.job, Record: &record.Record{},
			Spans: []record.Span{{From: at(-25), To: at(-10)}}})
	}
	return nil
}

// tell adds what a text says, and returns the last event. A word that is - is empty, and one in which _ is has a space there.
func (s *story) tell(text string) (e *trace.Event) {
	for command := range strings.SplitSeq(text, ";") {
		all := strings.Fields(command)
		words := slices.DeleteFunc(slices.Clone(all), func(word string) bool { return strings.Contains(word, "=") })
		if len(all) == 0 {
			continue
		}
		word := func(i int) string { return words[min(i, len(words)-1)] }
		if words[0] == "each" { // so many times, from a time on with steps
			for i := range int(number(word(1))) {
				s.tell(strings.ReplaceAll(strings.Join(all[4:], " "), "@", fmt.Sprint(number(word(2))+float64(i)*number(word(3)))))
			}
			continue
		} else if macro := macros[words[0]]; macro != "" {
			e = s.tell(strings.NewReplacer("$1", word(1), "$2", word(2), "$3", word(3), "$4", word(4), "$5", word(5)).Replace(macro))
		} else {
			for i := range words {
				words[i] = plain(words[i])
			}
			e = s.do(words[0], func(i int) float64 { return number(word(1 + i)) }, append(words[1:], ""))
		}
		for _, set := range all {
			if name, value, ok := strings.Cut(set, "="); ok {
				assign(reflect.ValueOf(e), strings.Split(name, "."), plain(value))
			}
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
func when(text string) (t time.Time) {
	if text != "" {
		t = at(number(text))
	}
	return t
}

// assign sets a field, with the fields of a structure that it is in. Times are seconds.
func assign(v reflect.Value, path []string, value string) {
	switch v = reflect.Indirect(v); {
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(path[0]).Convert(v.Type().Key()), reflect.ValueOf(int64(number(value))))
	case len(path) > 0:
		assign(v.FieldByName(path[0]), path[1:], value)
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(when(value)))
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(number(value) * float64(time.Second)))
	case v.Kind() == reflect.String:
		v.SetString(value)
	case v.Kind() == reflect.Bool:
		v.SetBool(value == "true")
	default:
		v.SetInt(int64(number(value)))
	}
}

var brackets = regexp.MustCompile(`\[[^]]*\]`)

// TestPlanted judges logs that violate one property each, and others that are nearly the same, and fine. What is judged where one
// thing happens at a time is judged alone.
func TestPlanted(t *testing.T) {
	shown := map[string]bool{}
	for _, line := range logs() {
		head, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		name, _, _ := strings.Cut(head, ",")
		shown[name] = true
		always := slices.ContainsFunc(properties, func(p property) bool { return p.name == name })
		if !always {
			text = "-99 single Op=run; -50 healed; " + text
		}
		t.Run(head, func(t *testing.T) {
			last := strings.Count(brackets.FindString(text), "|")
			for i := range last + 1 {
				log := brackets.ReplaceAllStringFunc(text, func(s string) string { return strings.Split(strings.Trim(s, "[]"), "|")[i] })
				var got []string
				for _, v := range Judge(&newStory(log).Log) {
					if always || v.Property == name {
						got = append(got, v.Property)
						t.Log(v)
					}
				}
				if want := []string{name}[:min(1, last-i)]; !slices.Equal(slices.Compact(got), want) {
					t.Errorf("%s: got %v, want %v alone", log, got, want)
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
