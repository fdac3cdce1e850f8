package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/proctest"
)

const (
	counters = 50 // jobs, each with a tick a second
	replicas = 5
)

// A counter order is what a process of TestIncrements does.
type counterOrder struct {
	URL  string
	Name string
	InTx bool // or the increment in a transaction of its own, and then the outcome
}

// Replicas are killed while their jobs increment a row. In InTx each tick that has succeeded has done so once, and no other
// has. The same jobs do so twice for some ticks if their effect is committed before the outcome, so the test can fail. There are
// 10,000 increments in the nightly run, and 500 otherwise or with -short.
func TestIncrements(t *testing.T) {
	increments, kills := 500, 10
	if nightly.Runs() && !testing.Short() {
		increments, kills = 10_000, 200
	}
	t.Run("InTx", func(t *testing.T) {
		got := increment(t, increments, kills, true)
		if got.Twice+got.Missing+got.Extra != 0 || got.Effects != got.Counter || got.Effects != got.Succeeded {
			t.Errorf("not one effect for each success: %+v", got)
		}
		if got.Attempts == 0 {
			t.Error("no tick was begun again: the kills show nothing")
		}
	})
	t.Run("by hand", func(t *testing.T) {
		if got := increment(t, 500, 10, false); got.Twice == 0 {
			t.Errorf("no tick has had its effect twice: %+v", got)
		}
	})
}

// A tally compares the effects with the outcomes that were ever written.
type tally struct {
	Effects, Counter int // rows, and the sum
	Succeeded        int // ticks
	Attempts         int // succeeded ticks that had been begun before
	Twice            int // ticks with more than one effect
	Missing, Extra   int // successes without an effect, and ticks with an effect and no success
}

// A trigger notes the successes of each record that is written, as a record keeps twenty outcomes.
const counterTables = `CREATE TABLE counter (n bigint);
INSERT INTO counter VALUES (0);
CREATE TABLE effects (job text, tick timestamptz);
CREATE TABLE succeeded (job text, tick timestamptz, attempt int, PRIMARY KEY (job, tick));
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO public.succeeded
	SELECT split_part(NEW.name, '/', 2), (o->>'tick')::timestamptz, (o->>'attempt')::int
	FROM jsonb_array_elements(NEW.record::jsonb->'history') AS o WHERE o->>'status' = 'succeeded'
	ON CONFLICT DO NOTHING;
	RETURN NEW;
END $$;
CREATE TRIGGER note AFTER UPDATE ON soloist.entry FOR EACH ROW WHEN (OLD.record <> NEW.record) EXECUTE FUNCTION note()`

const counterTally = `SELECT (SELECT count(*) FROM effects), (SELECT n FROM counter), (SELECT count(*) FROM succeeded),
	(SELECT count(*) FROM succeeded WHERE attempt > 1),
	(SELECT count(*) FROM (SELECT FROM effects GROUP BY job, tick HAVING count(*) > 1) AS twice),
	(SELECT count(*) FROM (SELECT job, tick FROM succeeded EXCEPT SELECT job, tick FROM effects) AS missing),
	(SELECT count(*) FROM (SELECT job, tick FROM effects EXCEPT SELECT job, tick FROM succeeded) AS extra)`

// increment has replicas count, and kills one of them after each share of the increments.
func increment(t *testing.T, increments, kills int, inTx bool) (got tally) {
	begun := time.Now()
	url := start(t)
	watch := session(t, url)
	s := open(t, postgres.Config{URL: url})
	must(t, s.Logs(t.Context(), e1, nil)) // makes the schema
	s.Close()
	_, err := watch.Exec(t.Context(), "SET search_path = public; "+counterTables)
	must(t, err)
	f := make([]*proctest.Process, replicas)
	launch := func(i, n int) {
		order, err := json.Marshal(counterOrder{url, fmt.Sprintf("r%d-%d", i, n), inTx})
		must(t, err)
		f[i], err = proctest.Command{Program: proctest.Self(), Args: []string{"-test.run=^TestCounter$", "-test.timeout=0"},
			Env: []string{proctest.As(string(order))}, Stdout: func(line string) { t.Log(line) }}.Start()
		must(t, err)
	}
	end := func() {
		for _, p := range f {
			if p != nil {
				p.Kill()
			}
		}
	}
	defer end()
	for i := range f {
		launch(i, 0)
	}
	for k := 1; k <= kills; k++ {
		until(t, watch, "(SELECT n FROM public.counter) >= $1::bigint", k*increments/(kills+1))
		i := rand.IntN(replicas)
		f[i].Kill()
		launch(i, k)
	}
	until(t, watch, "(SELECT n FROM public.counter) >= $1::bigint", increments)
	end()
	until(t, watch, "(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend') = 1")
	must(t, watch.QueryRow(t.Context(), counterTally).Scan(&got.Effects, &got.Counter, &got.Succeeded, &got.Attempts, &got.Twice, &got.Missing, &got.Extra))
	t.Logf("%d kills in %s: %+v", kills, time.Since(begun).Round(time.Second), got)
	return got
}

// TestCounter is what the processes of TestIncrements run.
func TestCounter(t *testing.T) {
	text, ok := proctest.Order()
	if !ok {
		t.Skip("run by TestIncrements")
	}
	var o counterOrder
	must(t, json.Unmarshal([]byte(text), &o))
	pool, err := pgxpool.New(t.Context(), o.URL+" pool_max_conns=15 search_path=public")
	must(t, err)
	s := &soloist.Scheduler{App: "count", Replica: o.Name, Logger: slog.New(slog.DiscardHandler),
		Store: open(t, postgres.Config{Pool: pool})}
	for i := range counters {
		s.Jobs = append(s.Jobs, soloist.Job{Name: fmt.Sprintf("job-%d", i), Schedule: "@every 1s", Lease: time.Second,
			Interrupted: soloist.Rerun, Do: func(ctx context.Context, run *soloist.Run) error { return o.count(ctx, run, pool) }})
	}
	t.Log(s.Run(t.Context()))
}

func (o counterOrder) count(ctx context.Context, run *soloist.Run, pool *pgxpool.Pool) error {
	effect := func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO effects VALUES ($1, $2)", run.Job, run.Tick)
		if err == nil && o.InTx {
			err = work(ctx)
		}
		if err == nil {
			_, err = tx.Exec(ctx, "UPDATE counter SET n = n + 1")
		}
		return err
	}
	if o.InTx {
		return postgres.InTx(ctx, run, effect)
	}
	if err := pgx.BeginFunc(ctx, pool, effect); err != nil {
		return err
	}
	return work(ctx)
}

// work takes a moment, in which a kill meets the run.
func work(ctx context.Context) error { return proctest.Pause(ctx, rand.N(200*time.Millisecond)) }
