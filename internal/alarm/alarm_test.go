package alarm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
	"github.com/soloist-go/soloist/store"
)

// A desk is a clock over a queue and notes in memory, in virtual time.
type desk struct {
	*alarm.Clock
	t     *testing.T
	queue *alarmtest.Queue
	store *local.Memory
	log   bytes.Buffer
	begin time.Time
}

// atDesk runs f in a bubble of virtual time.
func atDesk(t *testing.T, f func(d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{t: t, queue: &alarmtest.Queue{}, store: &local.Memory{}, begin: time.Now()}
		d.Clock = d.clock(0)
		f(d)
	})
}

// clock returns the clock of a replica whose time is off by some.
func (d *desk) clock(skew time.Duration) *alarm.Clock {
	return &alarm.Clock{App: "app", Queue: d.queue, Notes: d.store, Log: slog.New(slog.NewTextHandler(&d.log, nil)),
		Now: func() time.Time { return time.Now().Add(skew) }}
}

func (d *desk) set(due time.Duration) {
	d.t.Helper()
	if err := d.Set(d.t.Context(), d.begin.Add(due)); err != nil {
		d.t.Errorf("Set: %v", err)
	}
}

func (d *desk) handOver(due time.Duration, began time.Time) {
	d.t.Helper()
	if err := d.HandOver(d.t.Context(), d.begin.Add(due), began); err != nil {
		d.t.Errorf("HandOver: %v", err)
	}
}

// want checks when the messages in the queue become visible, and that the note names the first of those to come.
func (d *desk) want(visible ...time.Duration) {
	d.t.Helper()
	var got []time.Duration
	for _, m := range d.queue.All() {
		got = append(got, m.Visible.Sub(d.begin))
	}
	if fmt.Sprint(got) != fmt.Sprint(visible) {
		d.t.Errorf("messages are visible at %v, want %v", got, visible)
	}
	n, err := d.Pending(d.t.Context())
	if err != nil || len(visible) > 0 && !d.has(n) {
		d.t.Errorf("the note %+v names no message (%v)", n, err)
	}
}

func (d *desk) has(n alarm.Note) bool {
	for _, m := range d.queue.All() {
		if strings.Contains(string(m.Body), n.ID) && n.ID != "" {
			return true
		}
	}
	return false
}

func TestOneAlarmIsPending(t *testing.T) {
	atDesk(t, func(d *desk) {
		if n, err := d.Pending(d.t.Context()); err != nil || n != (alarm.Note{}) {
			t.Errorf("got %+v, %v", n, err)
		}
		d.want()
		d.set(2 * time.Hour)
		d.want(2*time.Hour - time.Minute)
		time.Sleep(time.Second / 3)
		d.set(2 * time.Hour)
		d.set(3 * time.Hour)
		d.want(2*time.Hour - time.Minute)
		d.set(time.Hour + time.Second/3)
		d.want(time.Hour - time.Minute + time.Second/3)
		if err := d.Set(d.t.Context(), time.Time{}); err != nil {
			t.Error(err)
		}
		d.want(time.Hour - time.Minute + time.Second/3)
		if got := fmt.Sprint(d.queue.Counts()); got != "map[delete:1 put:2]" {
			t.Errorf("calls: %s", got)
		}
		n, _ := d.Pending(d.t.Context())
		if !n.Tick.Equal(d.begin.Add(time.Hour + time.Second/3)) {
			t.Errorf("got %+v", n)
		}
	})
}

// A message is never visible later than the lead before its tick, and at most a second earlier.
func TestAlarmIsNotLate(t *testing.T) {
	atDesk(t, func(d *desk) {
		for i := range 50 {
			d.Lead = time.Duration(rand.IntN(int(3 * time.Minute)))
			due := time.Now().Add(time.Duration(rand.IntN(int(24 * time.Hour))))
			queue := &alarmtest.Queue{}
			c := d.clock(0)
			c.App, c.Queue, c.Lead = fmt.Sprint("app", i), queue, d.Lead
			if err := c.Set(d.t.Context(), due); err != nil {
				t.Fatal(err)
			}
			lead := d.Lead
			if lead == 0 {
				lead = alarm.DefaultLead
			}
			want := due.Add(-lead)
			if want.Before(time.Now()) {
				want = time.Now()
			}
			if early := want.Sub(queue.First()); early < 0 || early >= time.Second {
				t.Errorf("due %s, lead %s: visible %s early", due, d.Lead, early)
			}
		}
	})
}

