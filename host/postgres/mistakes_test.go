package postgres_test

import (
	"crypto/rand"
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

	// Calls that share a statement: one for each of them, waits, answers that get mixed up, contexts, what is sent again.
	{"change.go", "	if others {", "	if others && len(waiting) < 1 {"},
	{"change.go", "if names[b.name] || len(all)", "if len(all)"},
	{"change.go", " || len(all) == mostTogether", ""},
	{"change.go", "forUpdate, forUpdateFree, 1)", "forUpdate, forUpdate, 1)"},
	{"change.go", "		values[j] = a.args[i].(T)", "		_, values[j] = a, all[0].args[i].(T)"},
	{"change.go", "a.verdict, a.revision = answers[a.name].verdict, answers[a.name].revision", "a.verdict, a.revision = answers[all[0].name].verdict, answers[all[0].name].revision"},
	{"change.go", "runAll(context.WithoutCancel(ctx), conn, all)", "runAll(ctx, conn, all)"},
	{"change.go", "		go runAll(", "		runAll("},
	{"change.go", "	ctx, cancel := context.WithDeadline(ctx, until)", "	ctx, cancel := context.WithDeadline(ctx, until.Add(time.Hour))"},
	{"change.go", "	if isRefusal(err) {", "	if false {"},
	{"change.go", "	if isRefusal(err) {", "	if err != nil {"},
	{"change.go", "e.SeverityUnlocalized == \"ERROR\"", "e.SeverityUnlocalized != \"\""},
	{"change.go", "		return s.changeBy(ctx, s.pool, a)\n	}\n	return a.answer()", "		return a.answer()\n	}\n	return a.answer()"},
	{"change.go", "	case all == nil && err == nil: // another call has taken it along\n		conn.Release()", "	case all == nil && err == nil:"},

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

// start returns the URL of a server. Each test of a process of TestMistakes has a database of one that they share.
func start(t testing.TB) string {
	url := os.Getenv(urlVariable)
	if url == "" {
		return server.Start(t)
	}
	name := "test" + strings.ToLower(rand.Text())
	run(t, session(t, url), "CREATE DATABASE "+name)
	return strings.Replace(url, "dbname=postgres", "dbname="+name, 1)
}

// Each mistake can be made, and a test catches it, or never ends. With -v it prints the tests that fail.
func TestMistakes(t *testing.T) {
	for _, m := range mistakes {
		if m.inCode() {
			if _, err := proctest.Edited(m.edit()); err != nil {
				t.Error(err)
			}
		} else if !open(t, postgres.Config{URL: "host=/nowhere"}).Plant(m.statement, m.text, m.with) {
			t.Errorf("%s: no %q, or more than one", m.statement, m.text)
		}
	}
	if !*mistakesFlag {
		return // it takes minutes
	}
	url := server.Start(t)
	if out, err := tested(os.Args[0], "", url); err != nil {
		t.Fatalf("without a mistake: %v\n%s", err, out)
	}
	for i, m := range mistakes {
		t.Run(m.statement+": "+m.with, func(t *testing.T) {
			t.Parallel()
			program := os.Args[0]
			if m.inCode() {
				program = proctest.Build(t, "host/postgres", true, m.edit())
			}
			out, err := tested(program, strconv.Itoa(i), url)
			found := failed.FindAllString(out, -1)
			hangs := strings.Contains(out, "panic: test timed out")
			if err == nil || len(found) == 0 && !hangs || strings.Contains(out, "cannot be planted") || strings.Contains(out, "SQLSTATE 42") {
				t.Errorf("not caught: %v\n%.2000s", err, out)
			}
			t.Logf("%q, hangs: %t", found, hangs)
		})
	}
}

func (m mistake) edit() proctest.Edit {
	return proctest.Edit{File: "host/postgres/" + m.statement, Old: m.text, New: m.with}
}

// tested runs the tests that look for mistakes in a process with one, or with none.
func tested(program, mistake, url string) (out string, err error) {
	cmd := exec.Command(program, "-test.timeout=2m", "-test.run=^(TestStoreInVirtualTime|TestNeighbours|TestJudgedAfterTheWait|"+
		"TestWaitIsBounded|TestTransaction.*|TestCommitWithoutAnswer|TestStoppedBeforeCommit|TestTogether.*)$")
	cmd.Env = append(os.Environ(), mistakeVariable+"="+mistake, urlVariable+"="+url)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

var failed = regexp.MustCompile(`FAIL: Test\S+/\S+|FAIL: Test(Together|Wait|Neigh|Transaction|Commit|Stopped)\S*`)
