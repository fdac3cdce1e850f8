package past

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/history"
)

const (
	laneTime  = 24 * time.Hour         // a cell that is older is kept only if its lane has few
	laneLeast = 60                     // that many
	laneMost  = 1440                   // cells of one lane: a day of minutes
	laneKnown = 40                     // outcomes of a lane that its record is compared with, which has up to twenty
	stripMost = 360_000                // cells of all lanes, in memory
	stripWait = 500 * time.Millisecond // so long a request waits for logs that are being read
)

// A Cell is what became of a tick, or of a range of ticks that were not run.
type Cell struct {
	At      int64 // Unix time of the tick, of a range its last one; of a singleton, when its run began
	Status  event.Status
	Replica string
	Reason  string
	Attempt int
	Count   int  // how many ticks it stands for, as far as known
	More    bool // they may be more
}

// A Lane is the last cells of a job. It does not change once it is returned.
type Lane struct {
	Cells   []Cell // by time
	Since   int64  // they are all since then; zero: all there are
	Twice   int    // how many of their ticks have succeeded and were run once more
	Version int64  // two lanes of a job that differ have different ones

	recent Lines  // the newest outcomes, the oldest first: a record is compared with them
	writer string // of the record that it was last compared with
	logged bool   // its log has been read
	used   time.Time
}

// Ticks are the ticks of a job.
type Ticks interface {
	Next(after time.Time) time.Time
	Last(at time.Time) time.Time
}

// A Strip keeps lanes, which are made when they are asked for. A log is read once; after that the records bring its lane up
// to date, as long as it is asked for often enough.
type Strip struct {
	app    *app.App
	logs   bool            // are kept
	begin  func(func())    // begins a reading of logs in the background
	closed context.Context // ends it

	mu      sync.Mutex
	lanes   map[string]*Lane
	ticks   map[string]Ticks
	version int64
	pending chan struct{} // closed when the reading under way is over; nil: none is
	failed  time.Time     // when a log last could not be read
	err     error         // why
}

// Strip returns an empty strip of the program. Its readings are begun by begin and end with closed.
func (c *Cache) Strip(begin func(func()), closed context.Context) *Strip {
	return &Strip{app: c.app, logs: c.On(), begin: begin, closed: closed, lanes: map[string]*Lane{}, ticks: map[string]Ticks{}}
}