// A tick that is due has a message that is visible at once; a process that dies at its start again and again leaves one.
func TestAlarmThatIsDueIsNotRepeated(t *testing.T) {
	atDesk(t, func(d *desk) {
		for range 20 {
			d.set(-time.Minute)
			time.Sleep(time.Second)
		}
		d.want(19 * time.Second)
		d.Lead = -1
		d.set(time.Hour)
		d.want(19*time.Second, time.Hour) // the visible one is left to the pass
	})
}

func TestAlarmFarAheadHops(t *testing.T) {
	atDesk(t, func(d *desk) {
		due, hops := 40*24*time.Hour, 0
		for at := time.Duration(0); at < due-time.Minute; hops++ {
			d.handOver(due, time.Now())
			d.handOver(due, time.Now())
			if len(d.queue.All()) == 0 {
				t.Fatal("nothing is pending")
			}
			at = d.queue.All()[len(d.queue.All())-1].Visible.Sub(d.begin)
			if at > time.Since(d.begin)+alarm.Longest {
				t.Fatalf("invisible until %s", at)
			}
			time.Sleep(at - time.Since(d.begin) + 10*time.Second)
		}
		if hops != 7 {
			t.Errorf("%d hops, want 7", hops)
		}
		d.handOver(41*24*time.Hour, time.Now())
		d.want(41*24*time.Hour - time.Minute)
	})
}

// The new message is put before the old one is deleted. One that was put since the pass began stays.
func TestHandOverPutsNewBeforeOld(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.set(time.Hour)
		time.Sleep(time.Hour - time.Minute + 10*time.Second)
		var order []string
		d.queue.Meet = func(c alarmtest.Call) alarmtest.Fate {
			order = append(order, c.Op)
			return alarmtest.Fate{}
		}
		began := time.Now()
		time.Sleep(3 * time.Second)
		if err := d.Ring(d.t.Context()); err != nil {
			t.Fatal(err)
		}
		order = nil
		d.handOver(2*time.Hour, began)
		if got := fmt.Sprint(order); got != "[put receive delete receive]" {
			t.Errorf("the calls were %s", got)
		}
		ring := time.Since(d.begin) + 5*time.Second // it is hidden for a moment
		d.want(ring, 2*time.Hour-time.Minute)
		time.Sleep(20 * time.Second)
		d.handOver(2*time.Hour, time.Now())
		d.want(2*time.Hour - time.Minute)
	})
}

func TestClearOfWhatIsNoAlarm(t *testing.T) {
	atDesk(t, func(d *desk) {
		time.Sleep(time.Hour)
		now := time.Now()
		old := now.Add(-10 * time.Minute)
		body := func(app string, schema int, at time.Time) string {
			b, _ := json.Marshal(map[string]any{"schema": schema, "app": app, "id": "x", "at": at, "tick": at})
			return string(b)
		}
		for text, left := range map[string]bool{
			"": false,
			"\x00\xff\nevil" + strings.Repeat("x", 1000): false,
			"[]": false, "null": false, "{}": false, `{"schema":"1"}`: false, `{"schema":1,"app":"app","at":"yesterday"}`: false,
			body("", 1, old):                      false,
			body("app", 0, old):                   false,
			body("app", 99, old):                  false, // of a newer program: the pass has done what is due
			body("app", 1, old):                   false, // of a job that is gone, or of this app before
			body("app", 1, time.Time{}):           false,
			body("app", 1, now.Add(time.Minute)):  true, // of a replica whose clock is fast
			body("app", 1, now.AddDate(10, 0, 0)): false,
			body("other", 1, old):                 true,
		} {
			d.queue.Add(text, old, old)
			n, err := d.Clear(d.t.Context(), now)
			if is := len(d.queue.All()) == 1; err != nil || is != left || (n == 0) != left {
				t.Errorf("%.60q: left %v, want %v; %d deleted, %v", text, is, left, n, err)
			}
			for _, m := range d.queue.All() {
				_ = d.queue.Delete(d.t.Context(), m.Receipt)
			}
		}
		log := d.log.String()
		if !strings.Contains(log, `\\x00\\xff\\nevilxxx`) || strings.Contains(log, strings.Repeat("x", 101)) || !strings.Contains(log, "SOLOIST_ALARM_QUEUE") {
			t.Errorf("the log has\n%s", log)
		}
	})
}

