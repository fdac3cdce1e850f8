package postgres_test

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
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

	{"acquire", "WHEN etag::text <> $5 THEN 'changed'", "WHEN $5 = '' THEN 'changed'"},
	{"acquire", "live AND (broken OR id <> $3::uuid)", "live AND id <> $3::uuid"},
	{"acquire", "live AND (broken OR id <> $3::uuid)", "live"},
	{"acquire", "live AND (broken OR id <> $3::uuid)", "id <> $3::uuid"},
	{"acquire", "live AND (broken OR id <> $3::uuid)", "broken AND id <> $3::uuid"},
	{"acquire", ", broken = false", ""},
	{"acquire", "length = $4::bigint", "length = 0 * $4::bigint"},
	{"acquire", "ends = j.clock + $4::bigint", "ends = j.clock - interval '200 ms' + $4::bigint"},
	{"acquire", "ends = j.clock + $4::bigint", "ends = e.ends + $4::bigint"},
	{"acquire", "e.name = j.name AND", "e.id IS NULL AND e.name = j.name AND"},
	{"acquire", "id = $3::uuid, length", "id = coalesce(e.id, $3::uuid), length"},
	{"acquire", "coalesce(a.etag, j.etag)::text", "gen_random_uuid()::text"},
	{"acquire", " FOR UPDATE OF e", ""},
	{"acquire", "SELECT *, clock_timestamp() AS clock FROM locked", "SELECT *, now() AS clock FROM locked"},
	{"acquire", "set_config('lock_timeout', $2, true)", "set_config('soloist.none', $2, true)"},
	{"acquire", "set_config('lock_timeout', $2, true)", "set_config('lock_timeout', (0 * $2::int)::text, true)"},

	{"renew", "WHEN id IS DISTINCT FROM $3::uuid THEN 'lost'", "WHEN $3::uuid IS NULL OR id IS NULL THEN 'lost'"},
	{"renew", "WHEN broken THEN 'lost'", ""},
	{"renew", "WHEN broken THEN 'lost'", "WHEN broken OR NOT live THEN 'lost'"},
	{"renew", "ends = j.clock + e.length", "ends = e.ends"},
	{"renew", "ends = j.clock + e.length", "ends = j.clock + interval '1 second'"},
	{"renew", "ends = j.clock + e.length", "ends = j.clock + e.length, etag = gen_random_uuid()"},

	{"write", "WHEN id IS DISTINCT FROM $3::uuid THEN 'lost'", "WHEN id <> $3::uuid AND false THEN 'lost'"},
	{"write", "WHEN NOT live THEN 'lost'", ""},
	{"write", "WHEN NOT live THEN 'lost'", "WHEN NOT live OR broken THEN 'lost'"},
	{"write", "WHEN etag::text <> $4 THEN 'changed'", "WHEN $4 = '' THEN 'changed'"},
	{"write", "etag = gen_random_uuid()", "etag = md5($5)::uuid"},
	{"write", "etag = gen_random_uuid(), ", ""},
	{"write", "record = $5", "record = $5, ends = j.clock + e.length"},
	{"write", "record = $5", "record = $5, checkpoint = ''"},
	{"write", "SELECT *, clock_timestamp() AS clock FROM locked", "SELECT *, statement_timestamp() AS clock FROM locked"},

	{"save", "WHEN id IS DISTINCT FROM $3::uuid THEN 'lost'", "WHEN id <> $3::uuid AND false THEN 'lost'"},
	{"save", "WHEN NOT live THEN 'lost'", ""},
	{"save", "WHEN etag::text <> $4 THEN 'changed'", "WHEN $4 = '' THEN 'changed'"},
	{"save", "checkpoint = $6::bytea", "checkpoint = substring($6::bytea for 100)"},
	{"save", "record = $5, ", "record = left($5, 0) || e.record, "},
	{"save", "etag = gen_random_uuid(), ", ""},
	{"save", "SELECT *, clock_timestamp() AS clock FROM locked", "SELECT *, statement_timestamp() AS clock FROM locked"},

	{"writeIn", "WHEN id IS DISTINCT FROM $3::uuid THEN 'lost'", "WHEN id <> $3::uuid AND false THEN 'lost'"},
	{"writeIn", "WHEN NOT live THEN 'lost'", ""},
	{"writeIn", "WHEN etag::text <> $4 THEN 'changed'", "WHEN $4 = '' THEN 'changed'"},
	{"writeIn", "IS DISTINCT FROM $6", "= $6 || 'x'"},
	{"writeIn", "SELECT *, clock_timestamp() AS clock FROM locked", "SELECT *, now() AS clock FROM locked"},
	{"writeIn", "'5s'", "'0'"},
	{"writeIn", "record = $5", "record = $5, checkpoint = ''"},
	{"saveIn", "WHEN NOT live THEN 'lost'", ""},
	{"saveIn", "IS DISTINCT FROM $6", "= $6 || 'x'"},
	{"saveIn", "checkpoint = $7::bytea", "checkpoint = coalesce(nullif($7::bytea, ''), e.checkpoint)"},

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
	{"acquireWrite", "WHEN etag::text <> $5 THEN 'changed'", "WHEN $5 = '' THEN 'changed'"},
	{"acquireWrite", "live AND (broken OR id <> $3::uuid)", "live AND broken AND id <> $3::uuid"},
	{"acquireWrite", "id = $3::uuid, length", "id = coalesce(e.id, $3::uuid), length"},
	{"acquireWrite", "ends = j.clock + $4::bigint", "ends = e.ends + $4::bigint"},
	{"acquireWrite", "etag = gen_random_uuid(), ", ""},
	{"acquireWrite", "record = $6", "record = left($6, 0) || e.record"},
	{"writeRelease", "WHEN id IS DISTINCT FROM $3::uuid THEN 'lost'", "WHEN id <> $3::uuid AND false THEN 'lost'"},
	{"writeRelease", "WHEN NOT live THEN 'lost'", ""},
	{"writeRelease", "WHEN etag::text <> $4 THEN 'changed'", "WHEN $4 = '' THEN 'changed'"},
	{"writeRelease", "etag = gen_random_uuid(), ", ""},
	{"writeRelease", "record = $5", "record = left($5, 0) || e.record"},
	{"writeRelease", "id = NULL, ends = '-infinity'", "ends = e.ends"},

	{"load", "e.id IS DISTINCT FROM $2::uuid OR ", "$2::uuid IS NULL OR "},
	{"load", " OR now() >= e.ends", ""},
	{"load", "WHEN e.etag::text <> $3 THEN 'changed'", "WHEN $3 = '' THEN 'changed'"},

	{"release", "WHEN id IS DISTINCT FROM $3::uuid THEN 'lost'", "WHEN $3::uuid IS NULL OR id IS NULL THEN 'lost'"},
	{"release", "WHEN id IS DISTINCT FROM $3::uuid THEN 'lost'", "WHEN id IS DISTINCT FROM $3::uuid OR NOT live THEN 'lost'"},
	{"release", "id = NULL, ends = '-infinity'", "ends = j.clock"},
	{"release", ", broken = false", ", etag = gen_random_uuid()"},

	{"break", "WHEN id IS NULL THEN 'lost'", "WHEN false THEN 'lost'"},
	{"break", "least(e.ends, ", "coalesce(NULL, "},
	{"break", "least(e.ends, j.clock + $3::bigint * interval '1 microsecond')", "least(e.ends, j.clock + 0 * $3::bigint * interval '1 microsecond')"},
	{"break", "broken = true, ", ""},
	{"breakUnchanged", "WHEN etag::text <> $4 THEN 'changed'", "WHEN $4 = '' THEN 'changed'"},
	{"breakUnchanged", "WHEN id IS NULL THEN 'lost'", ""},
	{"breakUnchanged", "WHEN id IS NULL THEN 'lost'", "WHEN id IS NULL OR broken THEN 'lost'"},
	{"breakUnchanged", "least(e.ends, j.clock + $3::bigint * interval '1 microsecond')", "e.ends + 0 * $3::bigint * interval '1 microsecond'"},
	{"breakUnchanged", "broken = true", "broken = true, etag = gen_random_uuid()"},

	{"remove", "WHEN live THEN 'lost'", ""},
	{"remove", "WHEN etag::text <> $3 THEN 'changed'", "WHEN $3 = '' THEN 'changed'"},
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

