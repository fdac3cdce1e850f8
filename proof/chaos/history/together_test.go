package history_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist/host/postgres"
	server "github.com/soloist-go/soloist/internal/postgres"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// A crowd is of clients that call some entries by the same two stores. Their calls wait for connections.
type crowd struct{ entries, clients int } // clients of each entry

var crowds = []crowd{{2, 10}, {4, 8}, {6, 8}, {8, 6}, {16, 3}, {24, 3}}

// PostgreSQL, with calls that share statements. Connections get lost, and another session locks rows and cancels statements.
func TestPostgresTogether(t *testing.T) {
	alone(t)
	at := server.New(t, "max_connections=400")
	defer meddle(t, at)()
	shares := &sharing{kinds: map[string]bool{}, ended: map[string]int{}}
	type place struct {
		clients  int
		backends [2]store.Store
	}
	var places []place // by seed
	for i, c := range crowds {
		p := place{clients: c.clients}
		for n := range p.backends {
			url := throughCutter(t, at, uint64(i), n, i%3*24)
			p.backends[n] = overPool(t, fmt.Sprint(url, "&pool_max_conns=", 1+i%2), shares)
		}
		for range c.entries {
			places = append(places, p)
		}
	}
	inReality(t, uint64(len(places)), func(seed uint64) *history {
		n := places[seed].clients
		s := session{calls: 60 + 10*n, crowd: n, lasts: 12 * time.Second, late: never}.named(seed)
		return s.record(func(n int) store.Store { return places[seed].backends[n%2] })
	}, acquireWrite+": done", writeRelease+": done")
	shares.end(t)
}

func overPool(t *testing.T, url string, by pgx.QueryTracer) store.Store {
	t.Helper()
	settings, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	settings.ConnConfig.Tracer = by
	pool, err := pgxpool.NewWithConfig(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	backend, err := postgres.Open(postgres.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	return backend
}

// meddle has a session lock some rows, or all, for a moment, and cancel what waits for them, until stop is called.
func meddle(t *testing.T, at *server.Server) (stop func()) {
	ctx, end := context.WithCancel(t.Context())
	if _, err := overPool(t, at.URL(""), nil).Read(ctx, "app/none"); meaning(err) == errUnclear { // it makes the table
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, at.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	const (
		lockSome = `WITH l AS MATERIALIZED (SELECT FROM soloist.entry WHERE random() < 0.5 FOR UPDATE) SELECT count(*), pg_sleep(0.1) FROM l`
		lockAll  = `DO $$ BEGIN
	LOCK TABLE soloist.entry IN EXCLUSIVE MODE; PERFORM pg_sleep(0.1);
	PERFORM pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock';
END $$`
	)
	statements := []string{lockSome, lockSome, lockAll}
	var meddling sync.WaitGroup
	meddling.Go(func() {
		defer conn.Close(context.WithoutCancel(ctx))
		for i := 0; proctest.Pause(ctx, 100*time.Millisecond) == nil; i++ {
			if _, err := conn.Exec(ctx, statements[i%len(statements)]); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	return func() {
		end()
		meddling.Wait()
	}
}

// A sharing counts the statements that calls share.
type sharing struct {
	mu    sync.Mutex
	calls int
	kinds map[string]bool // by text
	ended map[string]int
}

// How a shared statement ends.
const (
	answered = "answered"
	partly   = "answered for some of its calls"
	refused  = "refused by the server"
	cutOff   = "cut off"
)

// TraceQueryStart implements [pgx.QueryTracer].
func (s *sharing) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if len(q.Args) == 0 {
		return ctx
	}
	names, _ := q.Args[0].([]string)
	if len(names) < 2 {
		return ctx
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls += len(names)
	s.kinds[q.SQL] = true
	return context.WithValue(ctx, s, int64(len(names)))
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (s *sharing) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryEndData) {
	names, shared := ctx.Value(s).(int64)
	if !shared {
		return
	}
	how := answered
	switch {
	case errors.As(q.Err, new(*pgconn.PgError)):
		how = refused
	case q.Err != nil:
		how = cutOff
	case q.CommandTag.RowsAffected() < names:
		how = partly
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[how]++
}

// end insists on statements without which histories would show little.
func (s *sharing) end(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d calls in shared statements, of %d kinds: %v", s.calls, len(s.kinds), s.ended)
	const kinds = 6 // acquire, renew, write, release, and the two that do two steps
	if len(s.kinds) != kinds {
		t.Errorf("shared statements of %d kinds, want %d", len(s.kinds), kinds)
	}
	for _, how := range []string{answered, partly, refused, cutOff} {
		if s.ended[how] == 0 {
			t.Errorf("no shared statement was %s", how)
		}
	}
}

var mistakesFlag = flag.Bool("mistakes", false, "record histories with each mistake in host/postgres, and demand that one is rejected")

// mistakes are those of calls that share statements, and of calls that take two steps.
var mistakes = map[string]proctest.Edit{
	"the answer of another":      inChange("answers[a.name].verdict, answers[a.name].revision", "answers[all[0].name].verdict, answers[all[0].name].revision"),
	"the arguments of another":   inChange("		values[j] = a.args[i].(T)", "		_, values[j] = a, all[0].args[i].(T)"),
	"two for one entry":          inChange("if with != nil && slices.ContainsFunc(", "if with == new(shared) && slices.ContainsFunc("),
	"again after a lost answer":  inChange("		if notDone(err) {", "		if err != nil {"),
	"no lock":                    inStatements("IS NOT NULL `+forUpdate+`) AS e", "IS NOT NULL) AS e"),
	"acquire and write if held":  inStatements(`record text", whenHeld+whenChanged`, `record text", whenChanged`),
	"write and release does not": inStatements(`written+", "+free`, `written`),
}

func inChange(text, with string) proctest.Edit {
	return proctest.Edit{File: "host/postgres/change.go", Old: text, New: with}
}

func inStatements(text, with string) proctest.Edit {
	return proctest.Edit{File: "host/postgres/statements.go", Old: text, New: with}
}

// Each mistake can be made, and a history then shows it.
func TestMistakes(t *testing.T) {
	for name, m := range mistakes {
		if !*mistakesFlag { // it takes minutes
			if _, err := proctest.Edited(m); err != nil {
				t.Error(err)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			program := proctest.Build(t, "proof/chaos/history", true, m)
			var out []byte
			for range 3 { // what calls meet is left to chance
				out, _ = exec.Command(program, "-test.run=^TestPostgresTogether$").CombinedOutput() // it is to fail
				if strings.Contains(string(out), notAnswered) {
					return
				}
			}
			t.Errorf("not caught: %.2000s", out)
		})
	}
}