// Messages of another app are told once in a pass, and do not keep it going.
func TestClearLeavesOtherApps(t *testing.T) {
	atDesk(t, func(d *desk) {
		old := time.Now().Add(-time.Hour)
		for range 200 {
			d.queue.Add(`{"schema":1,"app":"other"}`, old, old)
		}
		d.queue.Add("mine", old, old)
		d.queue.Meet = func(alarmtest.Call) alarmtest.Fate { time.Sleep(time.Second); return alarmtest.Fate{} }
		n, err := d.Clear(d.t.Context(), time.Now())
		if took := time.Since(d.begin); took > 12*time.Second {
			t.Errorf("it took %s", took)
		}
		if n != 1 || err != nil || len(d.queue.All()) != 200 {
			t.Errorf("%d deleted, %d left, %v", n, len(d.queue.All()), err)
		}
		if n := strings.Count(d.log.String(), "another app"); n != 1 {
			t.Errorf("told %d times", n)
		}
	})
}

// Thousands of old messages are gone after a few passes, none of which takes the 20 s that the end of a pass has: nothing is
// wrong with that.
func TestClearOfThousands(t *testing.T) {
	atDesk(t, func(d *desk) {
		old := time.Now().Add(-time.Hour)
		for range 10_000 {
			d.queue.Add(`{"schema":1,"app":"app"}`, old, old)
		}
		d.queue.Meet = func(alarmtest.Call) alarmtest.Fate { time.Sleep(100 * time.Millisecond); return alarmtest.Fate{} }
		passes := 0
		for ; len(d.queue.All()) > 1 && passes < 20; passes++ {
			ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
			if err := d.HandOver(ctx, d.begin.Add(24*time.Hour), time.Now()); err != nil {
				t.Errorf("HandOver: %v", err)
			}
			cancel()
		}
		if passes != 7 {
			t.Errorf("%d passes, want 7", passes)
		}
		if late := d.queue.First().Sub(d.begin.Add(24*time.Hour - time.Minute)); len(d.queue.All()) != 1 || late < -time.Second || late > 100*time.Millisecond { // the call took so long
			t.Errorf("got the messages %+v", d.queue.All())
		}
	})
}

func TestQueueThatIsForbidden(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.queue.Add("old", time.Now().Add(-time.Hour), time.Now().Add(-time.Hour))
		d.queue.Meet = func(alarmtest.Call) alarmtest.Fate {
			return alarmtest.Fate{Err: fmt.Errorf("the role is missing: %w", fs.ErrPermission)}
		}
		for name, err := range map[string]error{
			"Set": d.Set(d.t.Context(), time.Now().Add(time.Hour)), "Ring": d.Ring(d.t.Context()),
			"HandOver": d.HandOver(d.t.Context(), time.Now().Add(time.Hour), time.Now()),
		} {
			if !errors.Is(err, fs.ErrPermission) || errors.Is(err, alarm.ErrPending) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n, err := d.Pending(d.t.Context()); err != nil || n != (alarm.Note{}) || !time.Now().Equal(d.begin) {
			t.Errorf("noted %+v, %v, after %s", n, err, time.Since(d.begin))
		}
		if got := fmt.Sprint(d.queue.Counts()); got != "map[put:3]" {
			t.Errorf("calls: %s", got)
		}
		if _, err := d.Clear(d.t.Context(), time.Now()); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Clear: %v", err)
		}
	})
}

