package sim

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// The contract checker holds each answer about a document to what was written before.
func TestContractCheckerOfDocuments(t *testing.T) {
	const read, write = "read document", "write document"
	kept := &store.Document{Revision: store.Revision{ETag: "one"}, Body: []byte("first")}
	for name, one := range map[string]struct {
		kept      *store.Document // nil: there is none
		op, etag  string
		got, body string // ETag and document of the answer
		err       error
		says      string // empty: nothing is wrong
	}{
		"read of none":                 {nil, read, "", "", "", fs.ErrNotExist, ""},
		"read of none is empty":        {nil, read, "", "", "", nil, "want file does not exist"},
		"read":                         {kept, read, "", "one", "first", nil, ""},
		"read of another document":     {kept, read, "", "one", "second", nil, "the document"},
		"read of another ETag":         {kept, read, "", "two", "first", nil, "the ETag"},
		"unchanged":                    {kept, read, "one", "one", "", store.ErrUnchanged, ""},
		"changed is told unchanged":    {kept, read, "old", "one", "", store.ErrUnchanged, "want <nil>"},
		"unchanged is sent":            {kept, read, "one", "one", "first", nil, "has not changed"},
		"write":                        {kept, write, "one", "two", "", nil, ""},
		"write with an old ETag":       {kept, write, "old", "two", "", nil, "changed by another"},
		"create over one":              {kept, write, "", "two", "", nil, "changed by another"},
		"create":                       {nil, write, "", "one", "", nil, ""},
		"write of none":                {nil, write, "old", "two", "", nil, "changed by another"},
		"write without a new ETag":     {kept, write, "one", "one", "", nil, "not new"},
		"write that is unclear":        {kept, write, "one", "", "", errors.New("try again"), "try again"},
		"refused without any reason":   {kept, write, "one", "", "", store.ErrChanged, "want <nil>"},
		"refused, and the ETag is old": {kept, write, "old", "", "", store.ErrChanged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := new(contractChecker)
			e := &trace.Event{Op: write, Job: ".control"}
			if k := one.kept; k != nil {
				c.judge(e, errand{checkpoint: k.Body}, result{Entry: store.Entry{Revision: k.Revision}}, time.Time{})
			}
			e = &trace.Event{Op: one.op, Job: ".control"}
			got := result{Entry: store.Entry{Revision: store.Revision{ETag: one.got}}, checkpoint: []byte(one.body), err: one.err}
			wrong := strings.Join(c.judge(e, errand{etag: one.etag, checkpoint: []byte("second")}, got, time.Time{}), "; ")
			if (wrong == "") != (one.says == "") || !strings.Contains(wrong, one.says) {
				t.Errorf("got %q, want %q", wrong, one.says)
			}
		})
	}
}
