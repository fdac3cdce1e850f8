package locks

import (
	"context"
	"fmt"
	"testing"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A shelf lists names in order, and counts them.
type shelf struct {
	names  []string
	listed int
}

func (s *shelf) List(_ context.Context, app string, f func(string, store.Entry) bool) error {
	for _, name := range s.names {
		if s.listed++; !f(app+"/"+name, store.Entry{State: store.Leased}) {
			break
		}
	}
	return nil
}

// What is done once comes after all locks in a listing, and is read however many those are. The
// listing ends at the first job.
func TestManyLocksHideNothing(t *testing.T) {
	s := &shelf{}
	for i := range mostRead + 7 {
		s.names = append(s.names, fmt.Sprintf("0-lock-tenant-%06d", i))
	}
	s.names = append(s.names, "0-once-migrate-aaaaaaaaaaaaaaaaaaaa", "beat", "report")
	r, err := Read(t.Context(), s, "demo")
	if err != nil || len(r.Locks) != mostRead || r.Unread != 7 || len(r.Once) != 1 || s.listed != mostRead+9 {
		t.Errorf("got %d locks, %d unread, %d once of %d listed, %v", len(r.Locks), r.Unread, len(r.Once), s.listed, err)
	}
	if shown := r.Shown(20); len(shown.Locks) != 20 || shown.MoreLocks != mostRead-20 || shown.LocksNote != "entries of locks that were not read for this: 7" {
		t.Errorf("got %d, %d, %q", len(shown.Locks), shown.MoreLocks, shown.LocksNote)
	}
}

// A stop of the replica is no failure of what it does once.
func TestOnceThatWasStopped(t *testing.T) {
	o := onceOf("migrate", slot{rec: record.Record{History: []event.Outcome{{Status: event.Abandoned, Reason: "stopped", Replica: "replica-o"}}}})
	if o.State != Interrupted || o.Failures != 0 || o.Replica != "replica-o" {
		t.Errorf("got %+v", o)
	}
}
