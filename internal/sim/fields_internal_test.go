package sim

import (
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// notDrawn are the fields that are the same in each seed, or that no seed can
// draw. docs/correctness.md says why.
var notDrawn = []string{"Job.Do", "Job.Name", "Singleton.Do", "Singleton.Name",
	"Scheduler.App", "Scheduler.Store", "Scheduler.Replica", "Scheduler.Logger", "Scheduler.Now", "Scheduler.Elapsed", "Scheduler.Overrun", "Scheduler.Events", "Scheduler.Alone",
	"Lock.Store", "Lock.App", "Lock.Replica", "Lock.Logger", "Lock.Overrun",
	"Once.Do", "Once.Store", "Once.App", "Once.Replica", "Once.Logger", "Once.Overrun"}

// fieldsOf collects the values of the exported fields of a struct.
func fieldsOf(values map[string]map[string]bool, kind string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		name, text := kind+"."+f.Name, ""
		switch v.Field(i).Kind() {
		case reflect.Func, reflect.Pointer, reflect.Interface:
			text = fmt.Sprint(v.Field(i).IsNil())
		case reflect.Slice:
			text = fmt.Sprint(v.Field(i).Len())
		default:
			text = fmt.Sprint(v.Field(i).Interface())
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
					fieldsOf(values, "Singleton", reflect.ValueOf(c.singleton(m, d)))
				} else {
					fieldsOf(values, "Job", reflect.ValueOf(c.job(m, d)))
				}
			}
			program = draw.Next(program, draw.New(seed, version, "fields"))
		}
		s := &soloist.Scheduler{Jobs: make([]soloist.Job, len(program)), Singletons: make([]soloist.Singleton, seed%2), Grace: draw.Grace(draw.New(seed, 0, "grace")), Groups: draw.GroupsOf(program),
			Overrun: func(string, error) {}, Events: m.Emitted, Logger: slog.New(slog.DiscardHandler)}
		fieldsOf(values, "Scheduler", reflect.ValueOf(s).Elem())
		for _, p := range draw.Locks(seed) {
			fieldsOf(values, "Lock", reflect.ValueOf(&soloist.Lock{Name: p.Name, Slots: p.Slots, Lease: p.Lease}).Elem())
		}
		for i, p := range draw.Onces(seed) {
			fieldsOf(values, "Once", reflect.ValueOf(&soloist.Once{Name: p.Name, Key: fmt.Sprint("v", i), Lease: p.Lease, Retry: p.Retry}).Elem())
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
