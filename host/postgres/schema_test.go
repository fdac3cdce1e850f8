package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist/host/postgres"
	server "github.com/soloist-go/soloist/internal/postgres"
	"github.com/soloist-go/soloist/store"
)

// life does what a job does, and checks what can be seen of it.
func life(t *testing.T, s *postgres.Store) {
	t.Helper()
	ctx := t.Context()
	e, err := s.Create(ctx, e1, []byte("first"))
	must(t, err)
	must(t, acquire(s, e, ours, time.Minute))
	l := s.Lease(e1, ours).(interface {
		store.Lease
		store.Checkpointer
	})
	r, err := l.Renew(ctx)
	must(t, err)
	if off := time.Since(r.Date).Abs(); off > time.Minute {
		t.Errorf("the server's time is %v away", off)
	}
	r, err = l.Save(ctx, e.ETag, []byte("second"), []byte("checkpoint"))
	must(t, err)
	if b, err := l.Load(ctx, r.ETag); err != nil || string(b) != "checkpoint" {
		t.Errorf("loaded %q, %v", b, err)
	}
	d, err := s.WriteDocument(ctx, "app/.document", "", []byte("one"))
	must(t, err)
	_, err = s.WriteDocument(ctx, "app/.document", d.ETag, []byte("two"))
	must(t, err)
	log := store.LogName(e1, "1")
	must(t, s.Append(ctx, log, 0, []byte("one")))
	must(t, s.Append(ctx, log, 3, []byte("two")))
	must(t, s.Logs(ctx, e1, func(name string, size int64) bool { // f may call the store
		if b, err := s.ReadLog(ctx, name, 2, 3); err != nil || string(b) != "etw" || size != 6 {
			t.Errorf("log has %q of %d, %v", b, size, err)
		}
		return true
	}))
	listed := 0
	must(t, s.List(ctx, "app", func(name string, listed1 store.Entry) bool {
		listed++
		read, err := s.Read(ctx, name)
		must(t, err)
		if string(read.Record) != "second" || read.State != store.Leased || listed1.State != store.Leased || read.Checkpoint != 10 {
			t.Errorf("read %+v, listed %+v", read, listed1)
		}
		return true
	}))
	if apps, err := s.Apps(ctx); listed != 1 || err != nil || fmt.Sprint(apps) != "[app]" {
		t.Errorf("%d entries, apps %v, %v", listed, apps, err)
	}
	must(t, l.Release(ctx))
	must(t, s.RemoveLog(ctx, log))
	must(t, s.Remove(ctx, e1, r.ETag))
}

// Stores are apart by schema and prefix, whatever the names, and a store makes do with one connection of any settings.
func TestPlaces(t *testing.T) {
	url := server.Start(t)
	pool, err := pgxpool.New(t.Context(), url+" pool_max_conns=1 timezone=Asia/Kolkata datestyle=German search_path=nowhere standard_conforming_strings=off")
	must(t, err)
	defer pool.Close()
	for _, c := range []postgres.Config{
		{URL: url},
		{URL: url + " soloist_schema=other soloist_prefix=a_"},
		{Pool: pool, Schema: `a"b'c\ d`, Prefix: `%s"'{entry}`},
		{Pool: pool, Schema: "public"},
		{Pool: pool, Schema: "public", Prefix: "two_"},
	} {
		s := open(t, c)
		t.Run(s.String(), func(t *testing.T) {
			s.WriteDocument(t.Context(), "apart/.document", "", nil) //nolint:errcheck // life finds out
			life(t, s)
			if _, err := s.WriteDocument(t.Context(), "app/.document", "", nil); !errors.Is(err, store.ErrChanged) {
				t.Errorf("a second time: got %v, want what was there", err)
			}
		})
	}
}

// Listings leave out names that only begin alike.
func TestNeighbours(t *testing.T) {
	s := open(t, postgres.Config{URL: start(t)})
	for _, entry := range []string{"near/job", "near/job-1", "near/job0", "near0/job", "nea/job", "near-1/job", "near/-", "near/.job"} {
		_, err := s.Create(t.Context(), entry, []byte("first"))
		must(t, err)
		must(t, s.Append(t.Context(), store.LogName(entry, "1"), 0, []byte("x")))
	}
	var got []string
	must(t, s.Logs(t.Context(), "near/job", func(name string, _ int64) bool { got = append(got, name); return true }))
	must(t, s.List(t.Context(), "near", func(name string, _ store.Entry) bool { got = append(got, name); return true }))
	if want := "[near/.log/job/1 near/- near/job near/job-1 near/job0]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	apps, err := s.Apps(t.Context())
	must(t, err)
	apps = slices.DeleteFunc(apps, func(app string) bool { return !strings.HasPrefix(app, "nea") })
	if want := "[nea near-1 near near0]"; fmt.Sprint(apps) != want {
		t.Errorf("apps %v, want %s", apps, want)
	}
}

