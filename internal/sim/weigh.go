package sim

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// hurry saves ten times a second for a while, as a leader with much to keep does.
func (w *worker) hurry(ctx context.Context) {
	end := time.Now().Add(w.roll.between(time.Second, 20*time.Second))
	for n := 0; time.Now().Before(end) && w.rough != w.c.calm(); n++ {
		if w.beat(w.run.Save(ctx, "hurry "+strconv.Itoa(n))) != nil || !w.sleep(ctx, 100*time.Millisecond) || ctx.Err() != nil {
			return
		}
	}
}

// Weigh notes how much memory is in use when a run has saved so often. The log of
// the simulation is dropped before, so nothing grows but what the program keeps.
func (s *Scene) Weigh(saves int) {
	l := s.w.c.log
	l.edit(func() {
		l.Events = slices.DeleteFunc(l.Events, func(e *Event) bool { return e.What != Weighed && e.What != Up })
		l.Events = slices.Clone(l.Events)
	})
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l.add(Event{What: Weighed, Replica: s.w.machine.name, Job: s.w.Name, Token: s.Token, Saves: saves, Size: int64(m.HeapAlloc)})
}

// memory: what a replica keeps does not grow with the saves of a run, as long as it
// goes on.
func memory(l *Log, bad report) {
	const most = 20 // bytes a save, since the heap is not the same twice
	for _, job := range l.index.jobs {
		first := map[int64]*Event{}
		for _, e := range l.of(job, Weighed) {
			f := first[e.Token]
			if f == nil {
				first[e.Token] = e
			} else if saves := int64(e.Saves - f.Saves); saves > 0 && e.Size-f.Size > most*saves {
				bad(e.Time, "%s uses %d bytes more after %d saves of one run of %s", e.Replica, e.Size-f.Size, saves, job)
			}
		}
	}
}
