package postgres_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/soloist-go/soloist/host/postgres"
	server "github.com/soloist-go/soloist/internal/postgres"
	"github.com/soloist-go/soloist/internal/proctest"
)

var mistakesFlag = flag.Bool("mistakes", false, "run the tests with each mistake, and demand that one fails")

// A mistake is what a careless author writes instead in a statement, or in a file of this package.
type mistake struct{ statement, text, with string }

func (m mistake) inCode() bool { return strings.HasSuffix(m.statement, ".go") }

var mistakes = []mistake{
	{"create", "DO NOTHING", "DO UPDATE SET record = excluded.record"},
	{"create", "clock_timestamp()", "'2020-01-01'::timestamptz"},
	{"read", "SELECT now()", "SELECT e.ends"},
	{"read", "e.etag::text", "md5(e.record)"},
	{"read", "WHEN now() < e.ends THEN 'leased'", "WHEN e.ends > '-infinity' THEN 'leased'"},
	{"read", "CASE WHEN now() < e.ends THEN 'breaking' ELSE 'broken' END", "'broken'"},
	{"read", "octet_length(e.checkpoint)", "octet_length(e.record)::bigint"},
	{"read", "LEFT JOIN", "JOIN"},

	{"acquire", "WHEN etag::text <> was THEN 'changed'", "WHEN was = '' THEN 'changed'"},
	{"acquire", "live AND (broken OR id <> lease::uuid)", "live AND id <> lease::uuid"},
	{"acquire", "live AND (broken OR id <> lease::uuid)", "live"},
	{"acquire", "live AND (broken OR id <> lease::uuid)", "id <> lease::uuid"},
	{"acquire", "live AND (broken OR id <> lease::uuid)", "broken AND id <> lease::uuid"},
	{"acquire", ", broken = false", ""},
	{"acquire", "length = j.span", "length = 0 * j.span"},
	{"acquire", "ends = j.clock + j.span", "ends = j.clock - interval '200 ms' + j.span"},
	{"acquire", "ends = j.clock + j.span", "ends = e.ends + j.span"},
	{"acquire", "e.name = j.name AND", "e.id IS NULL AND e.name = j.name AND"},
	{"acquire", "id = j.lease::uuid, length", "id = coalesce(e.id, j.lease::uuid), length"},
	{"acquire", "coalesce(a.etag, j.etag)::text", "gen_random_uuid()::text"},
	{"acquire", " FOR UPDATE OF e", ""},
	{"acquire", "SELECT *, clock_timestamp() AS clock FROM locked", "SELECT *, now() AS clock FROM locked"},
	{"acquire", "set_config('lock_timeout', $2, true)", "set_config('soloist.none', $2, true)"},
	{"acquire", "set_config('lock_timeout', $2, true)", "set_config('lock_timeout', (0 * $2::int)::text, true)"},

	{"renew", "WHEN id IS DISTINCT FROM lease::uuid THEN 'lost'", "WHEN lease::uuid IS NULL OR id IS NULL THEN 'lost'"},
	{"renew", "WHEN broken THEN 'lost'", ""},
	{"renew", "WHEN broken THEN 'lost'", "WHEN broken OR NOT live THEN 'lost'"},
	{"renew", "ends = j.clock + e.length", "ends = e.ends"},
	{"renew", "ends = j.clock + e.length", "ends = j.clock + interval '1 second'"},
	{"renew", "ends = j.clock + e.length", "ends = j.clock + e.length, etag = gen_random_uuid()"},

	{"write", "WHEN id IS DISTINCT FROM lease::uuid THEN 'lost'", "WHEN id <> lease::uuid AND false THEN 'lost'"},
	{"write", "WHEN NOT live THEN 'lost'", ""},
	{"write", "WHEN NOT live THEN 'lost'", "WHEN NOT live OR broken THEN 'lost'"},
	{"write", "WHEN etag::text <> was THEN 'changed'", "WHEN was = '' THEN 'changed'"},
	{"write", "etag = gen_random_uuid()", "etag = md5(j.record)::uuid"},
	{"write", "etag = gen_random_uuid(), ", ""},
	{"write", "record = j.record", "record = j.record, ends = j.clock + e.length"},
	{"write", "record = j.record", "record = j.record, checkpoint = ''"},
	{"write", "SELECT *, clock_timestamp() AS clock FROM locked", "SELECT *, statement_timestamp() AS clock FROM locked"},

	{"save", "WHEN id IS DISTINCT FROM lease::uuid THEN 'lost'", "WHEN id <> lease::uuid AND false THEN 'lost'"},
	{"save", "WHEN NOT live THEN 'lost'", ""},
	{"save", "WHEN etag::text <> was THEN 'changed'", "WHEN was = '' THEN 'changed'"},
	{"save", "checkpoint = j.checkpoint", "checkpoint = substring(j.checkpoint for 100)"},
	{"save", "record = j.record, ", "record = left(j.record, 0) || e.record, "},
	{"save", "etag = gen_random_uuid(), ", ""},
	{"save", "SELECT *, clock_timestamp() AS clock FROM locked", "SELECT *, statement_timestamp() AS clock FROM locked"},

	{"writeIn", "WHEN id IS DISTINCT FROM lease::uuid THEN 'lost'", "WHEN id <> lease::uuid AND false THEN 'lost'"},
	{"writeIn", "WHEN NOT live THEN 'lost'", ""},
	{"writeIn", "WHEN etag::text <> was THEN 'changed'", "WHEN was = '' THEN 'changed'"},
	{"writeIn", "IS DISTINCT FROM nonce", "= nonce || 'x'"},
	{"writeIn", "SELECT *, clock_timestamp() AS clock FROM locked", "SELECT *, now() AS clock FROM locked"},
	{"writeIn", "'5s'", "'0'"},
	{"writeIn", "record = j.record", "record = j.record, checkpoint = ''"},
	{"saveIn", "WHEN NOT live THEN 'lost'", ""},
	{"saveIn", "IS DISTINCT FROM nonce", "= nonce || 'x'"},
	{"saveIn", "checkpoint = j.checkpoint", "checkpoint = coalesce(nullif(j.checkpoint, ''), e.checkpoint)"},

	// The write outside of the transaction, before it, after it, and whatever it says.
	{"tx.go", "l.store.changeBy(ctx, t.tx,", "l.store.changeBy(ctx, l.store.pool,"},
	{"tx.go", "	defer t.rollback(context.WithoutCancel(ctx))", "	defer func() { _ = t.tx.Commit(context.WithoutCancel(ctx)) }()"},
	{"tx.go", "	if t.err = checkSaved(", "	_, _ = t.tx.Exec(ctx, \"COMMIT; BEGIN; SET LOCAL soloist.transaction = '\"+t.nonce+\"'\")\n	if t.err = checkSaved("},
	{"tx.go", "	if t.err != nil { // f", "	if false { // f"},
	{"tx.go", "		return store.Revision{}, t.lease.store.translate(commit,", "		return t.written, t.lease.store.translate(commit,"},
	{"tx.go", "	if err := t.tx.Commit(ctx); err != nil {", "	if err := t.tx.Commit(ctx); err != nil && false {"},
	{"tx.go", "err: refuse(transact, l.name, errUnasked)", "err: nil"},
	{"tx.go", "	if err := f(t.tx, t.write); err != nil {\n		return store.Revision{}, err", "	if err := f(t.tx, t.write); err != nil {\n		return store.Revision{}, s.translate(transact, l.name, err)"},
	{"tx.go", "if checkpoint != nil {", "if len(checkpoint) > 0 {"},
	{"tx.go", "SET LOCAL soloist.transaction", "SET soloist.transaction"},
	{"tx.go", "ISOLATION LEVEL READ COMMITTED ", ""},
	{"tx.go", "SET LOCAL statement_timeout = 0", "SET LOCAL statement_timeout = 5000"},
	{"tx.go", "	case s.room <- struct{}{}:\n		defer func() { <-s.room }()\n", ""},
	{"tx.go", "	defer conn.Release()", "	context.AfterFunc(ctx, conn.Release)"},
	{"acquireWrite", "WHEN etag::text <> was THEN 'changed'", "WHEN was = '' THEN 'changed'"},
	{"acquireWrite", "live AND (broken OR id <> lease::uuid)", "live AND broken AND id <> lease::uuid"},
	{"acquireWrite", "id = j.lease::uuid, length", "id = coalesce(e.id, j.lease::uuid), length"},
	{"acquireWrite", "ends = j.clock + j.span", "ends = e.ends + j.span"},
	{"acquireWrite", "etag = gen_random_uuid(), ", ""},
	{"acquireWrite", "record = j.record", "record = left(j.record, 0) || e.record"},
	{"writeRelease", "WHEN id IS DISTINCT FROM lease::uuid THEN 'lost'", "WHEN id <> lease::uuid AND false THEN 'lost'"},
	{"writeRelease", "WHEN NOT live THEN 'lost'", ""},
	{"writeRelease", "WHEN etag::text <> was THEN 'changed'", "WHEN was = '' THEN 'changed'"},
	{"writeRelease", "etag = gen_random_uuid(), ", ""},
	{"writeRelease", "record = j.record", "record = left(j.record, 0) || e.record"},
	{"writeRelease", "id = NULL, ends = '-infinity'", "ends = e.ends"},

	{"load", "e.id IS DISTINCT FROM $2::uuid OR ", "$2::uuid IS NULL OR "},
	{"load", " OR now() >= e.ends", ""},
	{"load", "WHEN e.etag::text <> $3 THEN 'changed'", "WHEN $3 = '' THEN 'changed'"},

	{"release", "WHEN id IS DISTINCT FROM lease::uuid THEN 'lost'", "WHEN lease::uuid IS NULL OR id IS NULL THEN 'lost'"},
	{"release", "WHEN id IS DISTINCT FROM lease::uuid THEN 'lost'", "WHEN id IS DISTINCT FROM lease::uuid OR NOT live THEN 'lost'"},
	{"release", "id = NULL, ends = '-infinity'", "ends = j.clock"},
	{"release", ", broken = false", ", etag = gen_random_uuid()"},

	{"break", "WHEN id IS NULL THEN 'lost'", "WHEN false THEN 'lost'"},
	{"break", "least(e.ends, ", "coalesce(NULL, "},
	{"break", "least(e.ends, j.clock + j.span * interval '1 microsecond')", "least(e.ends, j.clock + 0 * j.span * interval '1 microsecond')"},
	{"break", "broken = true, ", ""},
	{"breakUnchanged", "WHEN etag::text <> was THEN 'changed'", "WHEN was = '' THEN 'changed'"},
	{"breakUnchanged", "WHEN id IS NULL THEN 'lost'", ""},
	{"breakUnchanged", "WHEN id IS NULL THEN 'lost'", "WHEN id IS NULL OR broken THEN 'lost'"},
	{"breakUnchanged", "least(e.ends, j.clock + j.span * interval '1 microsecond')", "e.ends + 0 * j.span * interval '1 microsecond'"},
	{"breakUnchanged", "broken = true", "broken = true, etag = gen_random_uuid()"},

	{"remove", "WHEN live THEN 'lost'", ""},
	{"remove", "WHEN etag::text <> was THEN 'changed'", "WHEN was = '' THEN 'changed'"},
	{"delete", "WHEN live THEN 'lost'", "WHEN false THEN 'lost'"},

	{"readDocument", "SELECT now()", "SELECT now() - interval '1 hour'"},
	{"readDocument", "d.etag::text,", "md5(d.body),"},
	{"readDocument", "d.etag::text <> $2 AND ", "d.etag::text <> $2 || 'x' AND "},
	{"readDocument", "d.etag::text <> $2 AND ", "d.etag::text <> $2 AND d.body IS NULL AND "},
	{"readDocument", "LEFT JOIN", "JOIN"},
	{"createDocument", "DO NOTHING", "DO UPDATE SET body = excluded.body"},
	{"writeDocument", " AND etag::text = $3", " AND $3 <> ''"},
	{"writeDocument", "etag = gen_random_uuid(), ", ""},
	{"writeDocument", "etag = gen_random_uuid(), ", "etag = md5($2::bytea)::uuid, "},

	{"list", "e.name < $4", "e.name < $4 || '~'"},
	{"list", "e.name < $2", "e.name < $2 || '~'"},
	{"list", "e.name > $3 AND ", "e.name > left($3, 0) AND "},
	{"list", "ORDER BY 1 LIMIT", "ORDER BY 1 DESC LIMIT"},
	{"list", "e.name > $3 AND e.name < $4 ORDER BY e.name LIMIT $5", "e.name > $3 AND e.name < $4 ORDER BY e.name LIMIT $5 - 998"},

	{"createLog", "DO NOTHING", "DO UPDATE SET size = excluded.size"},
	{"createLog", "octet_length($2::bytea)", "0 * octet_length($2::bytea)"},
	{"appendLog", " AND size = $3::bigint", ""},
	{"appendLog", "size = size + octet_length($2::bytea)", "size = $3::bigint + 1"},
	{"readLog", "c.start > $2::bigint - $4::bigint", "c.start >= $2::bigint + 0 * $4::bigint"},
	{"readLog", "c.start + octet_length(c.bytes) > $2::bigint", "c.start + octet_length(c.bytes) > $2::bigint + 1"},
	{"readLog", "ORDER BY c.start", "ORDER BY c.start DESC"},
	{"readLog", "LEFT JOIN", "JOIN"},
	{"listLogs", "name < $2", "name < $2 || '~'"},
	{"listLogs", "ORDER BY name", "ORDER BY name DESC"},
	{"dropLog", "name = $1", "name = $1 AND size < 3"},
}