// A call that fails is repeated. If the alarm cannot be put, the old message stays.
func TestPutThatFails(t *testing.T) {
	for name, tt := range map[string]struct {
		fails int
		done  bool
		left  int
	}{"once": {1, false, 1}, "without an answer": {1, true, 2}, "always": {9, false, 1}} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(d *desk) {
				d.queue.Add("old", time.Now().Add(-time.Hour), time.Now().Add(-time.Hour))
				d.queue.Meet = func(c alarmtest.Call) alarmtest.Fate {
					if c.Op == "put" && c.N <= tt.fails {
						return alarmtest.Fate{Err: alarmtest.ErrUnclear, Done: tt.done}
					}
					return alarmtest.Fate{}
				}
				err := d.HandOver(d.t.Context(), time.Now().Add(time.Hour), time.Now())
				if (err != nil) != (tt.fails > 3) || len(d.queue.All()) != tt.left {
					t.Errorf("got %v, and %d messages", err, len(d.queue.All()))
				}
				if has := string(d.queue.All()[0].Body) == "old"; has != (tt.fails > 3) {
					t.Errorf("the old message is there: %v", has)
				}
			})
		})
	}
}

// A put that is repeated counts from the clock at each try, so that the message does not come later than its note says.
func TestPutThatTakesLong(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.Lead = 10 * time.Second
		slow := func(c alarmtest.Call) alarmtest.Fate {
			time.Sleep(9 * time.Second)
			if c.N%3 != 0 {
				return alarmtest.Fate{Err: errors.New("503")}
			}
			return alarmtest.Fate{}
		}
		d.queue.Meet = slow
		d.set(time.Hour)
		n, err := d.Pending(d.t.Context())
		if late := d.queue.First().Sub(n.At); err != nil || late > 9*time.Second { // the last call took so long
			t.Errorf("visible %s after the note says, %v", late, err)
		}
		if d.queue.First().Sub(d.begin) > time.Hour {
			t.Errorf("visible after the tick")
		}
	})
}

// The same for one that is put off.
func TestPutOffThatTakesLong(t *testing.T) {
	atDesk(t, func(d *desk) {
		at := d.begin.Add(8 * time.Minute).Format(time.RFC3339Nano)
		d.queue.Add(fmt.Sprintf(`{"schema": 1, "app": "app", "id": "x", "at": %q, "tick": %q}`, at, at), d.begin, d.begin)
		puts := 0
		d.queue.Meet = func(c alarmtest.Call) alarmtest.Fate {
			if c.Op != "put" {
				return alarmtest.Fate{}
			}
			time.Sleep(3 * time.Second)
			if puts++; puts < 3 {
				return alarmtest.Fate{Err: errors.New("503")}
			}
			return alarmtest.Fate{}
		}
		if _, err := d.Clear(d.t.Context(), time.Now()); err != nil {
			t.Error(err)
		}
		if got := d.queue.First().Sub(d.begin); len(d.queue.All()) != 1 || got > 8*time.Minute+3*time.Second {
			t.Errorf("visible after %s, want 8m", got)
		}
	})
}

// A note that this program does not understand stays as it is, and the alarm is set all the same.
func TestNoteThatCannotBeUsed(t *testing.T) {
	for body, want := range map[string]string{
		"garbage":                  "delete it",
		"{}":                       "delete it",
		`{"schema":2,"app":"app"}`: "update the program",
		`{"schema":1,"app":"other","id":"x","at":"2000-01-01T00:00:00Z","tick":"2000-01-01T00:00:00Z"}`: `"other"`,
		`{"schema":1,"app":"app","id":"x","at":"0001-01-01T00:00:00Z"}`:                                 "delete it",
		strings.Repeat("x", store.MaxDocument):                                                          "delete it",
	} {
		atDesk(t, func(d *desk) {
			if _, err := d.store.WriteDocument(d.t.Context(), alarm.NoteName("app"), "", []byte(body)); err != nil {
				t.Fatal(err)
			}
			d.queue.Add("old", time.Now().Add(-time.Hour), time.Now().Add(-time.Hour))
			err := d.HandOver(d.t.Context(), d.begin.Add(time.Hour), time.Now())
			if !errors.Is(err, alarm.ErrPending) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "app/.alarm") {
				t.Errorf("%.40q: %v", body, err)
			}
			if all := d.queue.All(); len(all) != 1 || !all[0].Visible.Equal(d.begin.Add(59*time.Minute)) {
				t.Errorf("%.40q: the queue has %+v", body, all)
			}
			if doc, err := d.store.ReadDocument(d.t.Context(), alarm.NoteName("app"), ""); err != nil || string(doc.Body) != body {
				t.Errorf("%.40q: the note was changed to %.80q, %v", body, doc.Body, err)
			}
			if _, err := d.Pending(d.t.Context()); err == nil {
				t.Errorf("%.40q: Pending has no error", body)
			}
		})
	}
}

