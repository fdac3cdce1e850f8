package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
)

// lasting reports whether the cause does not pass by itself: this replica may not
// write, or the record is too large.
func (d *denial) lasting() bool {
	return errors.Is(d.err, fs.ErrPermission) || errors.Is(d.err, lease.ErrNotEncoded)
}

// A deniedError says that this replica can lease an entry and not write it.
type deniedError struct{ err error }

func (e *deniedError) Unwrap() error { return e.err }

func (e *deniedError) Error() string {
	advice := "see why the store fails writes"
	switch {
	case errors.Is(e.err, lease.ErrNotEncoded):
		advice = "shorten the record"
	case errors.Is(e.err, fs.ErrPermission):
		advice = "grant it write access"
	}
	return fmt.Sprintf("this replica can lease the entry and not write it: it leaves the job to other replicas and tries again within a minute of each failure: %s: %v", advice, e.err)
}

// standBack leaves the job to other replicas for a while, since this one cannot
// write the entry. Only a write that succeeds proves that it can again.
func (r *Runner) standBack(err error) time.Duration {
	r.denial.err, r.denial.etag = &deniedError{err}, r.view.etag
	r.note(r.denial.err)
	return r.readAgain(r.denial.pause.Next())
}

// forgive forgets a failed write once the record has been written since, unless
// a missing permission or a record that is too large has caused it: the store
// takes writes again, and this replica may have none to try for long.
func (r *Runner) forgive() {
	if d := &r.denial; d.err != nil && !d.lasting() && r.view.etag != d.etag {
		d.err = nil
	}
}

// mayWrite notes that a write of this replica has succeeded.
func (r *Runner) mayWrite() {
	r.denial.err = nil
	r.denial.pause.Reset()
}
