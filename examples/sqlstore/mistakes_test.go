package sqlstore_test

import (
	"flag"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/internal/proctest"
)

var (
	mistakesFlag = flag.Bool("mistakes", false, "build the store with each mistake and demand that it is caught")
	mistakeFlag  = flag.String("mistake", "", "only those whose name contains this")
)

// A mistake is what a careless author writes instead.
type mistake struct {
	name, text, with string
}

// mistakes are those that can be made in each file.
var mistakes = map[string][]mistake{"sqlstore.go": entryMistakes, "document.go": documentMistakes, "list.go": listMistakes, "log.go": logMistakes}

var entryMistakes = []mistake{
	{"no look at the ETag in Acquire", "\t\tcase r.etag != etag:\n\t\t\treturn store.ErrChanged\n\t\t}\n\t\tr.id,", "\t\t}\n\t\tr.id,"},
	{"no look at the ETag in Write", "\tif r.etag != etag {\n\t\treturn store.ErrChanged\n\t}\n", ""},
	{"no look at the id in Write", "\tif r.id != id || !r.state().Live() {", "\tif r.id == \"\" || !r.state().Live() {"},
	{"no look at the time in Write", "\tif r.id != id || !r.state().Live() {", "\tif r.id != id {"},
	{"expiry compared the wrong way round", "\tlive := r.now < r.ends\n", "\tlive := r.now > r.ends\n"},
	{"expiry in another unit", "\tlive := r.now < r.ends\n", "\tlive := r.now/1e6 < r.ends/1e6\n"},
	{"leases end a second early", "\tlive := r.now < r.ends\n", "\tlive := r.now+1e6 < r.ends\n"},
	{"leases do not end", "\tlive := r.now < r.ends\n", "\tlive := r.ends > 0\n"},
	{"an expired lease cannot be renewed", "\t\tif r.id != l.id || r.broken {\n", "\t\tif r.id != l.id || r.state() != store.Leased {\n"},
	{"a broken lease can be renewed", "\t\tif r.id != l.id || r.broken {\n", "\t\tif r.id != l.id {\n"},
	{"Renew for any id", "\t\tif r.id != l.id || r.broken {\n", "\t\tif r.id == \"\" || r.broken {\n"},
	{"one id per process", "return &lease{s, name, id} }", "return &lease{s, name, \"process\"} }"},
	{"no look at the ETag in BreakUnchanged", "\t\tif r.etag != etag {\n\t\t\treturn store.ErrChanged\n\t\t}\n\t\treturn r.end(0)\n", "\t\treturn r.end(0)\n"},
	{"BreakUnchanged waits for the end of the lease", "\t\treturn r.end(0)\n", "\t\treturn r.end(-1)\n"},
	{"a broken lease cannot be broken again", "\tif r.id == \"\" {\n\t\treturn store.ErrLost\n\t}\n\tif period", "\tif r.id == \"\" || r.broken {\n\t\treturn store.ErrLost\n\t}\n\tif period"},
	{"Release for any id", "\t\tif r.id != l.id {\n\t\t\treturn store.ErrLost\n\t\t}\n\t\tr.id = \"\"\n", "\t\tr.id = \"\"\n"},
	{"Release lets it run out", "\t\tr.id = \"\"\n\t\treturn nil\n", "\t\tr.ends = r.now\n\t\treturn nil\n"},
	{"Acquire only what is available", "\t\tcase r.state().Live() && (r.id != l.id || r.broken):", "\t\tcase r.state() != store.Available && (r.id != l.id || r.broken):"},
	{"Acquire again is refused", "\t\tcase r.state().Live() && (r.id != l.id || r.broken):", "\t\tcase r.state().Live():"},
	{"Acquire what is being broken", "\t\tcase r.state().Live() && (r.id != l.id || r.broken):", "\t\tcase r.state() == store.Leased && r.id != l.id:"},
	{"Write renews", "\t\tr.record, r.etag = record, rand.Text()\n", "\t\tr.record, r.etag = record, rand.Text()\n\t\tr.ends = r.now + r.length\n"},
	{"the ETag is one of the content", "r.record, r.etag = record, rand.Text()", "r.record, r.etag = record, fmt.Sprintf(\"%x\", record)"},
	{"the ETag changes with the lease", "\t\tr.ends = r.now + r.length\n\t\treturn nil\n\t})\n}\n\nfunc (l *lease) Write", "\t\tr.ends, r.etag = r.now+r.length, rand.Text()\n\t\treturn nil\n\t})\n}\n\nfunc (l *lease) Write"},
	{"ETags begin anew with the entry", "\tetag := rand.Text()\n", "\tetag := \"1\"\n"},
	{"Create replaces the record", "ON CONFLICT (name) DO NOTHING", "ON CONFLICT (name) DO UPDATE SET record = excluded.record, etag = excluded.etag, version = excluded.version"},
	{"the update is unconditional", "broken = $10 WHERE name = $1 AND version = $2`", "broken = $10 WHERE name = $1 AND (version = $2 OR 1 = 1)`"},
	{"Save forgets the checkpoint", "\t\t\tr.checkpoint = &checkpoint\n", "\t\t\t_ = checkpoint\n"},
	{"Save forgets the record", "\t\tr.record, r.etag = record, rand.Text()\n", "\t\tif checkpoint == nil {\n\t\t\tr.record = record\n\t\t}\n\t\tr.etag = rand.Text()\n"},
	{"Load for anybody", "\t\terr = r.guard(l.id, etag)\n\t}\n\tif err", "\t\t_ = r.guard\n\t}\n\tif err"},
	{"no Date", "Date: time.UnixMicro(r.now)", "Date: time.Time{}"},
	{"no Date where there is no entry", "\t\treturn row{now: now()}, fs.ErrNotExist", "\t\treturn row{now: now() * 0}, fs.ErrNotExist"},
	{"the Date of the last write", "Date: time.UnixMicro(r.now)", "Date: time.UnixMicro(max(r.ends-r.length, 1))"},
	{"the Date is an hour off", "Date: time.UnixMicro(r.now)", "Date: time.UnixMicro(r.now + 3600e6)"},
}