// A process that cannot use the note knows which message it has put itself. Once the note can be used, it names that one.
func TestAlarmWithoutNoteIsNotRepeated(t *testing.T) {
	atDesk(t, func(d *desk) {
		if _, err := d.store.WriteDocument(d.t.Context(), alarm.NoteName("app"), "", []byte("garbage")); err != nil {
			t.Fatal(err)
		}
		only := func(at time.Duration) {
			t.Helper()
			if all := d.queue.All(); len(all) != 1 || !all[0].Visible.Equal(d.begin.Add(at)) {
				t.Errorf("the queue has %+v", all)
			}
		}
		hands := func(due time.Duration) {
			t.Helper()
			if err := d.HandOver(d.t.Context(), d.begin.Add(due), time.Now()); !errors.Is(err, alarm.ErrPending) {
				t.Errorf("got %v", err)
			}
			only(due - time.Minute)
		}
		for range 5 {
			hands(4 * time.Hour)
			time.Sleep(5 * time.Minute)
		}
		hands(2 * time.Hour) // the later one is not needed then
		time.Sleep(2*time.Hour - time.Since(d.begin))
		hands(4 * time.Hour) // one that has come does not count
		doc, _ := d.store.ReadDocument(d.t.Context(), alarm.NoteName("app"), "")
		old := `{"schema":1,"app":"app","id":"x","at":"2000-01-01T00:00:00Z","tick":"2000-01-01T00:00:00Z"}`
		if _, err := d.store.WriteDocument(d.t.Context(), alarm.NoteName("app"), doc.ETag, []byte(old)); err != nil {
			t.Fatal(err)
		}
		d.set(4 * time.Hour)
		d.want(4*time.Hour - time.Minute)
		d.set(3 * time.Hour)
		d.want(3*time.Hour - time.Minute)
	})
}

// empty has somebody empty the queue.
func (d *desk) empty() {
	for _, m := range d.queue.All() {
		_ = d.queue.Delete(d.t.Context(), m.Receipt)
	}
}

// Who hands over goes, or looks again much later, so nothing may rest on a message that somebody has deleted. It is put again for
// its time, and the one before is deleted.
func TestHandOverPutsAgainWhatWasLost(t *testing.T) {
	for name, do := range map[string]func(d *desk, due time.Duration){
		"hand-over": func(d *desk, due time.Duration) { d.handOver(due, time.Now()) },
		"renewal": func(d *desk, due time.Duration) {
			if err := d.Renew(d.t.Context(), d.begin.Add(due)); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(d *desk) {
				d.set(6 * time.Hour)
				d.empty()
				for range 20 {
					time.Sleep(time.Minute + 300*time.Millisecond)
					do(d, 6*time.Hour)
					if n := len(d.queue.All()); n != 1 || d.begin.Add(6*time.Hour-time.Minute).Sub(d.queue.First()).Truncate(time.Second) != 0 {
						t.Fatalf("got the messages %+v", d.queue.All())
					}
					n, err := d.Pending(d.t.Context())
					if at := d.begin.Add(6*time.Hour - time.Minute); err != nil || !d.has(n) || !n.At.Equal(at) {
						t.Fatalf("the note is %+v, %v, want one for %s", n, err, at)
					}
				}
				do(d, 7*time.Hour) // somebody else has wanted a replica earlier
				if first := d.queue.First().Sub(d.begin).Round(time.Second); len(d.queue.All()) != 1 || first > 6*time.Hour-time.Minute {
					t.Errorf("got the messages %+v", d.queue.All())
				}
			})
		})
	}
}