// A caught mistake has the tests that catch it.
type caught struct {
	tests string
	mistake
}

// others are not caught by the tests of what a store has to do.
var others = []caught{
	{"TestChangesAreHeard", mistake{"watch.go", `by != origin && strings.HasPrefix(name, app)`, `by != "" && origin != "" && strings.HasPrefix(name, app)`}},
	{"TestChangesAreHeard", mistake{"watch.go", `by != origin && strings.HasPrefix(name, app)`, `by != origin && app != ""`}},
	{"TestChangesAreHeard", mistake{"watch.go", `s.news.origin, app+"/", changed`, `s.news.origin, app, changed`}},
	{"TestChangesAreHeard", mistake{"watch.go", `schema + "\x00" + prefix`, `schema + "\x00" + prefix[:0]`}},
	{"TestChangesAreHeard", mistake{"watch.go", "s.news.count(1)", "s.news.count(0)"}},
	{"TestChangesAreHeard", mistake{"watch.go", "ontime.Sleep(ctx, gather) || len(s.news.changes) > 0", "ontime.Sleep(ctx, gather)"}},
	{"TestChangesAreHeard", mistake{"watch.go", "s.notify(context.WithoutCancel(ctx), names...)", "s.notify(ctx, names...)"}},
	{"TestChangesAreHeard", mistake{"lease.go", "l.store.sql.release, l.id)\n	if err == nil {", "l.store.sql.release, l.id)\n	if err != nil {"}},
	{"TestChangesAreHeard", mistake{"lease.go", "etag, string(record))\n	if err == nil {", "etag, string(record))\n	if err != nil {"}},
	{"TestChangesAreHeard", mistake{"postgres.go", "	s.news.tell(name)\n", ""}},
	{"TestChangesAreHeard", mistake{"break", "pg_notify('", "pg_notify('x"}},
	{"TestChangesAreHeard", mistake{"createDocument", "pg_notify('", "pg_notify('x"}},
	{"TestChangesAreHeard", mistake{"writeDocument", "pg_notify('", "pg_notify('x"}},
	{"TestLostConnectionIsMadeAgain", mistake{"watch.go", "			changed(\"\")\n", ""}},
	{"TestLostConnectionIsMadeAgain", mistake{"watch.go", "changed)\n		}\n		if !", "changed)\n			return nil\n		}\n		if !"}},
	{"TestCannotWatch", mistake{"watch.go", "MaxConns < 2", "MaxConns < 1"}},
	{"TestCannotWatch", mistake{"watch.go", "return errSilent", "return nil"}},
	{"TestSilentAtFirst", mistake{"watch.go", "case errors.Is(err, errAlone):", "case errors.Is(err, errAlone), errors.Is(err, errSilent):"}},
	{"TestListenThatHangs", mistake{"watch.go", "c.Exec(asked,", "c.Exec(context.WithoutCancel(asked),"}},
	{"TestUnfitSessions", mistake{"schema.go", `isolation != "read committed"`, `isolation == ""`}},
	{"TestSchemaMadeDuringTheWait", mistake{"schema.go", "s.version(ctx, tx) // as", "0, error(nil) // as"}},
	{"TestSchemaMadeDuringTheWait", mistake{"schema.go", `"SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"`, `"SELECT hashtextextended($1, 0)"`}},
	{"TestStoresOfOnePoolLeaveAConnection", mistake{"tx.go", "weak.Make(pool)", "weak.Make(new(*pool))"}},

	// Calls that share a statement: one for each of them, waits, answers that get mixed up, contexts, what is sent again.
	{"TestTogether.*", mistake{"change.go", "	if with == nil || len(with.asks) == mostTogether {", "	if true {"}},
	{"TestTogether.*", mistake{"change.go", "	if with != nil && slices.ContainsFunc(", "	if with == new(shared) && slices.ContainsFunc("}},
	{"TestTogether.*", mistake{"change.go", " || len(with.asks) == mostTogether", ""}},
	{"TestTogether.*", mistake{"change.go", "forUpdate, forUpdateFree, 1)", "forUpdate, forUpdate, 1)"}},
	{"TestTogether.*", mistake{"change.go", "		values[j] = a.args[i].(T)", "		_, values[j] = a, all[0].args[i].(T)"}},
	{"TestTogether.*", mistake{"change.go", "a.verdict, a.revision = answers[a.name].verdict, answers[a.name].revision", "a.verdict, a.revision = answers[all[0].name].verdict, answers[all[0].name].revision"}},
	{"TestTogether.*", mistake{"change.go", "context.WithCancel(context.WithoutCancel(ctx))", "context.WithCancel(ctx)"}},
	{"TestTogether.*", mistake{"change.go", "		with.cancel()\n		g.end(", "		g.end("}},
	{"TestTogether.*", mistake{"change.go", "	if with.waiting--; with.waiting == 0 {", "	if with.waiting--; with.waiting <= 1 {"}},
	{"TestTogether.*", mistake{"change.go", "if g.open[a.statement] == with { // it is not sent", "if with.waiting == 0 { // it is not sent"}},
	{"TestTogether.*", mistake{"change.go", "		defer conn.Release()\n", ""}},
	{"TestTogether.*", mistake{"change.go", "		if notDone(err) {", "		if false {"}},
	{"TestTogether.*", mistake{"change.go", "		if notDone(err) {", "		if err != nil {"}},
	{"TestTogether.*", mistake{"change.go", "ok && e.SeverityUnlocalized == \"ERROR\" &&", "ok &&"}},
	{"TestTogether.*", mistake{"change.go", " && e.Code != \"40003\"", ""}},
	{"TestTogether.*", mistake{"change.go", " && !strings.HasPrefix(e.Code, \"08\")", ""}},
	{"TestTogether.*", mistake{"change.go", "return refused || pgconn.SafeToRetry(err)", "return refused"}},
	{"TestTogether.*", mistake{"change.go", "		return err // what it has said", "		return nil // what it has said"}},
	{"TestTogether.*", mistake{"change.go", "	case a.verdict == \"\" && len(with.asks) > 1:\n", "	case a.verdict == \"\" && len(with.asks) > 500:\n"}},
	{"TestTogether.*", mistake{"change.go", "			return store.Revision{}, s.translate(o, name, ctx.Err())", "			return store.Revision{}, s.translate(o, name, context.Cause(ctx))"}},
	{"TestPlannedOnce", mistake{"statements.go", "unnest((SELECT $1::text[])%s)", "unnest($1::text[]%s)"}},
}