var documentMistakes = []mistake{
	{"a document is replaced whatever its ETag", "WHERE name = $1 AND etag = $2`", "WHERE name = $1 AND (etag = $2 OR 1 = 1)`"},
	{"a document is made over another", "ON CONFLICT (name) DO NOTHING", "ON CONFLICT (name) DO UPDATE SET checkpoint = excluded.checkpoint, etag = excluded.etag"},
	{"a document is made by a write with an ETag", "\tif etag == \"\" {\n", "\tif _, err := s.ReadDocument(ctx, name, \"\"); etag == \"\" || err != nil {\n"},
	{"a refused document is no error", "\tif err == nil && !done {\n\t\terr = store.ErrChanged\n\t}\n", "\t_ = done\n"},
	{"a document that has changed is told unchanged", "case err == nil && d.ETag == etag:", "case err == nil && etag != \"\":"},
	{"a document that has not changed is sent", "CASE WHEN etag = $2 THEN NULL ELSE checkpoint END", "CASE WHEN etag = $2 THEN checkpoint ELSE checkpoint END"},
	{"a document that has not changed is empty", "case err == nil && d.ETag == etag:", "case false:"},
	{"no document is an empty one", "\t\terr = fs.ErrNotExist\n", "\t\t_, err = fs.ErrNotExist, nil\n"},
	{"the ETag of a document is one of its content", "\tnext := rand.Text()\n", "\tnext := fmt.Sprintf(\"%s%x\", rand.Text()[:0], body)\n"},
	{"the ETag of a document is the old one", "store.Revision{ETag: next,", "store.Revision{ETag: etag,"},
	{"a document has no Date", "store.Revision{Date: time.UnixMicro(now())}", "store.Revision{Date: time.UnixMicro(now()).Add(-time.Hour)}"},
	{"a document of any length is taken", "if len(body) > store.MaxDocument {", "if len(body) > 4*store.MaxDocument {"},
	{"one document for all names", "ctx, insertDocument, name,", "ctx, insertDocument, name[:1],"},
	{"a document ends at a zero byte", "\tbody = append([]byte{}, body...) // not nil\n", "\tbody = append([]byte{}, body...)\n\tfor i, b := range body {\n\t\tif b == 0 {\n\t\t\tbody = body[:i]\n\t\t\tbreak\n\t\t}\n\t}\n"},
}