// The first calls of many processes at once make one schema.
func TestManyMakeOneSchema(t *testing.T) {
	url := server.Start(t)
	var all sync.WaitGroup
	for i := range 8 {
		s := open(t, postgres.Config{URL: url})
		all.Go(func() {
			if _, err := s.Create(t.Context(), fmt.Sprintf("app/job-%d", i), []byte("first")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := run(t, session(t, url), "SELECT string_agg(version::text, ',') FROM soloist.version"); got != "1" {
		t.Errorf("versions %s, want each once", got)
	}
}

// Who waits for its turn sees what was made meanwhile.
func TestSchemaMadeDuringTheWait(t *testing.T) {
	url := server.Start(t)
	madeDuringTheWait(t, url, url)
}

func madeDuringTheWait(t *testing.T, direct, url string) {
	t.Helper()
	owner, watch := session(t, direct), session(t, direct)
	s := open(t, postgres.Config{URL: url})
	run(t, owner, `SELECT pg_advisory_lock(hashtextextended('soloist "soloist"."version"', 0))::text`)
	answer := make(chan error, 1)
	go func() {
		_, err := s.Create(t.Context(), e1, []byte("first"))
		answer <- err
	}()
	waits(t, watch, answer)
	_, err := owner.Exec(t.Context(), s.SQL("soloist"))
	must(t, err)
	run(t, owner, "SELECT pg_advisory_unlock_all()::text")
	must(t, <-answer)
}

// Sessions under whose settings calls would fail get an error that says what to do, at the first call and from doctor.
func TestUnfitSessions(t *testing.T) {
	url := server.Start(t)
	for name, test := range map[string]struct{ role, mode, want string }{
		"repeatable read":        {"default_transaction_isolation = 'repeatable read'", "", "default_transaction_isolation is repeatable read"},
		"serializable":           {"default_transaction_isolation = serializable", "", `ALTER ROLE "soloist" SET default_transaction_isolation`},
		"dates as text":          {"DateStyle = German", "exec", "with default_query_exec_mode=exec results are text"},
		"bytes as text":          {"bytea_output = escape", "simple_protocol", "default_query_exec_mode=simple_protocol"},
		"dates":                  {"DateStyle = German", "cache_statement", ""},
		"bytes":                  {"bytea_output = escape", "cache_statement", ""},
		"dates of a description": {"DateStyle = German", "cache_describe", ""},
		"bytes of a description": {"bytea_output = escape", "cache_describe", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := session(t, url)
			_, err := c.Exec(t.Context(), "ALTER ROLE soloist SET "+test.role)
			must(t, err)
			defer c.Exec(context.Background(), "ALTER ROLE soloist RESET ALL") //nolint:errcheck // the next case would fail
			pool, err := pgxpool.New(t.Context(), strings.TrimSuffix(url+" default_query_exec_mode="+test.mode, " default_query_exec_mode="))
			must(t, err)
			defer pool.Close()
			s := open(t, postgres.Config{Pool: pool, Schema: name})
			if test.want == "" {
				life(t, s)
				return
			}
			for range 2 {
				if _, err := s.Create(t.Context(), e1, []byte("first")); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			}
			for _, check := range s.Examine("app", time.Now) {
				if f := check.Do(t.Context()); check.Name == "schema" && (!f.Fails || !strings.Contains(f.Text, test.want)) {
					t.Errorf("doctor: %+v, want %q", f, test.want)
				}
			}
		})
	}
}

func TestNewerSchema(t *testing.T) {
	url := server.Start(t)
	s, c := open(t, postgres.Config{URL: url}), session(t, url)
	_, err := s.Create(t.Context(), e1, []byte("first"))
	must(t, err)
	run(t, c, "INSERT INTO soloist.version VALUES (98, 1) RETURNING version::text") // a migration that an older program bears
	_, err = open(t, postgres.Config{URL: url}).Read(t.Context(), e1)
	must(t, err)
	run(t, c, "INSERT INTO soloist.version VALUES (99, 2) RETURNING version::text")
	_, err = open(t, postgres.Config{URL: url}).Read(t.Context(), e1)
	if err == nil || !strings.Contains(err.Error(), "the schema soloist has version 99, of a newer program, and this program knows versions up to 1") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// A table that was dropped is made again, by the call after the one that finds out.
func TestDroppedSchema(t *testing.T) {
	url := server.Start(t)
	s := open(t, postgres.Config{URL: url})
	life(t, s)
	_, err := session(t, url).Exec(t.Context(), "DROP SCHEMA soloist CASCADE")
	must(t, err)
	if _, err := s.Create(t.Context(), e1, []byte("first")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want an unclear error", err)
	}
	life(t, s)
}

// A role that may not create gets the SQL for one that may, which makes all that the role needs and no more.
func TestRoleThatMayNotCreate(t *testing.T) {
	url := server.Start(t)
	owner := session(t, url)
	_, err := owner.Exec(t.Context(), `CREATE ROLE "the app" LOGIN`)
	must(t, err)
	s := open(t, postgres.Config{URL: strings.Replace(url, "user=soloist", "user='the app'", 1)})
	_, err = s.Create(t.Context(), e1, []byte("first"))
	if !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("got %v, want fs.ErrPermission", err)
	}
	text, advice := s.Explain(err)
	_, statements, found := strings.Cut(advice, "run: ")
	if !found || !strings.Contains(text, "permission denied for database postgres (SQLSTATE 42501)") {
		t.Fatalf("got %s, advice %s", text, advice)
	}
	_, err = owner.Exec(t.Context(), strings.Join(strings.Fields(statements), " ")) // as doctor prints it
	must(t, err)
	life(t, s)
	_, err = owner.Exec(t.Context(), `REVOKE UPDATE ON soloist.document FROM "the app"`)
	must(t, err)
	_, err = s.WriteDocument(t.Context(), "app/.document", "x", nil)
	_, advice = s.Explain(err)
	_, statements, found = strings.Cut(advice, "run: ")
	if !errors.Is(err, fs.ErrPermission) || !found {
		t.Fatalf("got %v, advice %s", err, advice)
	}
	_, err = owner.Exec(t.Context(), statements)
	must(t, err)
	if _, err = s.WriteDocument(t.Context(), "app/.document", "x", nil); !errors.Is(err, store.ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
}

// A row that changes again and again stays on its page, so table and index do not grow.
func TestNoBloat(t *testing.T) {
	url := server.Start(t)
	s, c := open(t, postgres.Config{URL: url + " synchronous_commit=off"}), session(t, url)
	e, err := s.Create(t.Context(), e1, []byte("first"))
	must(t, err)
	must(t, acquire(s, e, ours, time.Minute))
	l := s.Lease(e1, ours).(store.Checkpointer)
	r, err := l.Save(t.Context(), e.ETag, []byte("first"), make([]byte, 100_000))
	must(t, err)
	record := []byte(strings.Repeat(`{"a":"record"}`, 200))
	for range 2000 {
		r, err = s.Lease(e1, ours).Write(t.Context(), r.ETag, record)
		must(t, err)
		_, err = s.Lease(e1, ours).Renew(t.Context())
		must(t, err)
	}
	for what, most := range map[string]string{
		"pg_relation_size('soloist.entry')":      "40960",
		"pg_relation_size('soloist.entry_pkey')": "16384",
		"pg_relation_size((SELECT reltoastrelid FROM pg_class WHERE oid = 'soloist.entry'::regclass))": "16384",
	} {
		if got := run(t, c, "SELECT ("+what+" || ' bytes') WHERE "+what+" > "+most); got != "" {
			t.Errorf("%s: %s after 4,000 changes, want at most %s", what, got, most)
		}
	}
}

func TestListOfMany(t *testing.T) {
	url := server.Start(t)
	s, c := open(t, postgres.Config{URL: url}), session(t, url)
	_, err := s.Read(t.Context(), e1)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	const n = 100_000
	_, err = c.Exec(t.Context(), `INSERT INTO soloist.entry (name, record)
SELECT app || '/' || lead || 'job-' || i, '{}' FROM generate_series(1, 100000) AS i, unnest('{app,other}'::text[]) AS app, unnest('{"",.}'::text[]) AS lead`)
	must(t, err)
	_, err = c.Exec(t.Context(), "ANALYZE soloist.entry")
	must(t, err)
	got, last := 0, ""
	must(t, s.List(t.Context(), "app", func(name string, _ store.Entry) bool {
		if name <= last || !strings.HasPrefix(name, "app/job-") {
			t.Fatalf("%s after %s", name, last)
		}
		got, last = got+1, name
		return true
	}))
	if got != n {
		t.Errorf("listed %d, want %d", got, n)
	}
	rows, err := c.Query(context.Background(), "EXPLAIN "+s.ListSQL(), "app/job-1", "app/.", "app//", "app0", 1000)
	must(t, err)
	var plan strings.Builder
	for rows.Next() {
		var line string
		must(t, rows.Scan(&line))
		plan.WriteString(line + "\n")
	}
	must(t, rows.Err())
	if text := plan.String(); !strings.Contains(text, "Index Scan") || strings.Contains(text, "Seq Scan") || strings.Contains(text, "Sort  (") {
		t.Errorf("a listing does not go along the index:\n%s", text)
	}
}

func TestOldServerIsRefused(t *testing.T) {
	for version, ok := range map[string]bool{"13.22 (Debian 13.22-1)": false, "9.6.24": false, "14.0": true, "15.18 (Debian 15.18-0+deb12u1)": true, "18beta1": true, "": true} {
		if err := postgres.CheckVersion(version); (err == nil) != ok {
			t.Errorf("%q: got %v", version, err)
		}
	}
}