// all are the mistakes, and what catches each.
func all() (all []caught) {
	const contract = "TestStoreInVirtualTime|TestNeighbours|TestJudgedAfterTheWait|TestWaitIsBounded|TestTransaction.*|TestCommitWithoutAnswer|TestStoppedBeforeCommit"
	for _, m := range mistakes {
		all = append(all, caught{contract, m})
	}
	return append(all, others...)
}

// What the tests of a process with a mistake get by their environment.
const (
	mistakeVariable = "POSTGRES_MISTAKE"
	urlVariable     = "POSTGRES_MISTAKE_URL"
)

// planted makes the mistake of this process, if it is to have one.
func planted(t testing.TB, s *postgres.Store) *postgres.Store {
	if i, err := strconv.Atoi(os.Getenv(mistakeVariable)); err == nil && !all()[i].inCode() {
		m := all()[i]
		if !s.Plant(m.statement, m.text, m.with) {
			t.Fatal("it cannot be planted")
		}
	}
	return s
}

// start returns the URL of a server. In a process of TestMistakes the tests share one, and each has a database of its own: tests
// that meet each other's rows fail without any mistake.
func start(t testing.TB) string {
	url := os.Getenv(urlVariable)
	if url == "" {
		return server.Start(t)
	}
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), databases.Add(1))
	run(t, session(t, url), "CREATE DATABASE "+name)
	return strings.Replace(url, "dbname=postgres", "dbname="+name, 1)
}

