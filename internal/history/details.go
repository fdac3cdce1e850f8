package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
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
	all := slices.Clip(j.failures)
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
		if j.tail == nil || time.Since(j.read) >= tidying {
			if j.tail, err = w.lookAtDetails(ctx, entry); err != nil {
				return done, err
			}
			j.read = time.Now()
		}
		b, n, err := encodeSome(all[done:])
		if err != nil {
			return done, err
		}
		if err := j.tail.write(ctx, w.Store, entry, b); err != nil {
			j.tail = nil
			if faster++; faster == 5 || !errors.Is(err, store.ErrChanged) {
				return done, err
			}
			continue
		}
		if done += n; j.tail.size == 0 {
			j.tail = nil // a new log is also when the oldest may go
		}
	}
	return done, nil
}

// lookAtDetails finds the end of a job's logs of details, and removes those that are too old or too many.
func (w *Writer) lookAtDetails(ctx context.Context, entry string) (*end, error) {
	parts, err := list(ctx, w.Store, entry, ofDetails)
	if err != nil {
		return nil, err
	}
	e := endOf(parts, ofDetails, fullDetails)
	e.torn = true // it may be: that is not read
	if err := (Keep{Age: w.Keep.Age, Bytes: w.Details}).tidy(ctx, w.Store, e, time.Now()); err != nil {
		return nil, err
	}
	return e, nil
}

// encodeSome returns as many lines as one append takes, at least one, and how many they are.
func encodeSome(all []failure) (b []byte, n int, err error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // no browser takes it for a page
	for _, f := range all {
		before := text.Len()
		if err := e.Encode(&f); err != nil {
			return nil, 0, err
		}
		if text.Len() >= store.MaxAppend && n > 0 { // the end of a torn line may come before it
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