// Lanes returns the lanes of these jobs, after a short wait for logs that are to be read. unread is how many logs were not, and
// err why, if that has failed.
func (s *Strip) Lanes(ctx context.Context, all []*desk.Status) (lanes []*Lane, unread int, err error) {
	if pending := s.read(all); pending != nil {
		select {
		case <-pending:
		case <-time.After(stripWait):
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, st := range all {
		l := s.laneOf(st, most(len(all)), now)
		lanes = append(lanes, l)
		if s.lacks(st, l) {
			unread++
		}
	}
	s.shrink(now)
	if unread > 0 && s.pending == nil {
		err = s.err
	}
	return lanes, unread, err
}

// most is how many cells each of so many lanes may have.
func most(lanes int) int { return max(laneLeast, min(laneMost, stripMost/max(1, lanes))) }

// lacks reports whether a lane could have more than it has from the record alone.
func (s *Strip) lacks(st *desk.Status, l *Lane) bool {
	return s.logs && !st.EveryReplica && st.Err == nil && (l == nil || !l.logged)
}

// laneOf brings the lane of a job up to date by its record. A lane that has missed some outcomes begins anew.
func (s *Strip) laneOf(st *desk.Status, most int, now time.Time) *Lane {
	l := s.lanes[st.Name]
	if l == nil || st.Err == nil && l.writer != st.Record.Writer {
		if more, ok := l.misses(st); ok {
			l = s.grow(l, st, more, most, now)
		} else {
			l = s.anew(st, most, now)
		}
	}
	l.used = now
	s.lanes[st.Name] = l
	return l
}

// misses returns the outcomes of a record that a lane does not have. ok is false if there may be others between.
func (l *Lane) misses(st *desk.Status) (more Lines, ok bool) {
	if l == nil || len(l.recent) == 0 && len(st.Record.History) > 0 {
		return nil, false
	}
	all, ok := history.Update(l.recent, &st.Record)
	return all[len(l.recent):], ok
}

// anew returns a lane of what the record has.
func (s *Strip) anew(st *desk.Status, most int, now time.Time) *Lane {
	lines, l := OfRecord(st), &Lane{}
	slices.Reverse(lines)
	if len(lines) > 0 && !complete(st) {
		l.Since = lines[0].At().Unix()
	}
	return s.grow(l, st, lines, most, now)
}

// complete reports whether a record has the outcomes of all ticks that there were.
func complete(st *desk.Status) bool {
	n := int64(0)
	for _, o := range st.Record.History {
		if o.Request == "" && o.From.IsZero() {
			n++
		} else if o.Request == "" {
			n += int64(o.Count)
		}
	}
	for _, counted := range st.Record.Counts {
		n -= counted
	}
	return n == 0
}

// grow returns a lane with more outcomes, and without those that are too old or too many.
func (s *Strip) grow(l *Lane, st *desk.Status, lines Lines, most int, now time.Time) *Lane {
	s.version++
	next := &Lane{Cells: l.Cells, Since: l.Since, Version: s.version, logged: l.logged, writer: st.Record.Writer}
	next.recent = slices.Concat(l.recent, lines)
	next.recent = slices.Clone(next.recent[max(0, len(next.recent)-laneKnown):])
	if len(lines) == 0 {
		next.Twice = l.Twice
		return next
	}
	for i := range lines {
		if o := &lines[i].Outcome; o.Request == "" { // else it settles no tick
			next.Cells = append(next.Cells, s.cellsOf(st, o)...)
		}
		if lines[i].Gap {
			next.Since = max(next.Since, lines[i].At().Unix())
		}
	}
	byTime := func(a, b Cell) int { return cmp.Compare(a.At, b.At) }
	if !slices.IsSortedFunc(next.Cells, byTime) { // those that were returned stay as they are
		next.Cells = slices.Clone(next.Cells)
		slices.SortStableFunc(next.Cells, byTime)
	}
	next.cut(most, now)
	if !st.Singleton { // whose runs have no ticks
		next.Twice = twice(next.Cells)
	}
	return next
}

// cut leaves out what is too old or too much.
func (l *Lane) cut(most int, now time.Time) {
	out, n := 0, len(l.Cells)
	for n-out > most || n-out > laneLeast && l.Cells[out].At < now.Add(-laneTime).Unix() {
		out++
	}
	if out > 0 {
		l.Cells = slices.Clone(l.Cells[out:])
		l.Since = max(l.Since, l.Cells[0].At)
	}
}

// cellsOf returns the cell of an outcome; of a range, one of each tick, but for those before the last ones, which share a cell.
// If the ticks are not those of the schedule in force, or there is none, a range has one cell.
func (s *Strip) cellsOf(st *desk.Status, o *event.Outcome) (cells []Cell) {
	c := Cell{At: o.Tick.Unix(), Status: o.Status, Replica: o.Replica, Reason: o.Reason, Attempt: o.Attempt, Count: 1}
	if o.Tick.IsZero() {
		c.At = cmp.Or(o.Start, o.End).Unix()
	}
	if o.From.IsZero() {
		return []Cell{c}
	}
	left, at := max(o.Count, 1), o.Tick
	if ticks := s.ticksOf(st); ticks != nil && ticks.Last(at).Equal(at) {
		for ; len(cells) < laneLeast && left > 1; left-- {
			one := c
			one.At = at.Unix()
			cells = append(cells, one)
			if at = ticks.Last(at.Add(-1)); !at.After(o.From) {
				at = time.Time{}
				break
			}
		}
	}
	if !at.IsZero() {
		c.At, c.Count, c.More = at.Unix(), left, o.AtLeast || o.Count == 0
		cells = append(cells, c)
	}
	slices.Reverse(cells)
	return cells
}

// twice counts the ticks with a success and the outcome of another run. Cells are by time. What has no attempt was not run.
func twice(cells []Cell) (n int) {
	for i := 0; i < len(cells); {
		j, runs, succeeded := i, 0, false
		for ; j < len(cells) && cells[j].At == cells[i].At; j++ {
			if cells[j].Attempt > 0 {
				runs++
			}
			succeeded = succeeded || cells[j].Status == event.Succeeded
		}
		if runs > 1 && succeeded {
			n++
		}
		i = j
	}
	return n
}

// ticksOf returns the ticks of a job; nil: it has none, or other ones are in force.
func (s *Strip) ticksOf(st *desk.Status) Ticks {
	if st.Singleton || st.Foreign {
		return nil
	}
	known, ok := s.ticks[st.Name]
	if !ok {
		if j, err := s.app.Job(st.Name); err == nil {
			if ticks, err := app.TicksFor(s.app, j); err == nil { // it has been checked
				known = ticks
			}
		}
		s.ticks[st.Name] = known
	}
	return known
}

// Next returns the next ticks of a job, at most n.
func (s *Strip) Next(st *desk.Status, n int) (next []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ticks := s.ticksOf(st)
	for at := st.Next; len(next) < n && !at.IsZero(); at = ticks.Next(at) {
		next = append(next, at.Unix())
		if ticks == nil {
			break
		}
	}
	return next
}

// read begins to read the logs that lanes lack, and returns what to wait for; nil: nothing. It outlives the request that began
// it: others wait for it, too.
func (s *Strip) read(all []*desk.Status) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []*desk.Status
	for _, st := range all {
		if s.lacks(st, s.lanes[st.Name]) {
			missing = append(missing, st)
		}
	}
	if s.pending != nil || len(missing) == 0 || s.err != nil && time.Since(s.failed) < failedFor {
		return s.pending
	}
	s.pending = make(chan struct{})
	most := most(len(all))
	s.begin(func() {
		err := s.readEach(missing, most)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err, s.failed = err, time.Now()
		close(s.pending)
		s.pending = nil
	})
	return s.pending
}

// readEach reads logs, one at a time, until one cannot be read.
func (s *Strip) readEach(all []*desk.Status, most int) error {
	for _, st := range all {
		ctx, cancel := context.WithTimeout(s.closed, readTime)
		lines, whole, err := history.Newest(ctx, s.app.Logs, entryOf(s.app, st), time.Time{}, most, &st.Record)
		cancel()
		if err != nil {
			return err
		}
		l := &Lane{logged: true}
		if !whole && len(lines) > 0 {
			l.Since = lines[0].At().Unix()
		}
		s.mu.Lock()
		l = s.grow(l, st, lines, most, time.Now())
		l.used = time.Now()
		s.lanes[st.Name] = l
		s.mu.Unlock()
	}
	return nil
}

// shrink forgets lanes that were not asked for now, the oldest first, if there are too many cells.
func (s *Strip) shrink(now time.Time) {
	total := 0
	for _, l := range s.lanes {
		total += len(l.Cells)
	}
	for total > stripMost {
		oldest := ""
		for job, l := range s.lanes {
			if l.used.Before(now) && (oldest == "" || l.used.Before(s.lanes[oldest].used)) {
				oldest = job
			}
		}
		if oldest == "" {
			return
		}
		total -= len(s.lanes[oldest].Cells)
		delete(s.lanes, oldest)
	}
}