// An app that gets another queue has its alarm in that one from the next pass on. The message in the queue before is left.
func TestNoteOfAnotherQueue(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.queue.Name = "https://a/before"
		d.set(6 * time.Hour)
		time.Sleep(time.Hour)
		before := d.queue
		after := &alarmtest.Queue{Name: "https://a/after"}
		d.queue, d.Clock.Queue = after, after
		for range 2 {
			d.set(6 * time.Hour)
			d.want(6*time.Hour - time.Minute)
		}
		if n := len(before.All()); n != 1 || fmt.Sprint(after.Counts()) != "map[put:1]" {
			t.Errorf("%d messages are left in the queue before", n)
		}
	})
}

// The note of an older program does not say which queue it is about. It does not suffice once, and its message is deleted.
func TestNoteOfOlderProgram(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.set(6 * time.Hour)
		d.queue.Name = "https://a/queue"
		for range 2 {
			d.set(6 * time.Hour)
			d.want(6*time.Hour - time.Minute)
		}
		if got := fmt.Sprint(d.queue.Counts()); got != "map[delete:1 put:2]" {
			t.Errorf("calls: %s", got)
		}
	})
}

// slowNotes keeps notes with the delays of a network, and fails some calls.
type slowNotes struct {
	*local.Memory
	mu   sync.Mutex
	dice *rand.Rand
	fail float64
}

func (s *slowNotes) roll() (wait time.Duration, lost, unheard bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(1+s.dice.IntN(100)) * time.Millisecond, s.dice.Float64() < s.fail, s.dice.Float64() < s.fail
}

func (s *slowNotes) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	wait, lost, _ := s.roll()
	time.Sleep(wait)
	if lost {
		return store.Document{}, errors.New("503")
	}
	return s.Memory.ReadDocument(ctx, name, etag)
}

func (s *slowNotes) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	wait, lost, unheard := s.roll()
	time.Sleep(wait)
	if lost {
		return store.Revision{}, errors.New("503")
	}
	r, err := s.Memory.WriteDocument(ctx, name, etag, body)
	time.Sleep(wait)
	if unheard {
		return store.Revision{}, errors.New("the answer was lost")
	}
	return r, err
}

// However many replicas set the alarm at once, a message is pending in time for each of them, and few are left.
func TestManySetAtOnce(t *testing.T) {
	for _, fail := range []float64{0, 0.1} {
		for seed := range uint64(20) {
			atDesk(t, func(d *desk) {
				d.Notes = &slowNotes{Memory: d.store, dice: rand.New(rand.NewPCG(seed, 1)), fail: fail}
				dice := rand.New(rand.NewPCG(seed, 2))
				first, failed := time.Hour, atomic.Int64{}
				var all sync.WaitGroup
				for range 40 {
					due := time.Hour - time.Duration(dice.IntN(5))*time.Minute
					first = min(first, due)
					all.Go(func() {
						if err := d.Set(d.t.Context(), d.begin.Add(due)); errors.Is(err, alarm.ErrPending) {
							failed.Add(1)
						} else if err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				got, n := d.queue.All(), int(failed.Load())
				if by := d.begin.Add(first - time.Minute); len(got) == 0 || got[0].Visible.After(by) {
					t.Errorf("seed %d: nothing is pending by %s: %v", seed, by, got)
				}
				if fail == 0 && (len(got) != 1 || n > 0) || len(got) > 1+2*n+8 {
					t.Errorf("seed %d: %d messages are left, %d without a note", seed, len(got), n)
				}
			})
		}
	}
}

// A fast clock wakes the app up too early, and loses nothing: the message is put again for its time.
func TestClocksThatAreOff(t *testing.T) {
	atDesk(t, func(d *desk) {
		fast := d.clock(5 * time.Minute)
		if err := fast.Set(d.t.Context(), d.begin.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got := d.queue.First().Sub(d.begin); got != 54*time.Minute {
			t.Errorf("visible after %s", got)
		}
		time.Sleep(55 * time.Minute)
		d.handOver(time.Hour, time.Now()) // by a right clock: the message is put again for its time
		d.want(59 * time.Minute)
		time.Sleep(5 * time.Minute)
		slow := d.clock(-3 * time.Minute)
		began := slow.Now()
		if err := slow.HandOver(d.t.Context(), d.begin.Add(2*time.Hour), began); err != nil {
			t.Error(err)
		}
		d.want(time.Hour + 2*time.Minute) // to it the old message is still to come, so it is put again
		time.Sleep(2*time.Minute + 10*time.Second)
		d.handOver(2*time.Hour, time.Now())
		d.want(2*time.Hour - time.Minute)
	})
}

// A process knows the store's time from its first answer on. One whose clock was fast until then does not take the alarm that
// it has just set for one that it has answered.
func TestClockThatIsCorrectedInPass(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.handOver(0, d.begin.Add(2*time.Hour)) // something is due at once
		if len(d.queue.All()) != 1 {
			t.Error("nothing is pending")
		}
	})
}

// A queue that shows a message early, and a writer whose clock is fast, do not have the platform start a replica again and
// again until the time has come.
func TestMessageThatIsEarly(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.set(time.Hour)
		n, err := d.Pending(d.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		body := d.queue.All()[0].Body
		_ = d.queue.Delete(d.t.Context(), n.Receipt)
		if _, err := d.queue.Put(d.t.Context(), body, 0); err != nil {
			t.Fatal(err)
		}
		for _, most := range []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute} { // the clock of the replica may be the one that is wrong
			time.Sleep(10 * time.Second)
			d.handOver(time.Hour, time.Now())
			if wait, left := time.Until(d.queue.First()), time.Until(n.At); wait > min(most, left) || wait < min(most, left)-2*time.Second {
				t.Errorf("visible %s later, want %s of the %s that are left", wait, most, left)
			}
			time.Sleep(time.Until(d.queue.First()))
		}
		if time.Since(n.At) < -2*time.Second {
			t.Errorf("the last time it is visible %s before its time", time.Until(n.At))
		}
	})
}

