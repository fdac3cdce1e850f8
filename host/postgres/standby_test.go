package postgres_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/internal/examine"
	server "github.com/soloist-go/soloist/internal/postgres"
)

// A standby that is promoted without the last writes has a record of before, and a tick that has run starts once more: doctor
// warns of that.
func TestPromotedStandbyLosesWrites(t *testing.T) {
	primary := server.New(t, "fsync=on")
	standby := primary.Standby(t)
	s := open(t, postgres.Config{URL: primary.URL("")})
	e, err := s.Create(t.Context(), e1, []byte("first"))
	must(t, err)
	must(t, acquire(s, e, ours, time.Minute))
	follows(t, primary, standby)
	if f := durability(t, s); !strings.Contains(f.Text, "standbys: 1, of these asynchronous: 1") ||
		!strings.Contains(f.Advice, "a fail-over to one may lose the last ones: a job whose last outcome is lost can start the same tick twice") {
		t.Errorf("an asynchronous standby: got %+v", f)
	}
	old := open(t, postgres.Config{URL: standby.URL("") + "&target_session_attrs=any"})
	_, err = old.Lease(e1, ours).Write(t.Context(), e.ETag, []byte("second"))
	if text, advice := old.Explain(err); !strings.Contains(text, "the server is read-only, as a standby is: connect to the primary") || advice == "" {
		t.Errorf("a standby: got %s, advice %s", text, advice)
	}

	query(t, standby, "ALTER SYSTEM SET primary_conninfo = ''")
	query(t, standby, "SELECT pg_reload_conf()")
	until(t, session(t, primary.Local()), "SELECT count(*) = 0 FROM pg_stat_replication")
	_, err = s.Lease(e1, ours).Write(t.Context(), e.ETag, []byte("second"))
	must(t, err)
	starts := 0
	runs := func(at *server.Server) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) { // each bubble begins at the same instant, so this is always the same tick
			job := soloist.Job{Name: "report", Schedule: "* * * * *", Do: func(context.Context, *soloist.Run) error { starts++; return nil }}
			scheduler := &soloist.Scheduler{Store: virtual(t, at.URL(""), ""), App: "app", Replica: "r1", Jobs: []soloist.Job{job},
				Logger: slog.New(slog.DiscardHandler)}
			_, err := scheduler.RunDue(t.Context(), soloist.Wake{Tick: time.Now()})
			must(t, err)
		})
	}
	runs(primary)
	runs(primary) // it is known to have run
	if starts != 1 {
		t.Fatalf("%d starts on the primary", starts)
	}
	primary.Kill()
	must(t, standby.Promote())
	promoted := open(t, postgres.Config{URL: standby.URL("")})
	if got, err := promoted.Read(t.Context(), e1); err != nil || string(got.Record) != "first" || got.ETag != e.ETag {
		t.Errorf("got %q, %v, want the record of before", got.Record, err)
	}
	if runs(standby); starts != 2 {
		t.Errorf("the tick that was lost started %d times", starts)
	}
}

// While no synchronous standby confirms it, a claim is not known to be written, and its run does not start. What is promoted
// then has all that was confirmed.
func TestSynchronousStandbyKeepsWrites(t *testing.T) {
	primary := server.New(t, "fsync=on")
	standby := primary.Standby(t)
	s := open(t, postgres.Config{URL: primary.URL("")})
	_, err := s.Create(t.Context(), e1, []byte("first"))
	must(t, err)
	set(t, primary, "synchronous_standby_names", "standby")
	follows(t, primary, standby)
	until(t, session(t, primary.Local()), "SELECT sync_state = 'sync' FROM pg_stat_replication")
	if f := durability(t, s); !strings.Contains(f.Text, "standbys: 1, of these asynchronous: 0") || f.Advice != "" {
		t.Errorf("a synchronous standby: got %+v", f)
	}
	e, err := s.Create(t.Context(), "app/confirmed", []byte("first"))
	must(t, err)
	for _, weaker := range []string{"off", "local"} {
		if f := durability(t, open(t, postgres.Config{URL: primary.URL("") + "&synchronous_commit=" + weaker})); f.Advice == "" {
			t.Errorf("synchronous_commit=%s: got %+v", weaker, f)
		}
	}
	primary.Kill()
	must(t, standby.Promote())
	promoted := open(t, postgres.Config{URL: standby.URL("")})
	if got, err := promoted.Read(t.Context(), "app/confirmed"); err != nil || got.ETag != e.ETag {
		t.Errorf("got %+v, %v, want what was confirmed", got, err)
	}
}

// follows returns once the standby has all that was written.
func follows(t *testing.T, primary, standby *server.Server) {
	t.Helper()
	at := run(t, session(t, primary.Local()), "SELECT pg_current_wal_flush_lsn()::text")
	until(t, session(t, standby.Local()), "SELECT coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)", at)
	until(t, session(t, primary.Local()), "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")
}

// durability is what doctor says of it.
func durability(t *testing.T, s *postgres.Store) examine.Finding {
	t.Helper()
	for _, c := range s.Examine("app/.doctor", time.Now) {
		if c.Name == "durability" {
			return c.Do(t.Context())
		}
	}
	t.Fatal("doctor does not look at it")
	return examine.Finding{}
}
