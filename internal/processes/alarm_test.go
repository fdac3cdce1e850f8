//go:build unix

package processes

import (
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// alarmed is a program of one job that alarms wake up. It does not return.
func (o order) alarmed() {
	p := host.Program{Work: []soloist.Work{soloist.Job{Name: "work", Schedule: o.Schedule, Lease: lease, Do: o.run}}, Args: []string{}}
	if o.Program == passes {
		p.Args = []string{"tick"}
	}
	p.Main()
}

// newAlarmed makes a fleet with a queue of its own, and that queue.
func newAlarmed(t *testing.T, o order, lead, stay string) (*fleet, *azure.Queue) {
	t.Helper()
	f := newFleet(t, o)
	f.Env = append(f.Env, "SOLOIST_ALARM=queue", "SOLOIST_ALARM_QUEUE="+f.storage.Container, "SOLOIST_ALARM_LEAD="+lead, "SOLOIST_STAY="+stay)
	q, err := azure.OpenQueue(azure.Config{ConnectionString: f.storage.Setting}, f.storage.Container)
	if err != nil {
		t.Fatal(err)
	}
	return f, q
}

// pending is the alarm that is noted. A busy machine takes seconds until a replica has set its first one.
func (f *fleet) pending() (note alarm.Note) {
	f.t.Helper()
	proctest.Poll(f.t, "the note of an alarm", patience, func() bool {
		d, err := f.storage.Store.(store.Documenter).ReadDocument(f.t.Context(), alarm.NoteName("e2e"), "")
		return err == nil && json.Unmarshal(d.Body, &note) == nil
	})
	return note
}

// visible counts the messages that a platform would see now.
func visible(t *testing.T, q *azure.Queue) int {
	t.Helper()
	n, err := q.Visible(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wantAlarm wants a message of a process that was gone at a time, which becomes visible no later than the lead before the next
// tick of every.
func (f *fleet) wantAlarm(q *azure.Queue, lead, every time.Duration, gone time.Time) {
	f.t.Helper()
	n, note := visible(f.t, q), f.pending()
	if n != 0 && time.Now().Before(note.At) {
		f.t.Errorf("%d messages are visible, and nothing is to be done before %s", n, note.At)
	}
	next := gone.UTC().Truncate(every).Add(every)
	if late := next.Add(-every); note.Tick.Equal(late) && gone.Sub(late) < busy {
		next = late // it came due while the process ended
	}
	if !note.Tick.Equal(next) || note.At.After(next.Add(-lead)) {
		f.t.Errorf("got the alarm %+v, want it %s before %s", note, lead, next)
	}
	time.Sleep(time.Until(note.At))
	f.awaitVisible(q)
	most := 1
	if !*judge {
		most = 2 // a busy machine may leave one message too many, which wakes the app up once more
	}
	if n := visible(f.t, q); n < 1 || n > most {
		f.t.Errorf("%d messages are visible for the tick of %s, want at most %d", n, next, most)
	}
}

// awaitVisible waits for a message. The service rounds to seconds, and counts from when it has got to the call.
func (f *fleet) awaitVisible(q *azure.Queue) {
	f.t.Helper()
	proctest.Poll(f.t, "a message", patience, func() bool {
		time.Sleep(100 * time.Millisecond)
		return visible(f.t, q) > 0
	})
}

// serve runs the ticks of its stay, ends by itself with code 0, and leaves one alarm for the next tick.
func TestServeEndsByItselfWithAnAlarm(t *testing.T) {
	t.Parallel()
	f, q := newAlarmed(t, order{Program: serves, Schedule: "@every 20s"}, "2s", "8s")
	f.start("a", 0)
	begin := time.Now()
	at, code := f.exit("a")
	if code != 0 {
		t.Errorf("it ended with code %d", code)
	}
	if len(f.ticks()) > 2 {
		t.Errorf("it ran %v", f.ticks())
	}
	t.Logf("up for %s", ms(at.Sub(begin)))
	f.wantAlarm(q, 2*time.Second, 20*time.Second, at)
}

// tick waits for the ticks that are due within its stay until half of its time is over, and leaves one alarm.
func TestTickWaitsForTicksOfItsStay(t *testing.T) {
	t.Parallel()
	f, q := newAlarmed(t, order{Program: passes, Schedule: "@every 10s"}, "1s", "25s")
	f.Env = append(f.Env, "SOLOIST_TICK_TIMEOUT=60s") // half of it is longer than a busy machine takes for the first pass, and a tick
	f.start("a", 0)
	at, code := f.exit("a")
	if n := len(f.ticks()); code != 0 || n < 1 || n > 6 {
		t.Errorf("it ended with code %d after %d ticks", code, n)
	}
	f.wantAlarm(q, time.Second, 10*time.Second, at)
}

// A process that is killed under a run leaves a message that is visible, so the platform starts another one. That one
// settles the run when the lease is over, and leaves one alarm.
func TestKilledProcessLeavesAnAlarm(t *testing.T) {
	t.Parallel()
	f, q := newAlarmed(t, order{Program: serves, Schedule: "@every 30s", Takes: time.Hour}, "2s", "40s")
	f.start("a", 0)
	run := f.await("a run", started("a"))
	note := f.pending()
	f.signal("a", syscall.SIGKILL)
	<-f.Replica("a").Gone()
	if latest := time.Now().Add(lease); note.At.After(latest) {
		t.Errorf("the alarm comes at %s, and the lease of the run ends by %s", note.At, latest)
	}
	time.Sleep(time.Until(note.At)) // it was set for the tick, or on a busy machine for the lease's end
	f.awaitVisible(q)
	if n := visible(t, q); n < 1 || n > 2 {
		t.Fatalf("%d messages are visible after a kill under the run of %s, want one or two", n, run.Tick)
	}
	f.order.Program, f.order.Takes = passes, 0
	f.Env = append(f.Env, "SOLOIST_TICK_TIMEOUT=2m")
	f.start("b", 0)
	if _, code := f.exit("b"); code != 0 {
		t.Errorf("the next process ended with code %d", code)
	}
	if r := f.record(); len(r.History) == 0 || r.Run.Tick.Equal(run.Tick) && r.Run.Replica == "a" {
		t.Errorf("the run of the dead process is not settled: %+v", r)
	}
	n := visible(t, q)
	if note = f.pending(); n > 0 && time.Now().Before(note.At) {
		t.Errorf("%d messages are left", n)
	}
	if !note.At.After(time.Now().Add(-busy)) {
		t.Errorf("no alarm is pending: %+v", note)
	}
}
