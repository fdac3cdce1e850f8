package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

const (
	batch    = 10               // outcomes that are waited for; a record has twenty
	longest  = time.Hour        // that an outcome waits for others
	rest     = time.Minute      // between two looks at what waits
	again    = 10 * time.Second // after a failure
	tidying  = 24 * time.Hour   // between two looks at what is too old
	patience = 10 * time.Second // with one job
	farewell = 5 * time.Second  // at the end, with all jobs
	mostKept = 100              // outcomes of a job in memory
)

// A Writer writes the logs of one replica's jobs. Give its Take to the Scheduler's Events,
// and run Run in parallel with the Scheduler.
type Writer struct {
	Store interface {
		store.Store
		store.Appender
	}
	App  string
	Keep Keep

	// Details is about how many bytes of details of failures are kept of each job; zero: none are.
	Details int64

	// Failed is called for each job whose log could not be written; the next try follows. It may be nil.
	Failed func(job string, err error)

	mu   sync.Mutex
	jobs map[string]*waiting
	held int // bytes of the details that wait
	wake chan struct{}
}

// A waiting is what is known of a job between two writes.
type waiting struct {
	count  int       // outcomes that this replica has ended and not seen in the log
	since  time.Time // the first of them
	token  int64     // the largest of them
	kept   []Line    // those, the oldest first: the record may forget some before the log can be written, and has none of a backfill
	known  bool      // the end of the log is
	logged int64     // the largest token that is in the log, or in count
	tries  time.Time // not before this instant, after a failure

	failures []failure // whose details wait
	tell     time.Time // not before this instant

	tail *end      // of their logs, of Run alone; nil: it has to be looked for
	read time.Time // when that was
	end  *end      // of Run alone; nil: it has to be read
	tidy time.Time // of Run alone: the last look at what is too old
}

// Take notes an event. It never waits for the store.
func (w *Writer) Take(e event.Event) {
	everywhere := e.Kind == event.Ended && e.Run.Token == 0 // a job of EveryReplica has no record
	if e.Kind != event.Ended && e.Kind != event.Settled || e.Job == "" || everywhere {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prepare()
	j := w.jobs[e.Job]
	if j == nil {
		j = &waiting{}
		w.jobs[e.Job] = j
	}
	if j.count == 0 {
		j.since = time.Now()
	}
	j.count++
	j.token = max(j.token, e.Run.Token)
	j.kept = append(j.kept[max(0, len(j.kept)+1-mostKept):], Line{Outcome: shortened(e.Outcome), seen: e.Time})
	if tells := w.hold(j, &e); tells || j.due(time.Now()) {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (w *Writer) prepare() {
	if w.jobs == nil {
		w.jobs, w.wake = map[string]*waiting{}, make(chan struct{}, 1)
	}
}

// due reports whether it is time to write. The first outcome of a replica is written at
// once, since a replica that died may have left a log to be mended; after that tokens count the runs of all replicas.
func (j *waiting) due(now time.Time) bool {
	switch {
	case j.count == 0 || now.Before(j.tries):
		return false
	case !j.known || j.count >= batch || j.token-j.logged >= batch:
		return true
	}
	return now.Sub(j.since) >= longest
}

// Run writes until ctx ends, and then what waits. A write that is under way then goes on:
// otherwise its calls would have to be made a second time.
func (w *Writer) Run(ctx context.Context) {
	w.mu.Lock()
	w.prepare()
	w.mu.Unlock()
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	context.AfterFunc(ctx, func() { time.AfterFunc(farewell, cancel) })
	for ctx.Err() == nil {
		for _, job := range w.due(func(j *waiting) bool { return j.due(time.Now()) }) {
			if ctx.Err() == nil {
				w.write(calls, job)
			}
		}
		for _, job := range w.due(func(j *waiting) bool { return j.tells(time.Now()) }) {
			if ctx.Err() == nil {
				w.writeDetails(calls, job)
			}
		}
		timer := time.NewTimer(rest)
		select {
		case <-w.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	for _, job := range w.due(func(j *waiting) bool { return j.count > 0 }) {
		w.write(calls, job)
	}
	for _, job := range w.due(func(j *waiting) bool { return len(j.failures) > 0 }) {
		w.writeDetails(calls, job)
	}
}

// due lists the jobs that a function picks.
func (w *Writer) due(picks func(*waiting) bool) (jobs []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for job, j := range w.jobs {
		if picks(j) {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// write brings the log of a job up to its record, and notes what came of it. What is due
// for the sake of tokens alone may have been written by another replica, so the end of the
// log is read again, and written only if there is enough.
func (w *Writer) write(ctx context.Context, job string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w.mu.Lock()
	j := w.jobs[job]
	before, least, kept := j.count, 1, slices.Clone(j.kept)
	if j.known && before < batch && j.token-j.logged >= batch && time.Since(j.since) < longest {
		j.end, least = nil, batch
	}
	w.mu.Unlock()
	left, err := w.bring(ctx, job, j, kept, least)
	now, brought := time.Now(), err == nil
	if brought && now.Sub(j.tidy) >= tidying {
		j.tidy, err = now, w.Keep.tidy(ctx, w.Store, j.end, now)
	}
	if err != nil && w.Failed != nil {
		w.Failed(job, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	j.known = j.end != nil
	if brought { // if not, all that waited still waits, also if the end of the log is known
		j.count, j.logged = j.count-before+left, max(j.end.token, j.token-int64(left))
	}
	if brought && left == 0 {
		j.since, j.kept = now, slices.DeleteFunc(j.kept, func(l Line) bool { return slices.Contains(kept, l) })
	}
	if err != nil {
		j.tries = now.Add(again)
	}
}

// bring appends what the log lacks, if that is not less than least, and returns how much
// it has left. kept are outcomes of this replica. An append that another replica was faster than, and one whose outcome is
// unclear, have the end of the log read again.
func (w *Writer) bring(ctx context.Context, job string, j *waiting, kept []Line, least int) (left int, err error) {
	entry := w.App + "/" + job
	for range 5 {
		rec, err := w.record(ctx, job)
		if err != nil {
			return 0, err
		}
		if j.end == nil {
			if j.end, err = look(ctx, w.Store, entry); err != nil {
				return 0, err
			}
		}
		news := j.end.with(kept, complete(j.end.missing(&rec), &rec), &rec)
		if left = len(news); left >= least {
			left, err = 0, j.end.append(ctx, w.Store, entry, news)
		}
		if err == nil {
			j.end.forget(&rec, kept)
			return left, nil
		}
		if j.end = nil; !errors.Is(err, store.ErrChanged) {
			return 0, err
		}
	}
	return 0, fmt.Errorf("log of %s: other replicas were faster five times", entry)
}

func (w *Writer) record(ctx context.Context, job string) (record.Record, error) {
	read, err := w.Store.Read(ctx, w.App+"/"+job)
	if err != nil {
		return record.Record{}, err
	}
	return record.Decode(read.Record, w.App, job)
}
