package ontime_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/ontime"
)

func TestNaps(t *testing.T) {
	for left, want := range map[time.Duration][]time.Duration{
		time.Minute:            {30 * time.Second, 29500 * time.Millisecond, 480 * time.Millisecond, 20 * time.Millisecond},
		time.Second:            {500 * time.Millisecond, 480 * time.Millisecond, 20 * time.Millisecond},
		501 * time.Millisecond: {time.Millisecond, 480 * time.Millisecond, 20 * time.Millisecond},
		21 * time.Millisecond:  {time.Millisecond, 20 * time.Millisecond},
		20 * time.Millisecond:  {20 * time.Millisecond},
		time.Nanosecond:        {time.Nanosecond},
		0:                      nil,
		-time.Hour:             nil,
	} {
		var got []time.Duration
		for rest := left; len(got) < 10; {
			nap := ontime.Nap(rest)
			if nap == 0 {
				break
			}
			got, rest = append(got, nap), rest-nap
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is slept in %s, want %s", left, got, want)
		}
	}
}

// A bell notes when it rings.
type bell struct {
	ontime.Alarm
	mu    sync.Mutex
	rings []time.Duration
}

func newBell() *bell {
	b, begin := &bell{}, time.Now()
	b.Ring = func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.rings = append(b.rings, time.Since(begin))
	}
	return b
}

// heard returns when it has rung.
func (b *bell) heard() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.rings)
}

// run runs an agenda until the test calls stop, which returns after Run has.
func run(g *ontime.Agenda) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx)
	}()
	return func() { cancel(); <-done }
}

// Thousands of alarms ring on time, in any order in which they are set, and take no goroutine
// while they wait.
func TestAlarmsRingOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		g, before := ontime.NewAgenda(), runtime.NumGoroutine()
		stop := run(g)
		var bells [n]*bell
		for i := range bells {
			bells[i] = newBell()
			g.Set(&bells[i].Alarm, time.Duration(i*7919%n)*time.Second+1)
		}
		synctest.Wait()
		if got := runtime.NumGoroutine() - before; got > 1 {
			t.Errorf("%d goroutines wait, want one", got)
		}
		time.Sleep(n * time.Second)
		stop()
		for i, b := range bells {
			if want := time.Duration(i*7919%n)*time.Second + 1; !slices.Equal(b.heard(), []time.Duration{want}) {
				t.Errorf("alarm %d has rung at %s, want %s", i, b.heard(), want)
			}
		}
	})
}

// An alarm that takes long keeps no other, and may be set again when it is over.
func TestLongRingKeepsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ontime.NewAgenda()
		stop := run(g)
		long, other := newBell(), newBell()
		note := long.Ring
		long.Ring = func() {
			note()
			time.Sleep(time.Hour)
			g.Set(&long.Alarm, time.Minute)
		}
		g.Set(&long.Alarm, time.Second)
		g.Set(&other.Alarm, 2*time.Second)
		time.Sleep(3 * time.Second)
		if want := []time.Duration{2 * time.Second}; !slices.Equal(other.heard(), want) {
			t.Errorf("the other has rung at %s, want %s", other.heard(), want)
		}
		time.Sleep(2 * time.Hour)
		stop() // waits for the second ring, and makes no third one
		if want := []time.Duration{time.Second, time.Hour + time.Minute + time.Second}; !slices.Equal(long.heard(), want) {
			t.Errorf("it has rung at %s, want %s", long.heard(), want)
		}
	})
}

// Whoever hurries an alarm need not know whether it waits, rings, or is not set yet. It rings
// once more, and at once.
func TestHurriedAlarmRingsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ontime.NewAgenda()
		stop := run(g)
		defer stop()
		waits, early, rings, others := newBell(), newBell(), newBell(), newBell()
		early.Hurry()
		early.Hurry()
		g.Set(&others.Alarm, 30*time.Minute) // would ring before those that are hurried
		g.Set(&waits.Alarm, time.Hour)
		g.Set(&early.Alarm, time.Hour)
		time.Sleep(time.Minute)
		waits.Hurry()
		time.Sleep(time.Minute)
		note := rings.Ring
		rings.Ring = func() {
			if note(); len(rings.heard()) == 1 {
				time.Sleep(time.Second)
				g.Set(&rings.Alarm, time.Hour)
			}
		}
		g.Set(&rings.Alarm, 0)
		synctest.Wait()
		rings.Hurry()
		time.Sleep(2 * time.Hour)
		for name, c := range map[string]struct{ got, want []time.Duration }{
			"of others":       {others.heard(), []time.Duration{30 * time.Minute}},
			"that waits":      {waits.heard(), []time.Duration{time.Minute}},
			"that is not set": {early.heard(), []time.Duration{0}},
			"that rings":      {rings.heard(), []time.Duration{2 * time.Minute, 2*time.Minute + time.Second}},
		} {
			if !slices.Equal(c.got, c.want) {
				t.Errorf("an alarm %s has rung at %s, want %s", name, c.got, c.want)
			}
		}
	})
}

// The end of the context rings each alarm that waits a last time, so that what is set aside for
// it can be given back. None is left behind in the agenda.
func TestEndRingsAlarmsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ontime.NewAgenda()
		stop := run(g)
		waits, late := newBell(), newBell()
		g.Set(&waits.Alarm, time.Hour)
		time.Sleep(time.Second)
		stop()
		if want := []time.Duration{time.Second}; !slices.Equal(waits.heard(), want) {
			t.Errorf("it has rung at %s, want %s", waits.heard(), want)
		}
		if g.Set(&late.Alarm, 0) {
			t.Error("an alarm can be set after the end")
		}
		late.Hurry()
		synctest.Wait()
		if late.heard() != nil {
			t.Errorf("it has rung at %s after the end", late.heard())
		}
		next := ontime.NewAgenda() // an alarm may move to another agenda
		end := run(next)
		next.Set(&waits.Alarm, time.Minute)
		waits.Hurry()
		synctest.Wait()
		if end(); len(waits.heard()) != 2 {
			t.Errorf("it has rung at %s, want once more in another agenda", waits.heard())
		}
	})
}

// Alarms are set, hurried and ended by many goroutines at once.
func TestAgendaIsForManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ontime.NewAgenda()
		stop := run(g)
		var all sync.WaitGroup
		var bells [20]*bell
		for i := range bells {
			b := newBell()
			note := b.Ring
			b.Ring = func() {
				note()
				g.Set(&b.Alarm, time.Duration(i+1)*time.Millisecond)
			}
			bells[i] = b
			g.Set(&b.Alarm, 0)
			all.Go(func() {
				for range 100 {
					time.Sleep(time.Duration(i) * time.Microsecond)
					b.Hurry()
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		stop()
		for i, b := range bells {
			if len(b.heard()) < 50 {
				t.Errorf("alarm %d has rung %d times: %s", i, len(b.heard()), b.heard())
			}
		}
	})
}
