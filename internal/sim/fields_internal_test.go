package sim

import (
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/fields"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// notDrawn are the fields that are the same in each seed, or that no seed can
// draw. docs/correctness.md says why.
var notDrawn = []string{"Job.Do", "Job.Name", "Singleton.Do", "Singleton.Name",
	"Scheduler.App", "Scheduler.Store", "Scheduler.Replica", "Scheduler.Logger", "Scheduler.Now", "Scheduler.Elapsed", "Scheduler.Overrun", "Scheduler.Events", "Scheduler.Alone",
	"Lock.Store", "Lock.App", "Lock.Replica", "Lock.Logger", "Lock.Overrun",
	"Once.Do", "Once.Retry.PauseAfter", "Once.Store", "Once.App", "Once.Replica", "Once.Logger", "Once.Overrun"}

// fieldsOf collects the values of the exported fields of a struct, and of its groups.
func fieldsOf(values map[string]map[string]bool, kind string, of any) {
	for field, v := range fields.Of(of) {
		name, text := kind+"."+field, fmt.Sprint(v)
		switch v.Kind() {
		case reflect.Func, reflect.Pointer, reflect.Interface:
			text = fmt.Sprint(v.IsNil())
		case reflect.Slice:
			text = fmt.Sprint(v.Len())
		}
		if values[name] == nil {
			values[name] = map[string]bool{}
		}
		values[name][text] = true
	}
}

// Each field that a program can set is drawn by the seeds, or is said not to be.
func TestEachFieldIsDrawnOrListed(t *testing.T) {
	values := map[string]map[string]bool{}
	c := &Cluster{log: &trace.Log{}}
	m := c.machine("r", 0)
	for seed := uint64(1); seed <= 100; seed++ {
		program := draw.Program(seed)
		for version := range 3 {
			for i := range program {
				if d := &program[i]; d.Schedule == "" {
					fieldsOf(values, "Singleton", c.singleton(m, d))
				} else {
					fieldsOf(values, "Job", c.job(m, d))
				}
			}
			program = draw.Next(program, draw.New(seed, version, "fields"))
		}
		s := &soloist.Scheduler{Jobs: make([]soloist.Job, len(program)), Singletons: make([]soloist.Singleton, seed%2), Grace: draw.Grace(draw.New(seed, 0, "grace")), Groups: draw.GroupsOf(program),
			Overrun: func(string, error) {}, Events: m.Emitted, Logger: slog.New(slog.DiscardHandler)}
		fieldsOf(values, "Scheduler", s)
		for _, p := range draw.Locks(seed) {
			fieldsOf(values, "Lock", &soloist.Lock{Name: p.Name, Slots: p.Slots, Lease: p.Lease})
		}
		for i, p := range draw.Onces(seed) {
			fieldsOf(values, "Once", &soloist.Once{Name: p.Name, Key: fmt.Sprint("v", i), Lease: p.Lease, Retry: p.Retry})
		}
	}
	docs, err := os.ReadFile("../../docs/correctness.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, all := range values {
		listed := strings.Contains(strings.Join(notDrawn, " ")+" ", name+" ")
		_, field, _ := strings.Cut(name, ".")
		switch {
		case len(all) < 2 && !listed:
			t.Errorf("%s is %v in each seed: draw it, or list it", name, all)
		case listed && !strings.Contains(string(docs), "`"+field+"`"):
			t.Errorf("docs/correctness.md does not say why %s is not drawn", name)
		}
	}
}
