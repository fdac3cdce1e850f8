package sim

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// operated is a store over a line, with an operator at the other end of it.
type operated struct {
	store.Store
	store.ConditionalBreaker
	client *client
	azure  *azure.Store
}

func (o operated) Break(ctx context.Context, name string, period time.Duration) error {
	return o.client.send(ctx, errand{Event: trace.Event{Op: "break", Job: path.Base(name), Span: period},
		do: func(ctx context.Context, got *result) { got.err = o.azure.Break(ctx, name, period) }}).err
}

func (o operated) Delete(ctx context.Context, name string) error {
	return o.client.send(ctx, errand{Event: trace.Event{Op: "delete", Job: path.Base(name)},
		do: func(ctx context.Context, got *result) { got.err = o.azure.Delete(ctx, name) }}).err
}

// judged are the tests of the suite in which no argument is wrong and no two entries have one job: the
// contract checker is asked about no others.
var judged = []string{"Outcome", "BreakUnchanged", "Missing", "Delete", "ETag", "Expiry", "Repeat", "Late", "Race"}

// A store over a line without faults keeps the contract, and the contract checker agrees with the suite.
func TestStoreOverALine(t *testing.T) {
	storetest.Test(t, storetest.Harness{Virtual: true, New: func(t *testing.T) store.Store {
		log := newLog()
		net := &Network{log: log, calm: time.Now()}
		t.Cleanup(func() {
			net.late.Wait()
			test, rest, _ := strings.Cut(strings.TrimPrefix(t.Name(), "TestStoreOverALine/"), "/")
			for _, e := range log.Events {
				if e.What == trace.Broke && slices.Contains(judged, test) && rest != "no-etag" {
					t.Error(e.Note)
				}
			}
		})
		// Its leases are longer than the slowest call takes.
		backend, err := azure.Open(azure.Config{ConnectionString: bySignature, Transport: new(blobtest.Blob)})
		if err != nil {
			t.Fatal(err)
		}
		l := &line{Network: net, machine: newMachine("r", 0, NewClock(0, 0), log, new(traps))}
		far := over(l, backend)
		return operated{far, far.(store.ConditionalBreaker), &client{l, backend}, backend}
	}})
}

// What a replica has of a store is no more than the store has.
func TestStoreOverALineHasTheSameInterfaces(t *testing.T) {
	m := new(local.Memory)
	for name, backend := range map[string]store.Store{
		"neither": struct{ store.Store }{m},
		"documents": struct {
			store.Store
			store.Documenter
		}{m, m},
		"breaks": struct {
			store.Store
			store.ConditionalBreaker
		}{m, m},
		"both": m,
	} {
		got := over(new(line), backend)
		_, want := backend.(store.ConditionalBreaker)
		if _, ok := got.(store.ConditionalBreaker); ok != want {
			t.Errorf("%s: ConditionalBreaker: got %t, want %t", name, ok, want)
		}
		_, want = backend.(store.Documenter)
		if _, ok := got.(store.Documenter); ok != want {
			t.Errorf("%s: Documenter: got %t, want %t", name, ok, want)
		}
	}
}

// The contract checker holds each answer to a break under a condition to what was done before.
func TestContractCheckerOfBreaks(t *testing.T) {
	for name, one := range map[string]struct {
		op   string // what the holder has done last: "acquire", "release" or "break"
		etag string // of the call; that of the entry is "one"
		err  error
		says string // empty: nothing is wrong
	}{
		"done":                      {"acquire", "one", nil, ""},
		"done again":                {"break", "one", nil, ""},
		"another ETag is refused":   {"acquire", "old", store.ErrChanged, ""},
		"another ETag is done":      {"acquire", "old", nil, "it answers <nil>"},
		"it is refused":             {"acquire", "one", store.ErrChanged, "want [<nil>]"},
		"again is refused":          {"break", "one", store.ErrLost, "want [<nil>]"},
		"no lease":                  {"release", "one", store.ErrLost, ""},
		"no lease is done":          {"release", "one", nil, "it answers <nil>"},
		"no lease and another ETag": {"release", "old", store.ErrChanged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			now, c := time.Now(), new(contractChecker)
			tell := func(e trace.Event, etag, next string, err error) string {
				e.What, e.Job, e.Match = trace.Request, "work", etag != ""
				got := result{Entry: store.Entry{Revision: store.Revision{ETag: next}, State: store.Available}, err: err}
				return strings.Join(c.judge(&e, errand{etag: etag}, got, now), "; ")
			}
			tell(trace.Event{Op: "create"}, "", "one", nil)
			tell(trace.Event{Op: "acquire", Lease: "id", Span: time.Minute}, "one", "one", nil)
			switch one.op {
			case "release":
				tell(trace.Event{Op: "release", Lease: "id"}, "", "", nil)
			case "break":
				tell(trace.Event{Op: "break"}, "", "", nil)
			}
			wrong := tell(trace.Event{Op: "break"}, one.etag, "", one.err)
			if (wrong == "") != (one.says == "") || !strings.Contains(wrong, one.says) {
				t.Errorf("got %q, want %q", wrong, one.says)
			}
			now = now.Add(time.Second) // more than the store may round
			late := tell(trace.Event{Op: "write", Lease: "id"}, "one", "two", nil)
			if ended := one.err == nil || one.op != "acquire"; (late != "") != ended {
				t.Errorf("a write after it: got %q, want it to be wrong: %t", late, ended)
			}
		})
	}
}
