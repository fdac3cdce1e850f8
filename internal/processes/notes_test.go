//go:build unix

package processes

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/proctest"
)

// A note is a line of the log to which all replicas append.
type note struct {
	token   int64
	replica string
	at      time.Time // works, unaware: when the run had not yet asked whether it may go on
	what    string
}

// What a note tells of its run.
const (
	begins  = "begins"
	works   = "works"   // an effect: neither its context nor its lease had ended
	unaware = "unaware" // no effect: its lease had ended, and its context had not
	ends    = "ends"    // its context has ended
)

// noted has an effect every 20 ms, and asks before each whether it may.
func (o order) noted(ctx context.Context, run *soloist.Run) error {
	tell := func(at time.Time, what string) error {
		return appendLine(o.Log, fmt.Sprintln(run.Token, o.Name, at.UnixNano(), what))
	}
	if err := tell(time.Now(), begins); err != nil {
		return err
	}
	for asked := time.Now(); ctx.Err() == nil; asked = time.Now() {
		what := works
		if run.Heartbeat("working") != nil {
			what = unaware
		}
		if err := tell(asked, what); err != nil {
			return err
		}
		proctest.Pause(ctx, 20*time.Millisecond)
	}
	tell(time.Now(), ends)
	return ctx.Err()
}

// notebook is the log as far as it was read.
type notebook struct {
	file string
	read int64
	all  []note
}

// look reads what has come since the last look.
func (b *notebook) look(t *testing.T) []note {
	t.Helper()
	f, err := os.Open(b.file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, b.read, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	b.read += int64(len(text))
	for line := range bytes.Lines(text) {
		var n note
		var at int64
		if _, err := fmt.Sscan(string(line), &n.token, &n.replica, &at, &n.what); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		n.at = time.Unix(0, at)
		b.all = append(b.all, n)
	}
	return b.all
}

// last returns the newest note of an effect.
func (b *notebook) last(t *testing.T) (n note) {
	t.Helper()
	for _, one := range b.look(t) {
		if one.what == works {
			n = one
		}
	}
	return n
}

// await waits for the first note that ok accepts.
func (b *notebook) await(t *testing.T, what string, ok func(note) bool) (n note) {
	t.Helper()
	proctest.Poll(t, what, patience, func() bool {
		all := b.look(t)
		i := slices.IndexFunc(all, ok)
		if i >= 0 {
			n = all[i]
		}
		return i >= 0
	})
	return n
}

// effectAfter waits for the first effect under a larger token.
func (b *notebook) effectAfter(t *testing.T, token int64) note {
	t.Helper()
	return b.await(t, fmt.Sprint("an effect after token ", token), func(n note) bool { return n.what == works && n.token > token })
}

// A summary is what a log shows.
type summary struct {
	runs    int
	smaller []note // beginnings of runs with a token no larger than one before
	overlap []note // effects of a run that still believed in its lease when one with a larger token had begun
	unaware int    // times that a context had not ended yet though its lease had
}

func summarize(all []note) (s summary) {
	began := map[int64]time.Time{}
	var largest int64
	for _, n := range all {
		if n.what == begins {
			if s.runs++; n.token <= largest {
				s.smaller = append(s.smaller, n)
			}
			largest = max(largest, n.token)
			began[n.token] = n.at
		}
	}
	for _, n := range all {
		if n.what == unaware {
			s.unaware++
		}
		for token, at := range began {
			if n.what == works && token > n.token && n.at.After(at) {
				s.overlap = append(s.overlap, n)
				break
			}
		}
	}
	return s
}

// check checks that tokens grow and that no two runs have effects at once. It returns how many there were.
func (b *notebook) check(t *testing.T) summary {
	t.Helper()
	s := summarize(b.look(t))
	if len(s.smaller) > 0 {
		t.Errorf("%d runs began under a token that was not new, first %+v", len(s.smaller), s.smaller[0])
	}
	if len(s.overlap) > 0 {
		t.Errorf("%d effects of a run after the next one had begun, first %+v", len(s.overlap), s.overlap[0])
	}
	return s
}

// The summary of a log finds two runs at once.
func TestSummaryOfNotes(t *testing.T) {
	t.Parallel()
	at := func(token, ms int64, what string) note { return note{token, "a", time.UnixMilli(ms), what} }
	for name, tt := range map[string]struct {
		all                        []note
		runs, smaller, overlapping int
	}{
		"one after the other":  {[]note{at(1, 1, begins), at(1, 2, works), at(2, 3, begins), at(2, 4, works), at(1, 5, ends)}, 2, 0, 0},
		"written late":         {[]note{at(1, 1, begins), at(2, 3, begins), at(2, 4, works), at(1, 2, works)}, 2, 0, 0},
		"at once":              {[]note{at(1, 1, begins), at(2, 3, begins), at(1, 4, works), at(2, 5, works)}, 2, 0, 1},
		"unaware":              {[]note{at(1, 1, begins), at(2, 3, begins), at(1, 4, unaware)}, 2, 0, 0},
		"the same token twice": {[]note{at(1, 1, begins), at(1, 2, begins)}, 2, 1, 0},
	} {
		if s := summarize(tt.all); s.runs != tt.runs || len(s.smaller) != tt.smaller || len(s.overlap) != tt.overlapping {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}