// Of several messages that are visible early, only the first to come, and the one on which other replicas rely, wake the app
// up before their times.
func TestManyMessagesThatAreEarly(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.set(8*time.Hour + time.Minute)
		n, err := d.Pending(d.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = d.queue.Delete(d.t.Context(), n.Receipt)
		for id, after := range map[string]int{"a": 7, "b": 5, "c": 4, "d": 6, n.ID: 8} {
			at := d.begin.Add(time.Duration(after) * time.Hour).Format(time.RFC3339Nano)
			body := fmt.Sprintf(`{"schema": 1, "app": "app", "id": %q, "at": %q, "tick": %q}`, id, at, at)
			if _, err := d.queue.Put(d.t.Context(), []byte(body), 0); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		if _, err := d.Clear(d.t.Context(), time.Now()); err != nil {
			t.Error(err)
		}
		var after []time.Duration
		for _, m := range d.queue.All() {
			after = append(after, m.Visible.Sub(d.begin).Round(time.Minute))
		}
		slices.Sort(after)
		if want := []time.Duration{10 * time.Minute, 10 * time.Minute, 5 * time.Hour, 6 * time.Hour, 7 * time.Hour}; !slices.Equal(after, want) {
			t.Errorf("they come after %s, want %s", after, want)
		}
	})
}

// A platform that receives messages itself deletes the one that it has woken the app up for. A pass that is over at
// once, on a replica whose clock is a second behind, does not take it for one that is still to come.
func TestAlarmThatHasJustCome(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.set(30 * 24 * time.Hour)
		time.Sleep(alarm.Longest + 100*time.Millisecond)
		got, err := d.queue.Receive(d.t.Context(), 1, time.Minute)
		if err != nil || len(got) != 1 {
			t.Fatalf("got %v, %v", got, err)
		}
		if err := d.clock(-time.Second).Set(d.t.Context(), d.begin.Add(30*24*time.Hour)); err != nil {
			t.Error(err)
		}
		_ = d.queue.Delete(d.t.Context(), got[0].Receipt)
		if len(d.queue.All()) != 1 {
			t.Error("nothing is pending")
		}
	})
}

func TestSetWhoseContextEnds(t *testing.T) {
	atDesk(t, func(d *desk) {
		ctx, cancel := context.WithCancel(d.t.Context())
		cancel()
		if err := d.Set(ctx, time.Now().Add(time.Hour)); !errors.Is(err, context.Canceled) || !time.Now().Equal(d.begin) {
			t.Errorf("got %v after %s", err, time.Since(d.begin))
		}
	})
}