var databases atomic.Int32

// Each mistake can be made, and a test catches it, or never ends; without one all tests pass. With -v it prints those that fail.
func TestMistakes(t *testing.T) {
	url, tests := "", map[string]bool{}
	if *mistakesFlag {
		url = server.Start(t)
	}
	for i, m := range all() {
		edit := proctest.Edit{File: "host/postgres/" + m.statement, Old: m.text, New: m.with}
		if m.inCode() {
			if _, err := proctest.Edited(edit); err != nil {
				t.Error(err)
			}
		} else if !open(t, postgres.Config{URL: "host=/nowhere"}).Plant(m.statement, m.text, m.with) {
			t.Errorf("%s: no %q, or more than one", m.statement, m.text)
		}
		if !*mistakesFlag {
			continue // it takes minutes
		}
		if !tests[m.tests] {
			tests[m.tests] = true
			t.Run("none: "+m.tests, func(t *testing.T) {
				t.Parallel()
				if out, err := testsOf(os.Args[0], url, m.tests, "none"); err != nil {
					t.Errorf("without a mistake: %v\n%s", err, out)
				}
			})
		}
		t.Run(m.statement+": "+m.with, func(t *testing.T) {
			t.Parallel()
			program := os.Args[0]
			if m.inCode() {
				program = proctest.Build(t, "host/postgres", true, edit)
			}
			out, err := testsOf(program, url, m.tests, strconv.Itoa(i))
			found := failed.FindAllString(out, -1)
			hangs := strings.Contains(out, "panic: test timed out")
			noStatement := strings.Contains(out, "cannot be planted") || strings.Contains(out, "SQLSTATE 42") && !m.inCode()
			if err == nil || len(found) == 0 && !hangs || noStatement {
				t.Errorf("not caught: %v\n%.2000s", err, out)
			}
			t.Logf("%q, hangs: %t", found, hangs)
		})
	}
}

// testsOf runs tests with a mistake over the server of a URL, and returns what they print.
func testsOf(program, url, tests, mistake string) (string, error) {
	cmd := exec.Command(program, "-test.run=^("+tests+")$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), mistakeVariable+"="+mistake, urlVariable+"="+url)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var failed = regexp.MustCompile(`FAIL: Test\S+/\S+|FAIL: Test(Together|Planned|Unfit|Wait|Neigh|Transaction|Commit|Stopped|Changes|Lost|Cannot|Silent|Listen|Schema|Many|Stores)\S*`)