var listMistakes = []mistake{
	{"a list leaves out the last entry", "\tfor _, e := range all {\n", "\tfor _, e := range all[:max(len(all)-1, 0)] {\n"},
	{"a list has documents", " && !strings.HasPrefix(e.name, app+\"/.\")", " && strings.HasPrefix(e.name, app)"},
	{"a list has other apps", "len(app)+1, app+\"/\")", "len(app), app)"},
	{"a list goes on after the end was asked for", "\t\t\treturn nil\n\t\t}\n\t}\n\treturn err\n}\n\ntype named", "\t\t\tcontinue\n\t\t}\n\t}\n\treturn err\n}\n\ntype named"},
	{"a list is in no order", "cmp.Compare(a.name, b.name)", "cmp.Compare(b.name, a.name)"},
	{"a list has old entries", "func scan(rows *sql.Rows, now int64) (all []named, err error) {\n", "var old []named\n\nfunc scan(rows *sql.Rows, now int64) (all []named, err error) {\n\tif old != nil {\n\t\trows.Close()\n\t\treturn old, nil\n\t}\n\tdefer func() { old = all }()\n"},
	{"a list knows no time", "row{now: now}", "row{now: now * 0}"},
	{"a list has the ETag of another entry", "\t\tall = append(all, e)\n", "\t\tif len(all) > 0 {\n\t\t\te.row.etag = all[0].row.etag\n\t\t}\n\t\tall = append(all, e)\n"},
	{"a list has no records", "SELECT name, etag, record,", "SELECT name, etag, '',"},
	{"a list hides its failure", "\t\treturn err\n\t}\n\tall, err := scan", "\t\treturn nil\n\t}\n\tall, err := scan"},
}

var logMistakes = []mistake{
	{"a log takes an append at any size", "start = 0 AND size = $2`", "start = 0 AND (size = $2 OR 1 = 1)`"},
	{"a log does not grow", "SET size = $3 WHERE", "SET size = size + 0 * $3 WHERE"},
	{"a removed log leaves bytes", "\"DELETE FROM soloist_log WHERE name = $1\"", "\"DELETE FROM soloist_log WHERE name = $1 AND start = 0\""},
	{"a log is read without its end", "start < $3 AND start + length(bytes) > $2", "start < $3 AND start + length(bytes) > $2 + 1"},
	{"a log is read from its first byte on", "max(offset-start, 0)", "max(0*offset, 0)"},
}

// Each mistake can be made, and the suite catches it. With -v it prints the tests that fail.
func TestMistakes(t *testing.T) {
	for file, all := range mistakes {
		for _, m := range all {
			if strings.Contains(m.name, *mistakeFlag) {
				m.test(t, proctest.Edit{File: "examples/sqlstore/" + file, Old: m.text, New: m.with})
			}
		}
	}
}

func (m mistake) test(t *testing.T, edit proctest.Edit) {
	if _, err := proctest.Edited(edit); err != nil {
		t.Errorf("%s: %v", m.name, err)
		return
	}
	if !*mistakesFlag {
		return // it takes minutes
	}
	t.Run(m.name, func(t *testing.T) {
		program := proctest.Build(t, "examples/sqlstore", true, edit)
		out, err := exec.Command(program, "-test.run=^TestSQLite$", "-test.timeout=1m").CombinedOutput()
		if err == nil {
			t.Error("not caught")
		}
		t.Logf("%q", failed.FindAllString(string(out), -1))
	})
}

var failed = regexp.MustCompile(`FAIL: TestSQLite/\S+`)