// What the tests of a process with a mistake get by their environment.
const (
	mistakeVariable = "POSTGRES_MISTAKE"
	urlVariable     = "POSTGRES_MISTAKE_URL"
)

// planted makes the mistake of this process, if it is to have one.
func planted(t testing.TB, s *postgres.Store) *postgres.Store {
	if i, err := strconv.Atoi(os.Getenv(mistakeVariable)); err == nil && !mistakes[i].inCode() {
		m := mistakes[i]
		if !s.Plant(m.statement, m.text, m.with) {
			t.Fatal("it cannot be planted")
		}
	}
	return s
}

// start returns the URL of a server; each process of TestMistakes has a database of one that they share.
func start(t testing.TB) string {
	if url := os.Getenv(urlVariable); url != "" {
		return url
	}
	return server.Start(t)
}

// Each mistake can be made, and a test catches it, or never ends. With -v it prints the tests that fail.
func TestMistakes(t *testing.T) {
	url := ""
	if *mistakesFlag {
		url = server.Start(t)
		if out, err := runMistake(t, os.Args[0], url, "none"); err != nil {
			t.Fatalf("the tests fail without a mistake: %v\n%s", err, out)
		}
	}
	for i, m := range mistakes {
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
		t.Run(m.statement+": "+m.with, func(t *testing.T) {
			t.Parallel()
			program := os.Args[0]
			if m.inCode() {
				program = proctest.Build(t, "host/postgres", true, edit)
			}
			out, err := runMistake(t, program, url, strconv.Itoa(i))
			found := failed.FindAllString(string(out), -1)
			hangs := strings.Contains(string(out), "panic: test timed out")
			if err == nil || len(found) == 0 && !hangs || strings.Contains(string(out), "cannot be planted") || strings.Contains(string(out), "SQLSTATE 42") {
				t.Errorf("not caught: %v\n%.2000s", err, out)
			}
			t.Logf("%q, hangs: %t", found, hangs)
		})
	}
}

// runMistake runs the tests in a database of their own with a mistake.
func runMistake(t *testing.T, program, url, mistake string) ([]byte, error) {
	t.Helper()
	run(t, session(t, url), "CREATE DATABASE mistake"+mistake)
	cmd := exec.Command(program, "-test.run=^(TestStoreInVirtualTime|TestNeighbours|TestJudgedAfterTheWait|TestWaitIsBounded|TestTransaction.*|TestCommitWithoutAnswer|TestStoppedBeforeCommit)$", "-test.timeout=3m")
	cmd.Env = append(os.Environ(), mistakeVariable+"="+mistake, urlVariable+"="+strings.Replace(url, "dbname=postgres", "dbname=mistake"+mistake, 1))
	return cmd.CombinedOutput()
}

var failed = regexp.MustCompile(`FAIL: Test\S+/\S+|FAIL: Test(Wait|Neigh|Transaction|Commit|Stopped)\S+`)
