package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// Details of failures have logs of their own, of a line of JSON for each failure. So a reader of outcomes does not read them,
// and they need not wait until an outcome may be logged. The replica that ran the job writes them, within a minute; a replica
// that dies loses those that it has not written. A line may be there twice.
const (
	ofDetails   = "detail-" // begins the names of those logs
	fullDetails = 1 << 20   // a log of them that is so large is not written any more
	mostHeld    = 8 << 20   // bytes of details in memory, of all jobs
	mostDetail  = 16 << 10  // bytes of one of them
	notHeld     = "the details were not kept: those of too many failures waited for the log\n"
	detailsRest = time.Minute // between two writes for a job
)

// A failure is a line in a log of details.
type failure struct {
	event.Outcome
	Detail string `json:"detail"`
}

// A tail is the end of a job's logs of details, as it was read or written last.
type tail struct {
	number int
	size   int64
	parts  []extent
	read   time.Time
	torn   bool // the end may be in the middle of a line
}

// hold keeps the detail of an event until it is written, and reports whether it may be written now.
func (w *Writer) hold(j *waiting, e *event.Event) bool {
	if e.Detail == "" || w.Details == 0 || len(j.failures) >= mostKept {
		return false
	}
	f := failure{shortened(e.Outcome), strings.Clone(e.Detail[:min(len(e.Detail), mostDetail)])}
	if w.held+len(f.Detail) > mostHeld {
		f.Detail = notHeld
	}
	j.failures, w.held = append(j.failures, f), w.held+len(f.Detail)
	return j.tells(time.Now())
}

// tells reports whether details may be written.
func (j *waiting) tells(now time.Time) bool { return len(j.failures) > 0 && !now.Before(j.tell) }

// writeDetails appends the details of a job that wait, and notes what came of it.
func (w *Writer) writeDetails(ctx context.Context, job string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w.mu.Lock()
	j := w.jobs[job]
	all := j.failures[:len(j.failures):len(j.failures)]
	w.mu.Unlock()
	n, err := w.appendDetails(ctx, j, w.App+"/"+job, all)
	if err != nil && w.Failed != nil {
		w.Failed(job, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range all[:n] {
		w.held -= len(f.Detail)
	}
	j.failures = append([]failure(nil), j.failures[n:]...)
	j.tell = time.Now().Add(detailsRest)
	if err != nil {
		j.tell = time.Now().Add(again)
	}
}

// appendDetails returns how many it has appended.
func (w *Writer) appendDetails(ctx context.Context, j *waiting, entry string, all []failure) (done int, err error) {
	for faster := 0; done < len(all); {
		if j.tail == nil || time.Since(j.tail.read) >= tidying {
			if j.tail, err = w.lookAtDetails(ctx, entry); err != nil {
				return done, err
			}
		}
		b, n, err := j.tail.encode(all[done:])
		if err != nil {
			return done, err
		}
		name := store.LogName(entry, ofDetails+part(j.tail.number))
		if err := w.Store.Append(ctx, name, j.tail.size, b); err != nil {
			j.tail = nil
			if faster++; faster == 5 || !errors.Is(err, store.ErrChanged) {
				return done, err
			}
			continue
		}
		done, j.tail.torn = done+n, false
		if j.tail.size += int64(len(b)); j.tail.size >= fullDetails {
			j.tail = nil // which is also when the oldest may go
		}
	}
	return done, nil
}

// lookAtDetails finds the end of a job's logs of details, and removes those that are too old or too many.
func (w *Writer) lookAtDetails(ctx context.Context, entry string) (*tail, error) {
	parts, err := list(ctx, w.Store, entry, ofDetails)
	if err != nil {
		return nil, err
	}
	e := &end{parts: parts}
	if err := (Keep{Age: w.Keep.Age, Bytes: w.Details}).tidy(ctx, w.Store, e, time.Now()); err != nil {
		return nil, err
	}
	t := &tail{number: 1, torn: true, read: time.Now()}
	if n := len(e.parts); n > 0 {
		last := e.parts[n-1]
		t.number, _ = strconv.Atoi(strings.TrimPrefix(path.Base(last.name), ofDetails))
		if t.size = last.size; t.size >= fullDetails {
			t.number, t.size = t.number+1, 0
		}
	}
	return t, nil
}

// encode returns as many lines as one append takes, at least one, and how many they are.
func (t *tail) encode(all []failure) (b []byte, n int, err error) {
	var text bytes.Buffer
	if t.torn && t.size > 0 {
		text.WriteByte('\n')
	}
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // no browser takes it for a page
	for _, f := range all {
		before := text.Len()
		if err := e.Encode(&f); err != nil {
			return nil, 0, err
		}
		if text.Len() > store.MaxAppend && n > 0 {
			text.Truncate(before)
			break
		}
		n++
	}
	return text.Bytes(), n, nil
}

// Details returns what is known of failures besides their outcomes, by these outcomes. Where nothing is, it has an empty text.
func Details(ctx context.Context, s store.Appender, entry string, of []event.Outcome) ([]string, error) {
	texts, missing := make([]string, len(of)), len(of)
	parts, err := list(ctx, s, entry, ofDetails)
	for i := len(parts) - 1; i >= 0 && missing > 0 && err == nil; i-- {
		var b []byte
		b, err = s.ReadLog(ctx, parts[i].name, 0, int(parts[i].size))
		if errors.Is(err, fs.ErrNotExist) { // it has become too old
			err = nil
		}
		for line := range bytes.Lines(b) {
			var f failure
			if json.Unmarshal(line, &f) != nil || f.Detail == "" {
				continue
			}
			for k := range of {
				if texts[k] == "" && of[k].Token == f.Token && of[k].Tick.Equal(f.Tick) {
					texts[k], missing = f.Detail, missing-1
				}
			}
		}
	}
	return texts, err
}
