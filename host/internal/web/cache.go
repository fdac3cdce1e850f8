package web

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/presence"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
)

const (
	readTime     = 2 * time.Second // bounds the reads of all records, with a millisecond for each of them
	freshFor     = 2 * time.Second // so long they are not read again, however many ask
	waitTime     = time.Second     // for them: a page with old news is better than none
	prepareAfter = time.Second     // of the start: the first ticks come before that
	oldAfter     = 2 * quietPace   // from this age on, an answer says that its news is old while it is read again
)

// A Cache keeps the last reading of the records. At most one reading is under way,
// so that a page under load asks the store no more often than an idle one.
type Cache struct {
	Jobs int // how many there are: to read many takes longer

	read   func(context.Context) []desk.Status
	orders func(context.Context) (record.Control, error) // nil: the store keeps none
	beacon *presence.Reader                              // nil: the replicas are not known

	readings sync.WaitGroup
	met      atomic.Bool     // the store has answered, once
	closed   context.Context // ends when no caller may watch any more
	close    func()

	mu      sync.Mutex
	last    news
	failed  bool          // the last reading got no answer
	pending chan struct{} // closed when the reading under way is over; nil: none is
	begun   time.Time     // that reading

	watching watching
}

// news is one reading. Zero: none yet.
type news struct {
	at     time.Time
	all    []desk.Status
	orders record.Control // the last that could be read
	deaf   error          // why they cannot be read now
	fleet  fleet
	made   *rows
	silent bool // the store was asked after that, and has not answered
	again  bool // a reading is under way
}

// rows are made once for a reading, however many look at it.
type rows struct {
	once  sync.Once
	all   []view.Job
	fleet *view.Fleet
}

// shown returns the jobs, in the order of all, and the replicas, compared with each other.
func (n news) shown(a *app.App) ([]view.Job, *view.Fleet) {
	if n.made == nil {
		return nil, &view.Fleet{}
	}
	n.made.once.Do(func() {
		n.made.fleet = view.FleetOf(a, n.fleet.Reading, n.all)
		n.made.all = view.All(a, n.all, &n.orders, n.made.fleet)
	})
	return n.made.all, n.made.fleet
}

// index is the place of a job; -1 if the store has answered nothing about it yet.
func (n news) index(name string) int {
	return slices.IndexFunc(n.all, func(st desk.Status) bool { return st.Name == name })
}

// notYet is shown before the first answer of the store.
const notYet = "The store has not answered yet."

// old says how old the news is, if that is worth a word.
func (n news) old() string {
	switch age := time.Since(n.at); {
	case n.at.IsZero():
		return notYet
	case n.silent && age > freshFor+waitTime:
		return "The store does not answer: this is what it told " + format.Roughly(age) + " ago."
	case n.again && age > oldAfter:
		return "This is what the store told " + format.Roughly(age) + " ago. It is being read again."
	}
	return ""
}

// NewCache returns an empty cache of what read returns; of orders, nil if the store keeps no
// orders of operators; and of the replicas, nil if they do not write that they are up.
func NewCache(read func(context.Context) []desk.Status, orders func(context.Context) (record.Control, error), replicas *presence.Reader) *Cache {
	c := &Cache{read: read, orders: orders, beacon: replicas,
		watching: watching{all: map[chan struct{}]bool{}, poked: make(chan struct{}, 1)}}
	c.closed, c.close = context.WithCancel(context.Background())
	return c
}

// look returns the last reading, after a wait for a new one if that is due.
func (c *Cache) look(ctx context.Context) news {
	if pending := c.refresh(freshFor); pending != nil {
		await(ctx, pending, waitTime)
	}
	return c.now()
}

// await waits for a signal, which nil never gives, but no longer than most.
func await(ctx context.Context, signal <-chan struct{}, most time.Duration) {
	select {
	case <-signal:
	case <-time.After(most):
	case <-ctx.Done():
	}
}

// now returns the last reading as it is.
func (c *Cache) now() news {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.last
	n.silent = c.failed || c.pending != nil && time.Since(c.begun) >= waitTime
	n.again = c.pending != nil
	return n
}

// Statuses returns the last reading, as look does.
func (c *Cache) Statuses(ctx context.Context) []desk.Status { return c.look(ctx).all }

// refresh begins a reading if the last one is older than fresh and none is under way. It returns the
// reading to wait for, or nil if the last one will do.
func (c *Cache) refresh(fresh time.Duration) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil && (c.last.at.IsZero() || time.Since(c.last.at) >= fresh) {
		c.pending, c.begun = make(chan struct{}), time.Now()
		c.readings.Go(c.reading)
	}
	return c.pending
}

// reading outlives the request that began it: others wait for it too. They do not wait for
// the comparison with the reading before, which takes long for many jobs.
func (c *Cache) reading() {
	ctx, cancel := context.WithTimeout(context.Background(), readTime+time.Duration(c.Jobs)*time.Millisecond)
	defer cancel()
	last, next := c.now(), news{made: new(rows)} // nothing else writes the last one
	var others sync.WaitGroup
	others.Go(func() { next.orders, next.deaf = c.readOrders(ctx) })
	others.Go(func() { next.fleet = readFleet(ctx, c.beacon, last.fleet) })
	next.all = c.read(ctx)
	others.Wait()
	if next.deaf != nil {
		next.orders = last.orders
	}
	next.at = time.Now()
	if turned, kept := c.keep(next); turned || kept && (last.old() != "" || !next.same(&last)) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tellWatching()
	}
}

// keep ends a reading and keeps its news, unless it has less than the last one. It
// reports whether the store has begun or ceased to answer, and whether it kept the news.
func (c *Cache) keep(next news) (turned, kept bool) {
	ok := answered(next.all)
	c.mu.Lock()
	defer c.mu.Unlock()
	turned, c.failed = ok == c.failed, !ok
	if kept = ok || c.last.at.IsZero(); kept {
		c.last = next
	} else if !c.last.at.IsZero() {
		c.last.made = new(rows) // the store says nothing new, but this replica may: a run may go on without its lease
	}
	if ok {
		c.met.Store(true)
	}
	close(c.pending)
	c.pending = nil
	return turned, kept
}

// same reports whether two readings say the same.
func (n *news) same(o *news) bool {
	return n.fleet.looks(o.fleet) && n.orders.Seq == o.orders.Seq && (n.deaf == nil) == (o.deaf == nil) && reflect.DeepEqual(n.all, o.all)
}

func (c *Cache) readOrders(ctx context.Context) (record.Control, error) {
	if c.orders == nil {
		return record.Control{}, nil
	}
	return c.orders(ctx)
}

// answered reports whether the store gave at least one answer, if it was asked.
func answered(all []desk.Status) bool {
	asked := false
	for _, st := range all {
		if view.Reached(st) {
			return true
		}
		asked = asked || !st.EveryReplica
	}
	return !asked
}

// Prepare reads the records a moment after the start, so that the first page that is opened need
// not wait for it: to read many jobs takes seconds. It returns before that if ctx ends.
func (c *Cache) Prepare(ctx context.Context) {
	if await(ctx, nil, prepareAfter); ctx.Err() == nil {
		c.look(ctx)
	}
}

// Fresh reports whether the store answers now.
func (c *Cache) Fresh(ctx context.Context) bool {
	n := c.look(ctx)
	return n.old() == "" && answered(n.all)
}

// ready reports whether the store has ever answered; from then on the
// scheduler knows better. It asks until then.
func (c *Cache) ready(ctx context.Context) bool {
	if !c.met.Load() {
		c.look(ctx)
	}
	return c.met.Load()
}

// Wait returns when no reading is under way; no new one may be begun.
func (c *Cache) Wait() { c.readings.Wait() }

// How often the records are read while a caller watches. A replica learns at once what
// happens on itself; about other replicas it learns from the records alone.
const (
	busyPace  = 700 * time.Millisecond // while a job runs, or a tick is due
	quietPace = 5 * time.Second
	leastPace = 250 * time.Millisecond // however much happens here
	tickDelay = 300 * time.Millisecond // from a tick to its claim
)

// watching is who waits for news.
type watching struct {
	all    map[chan struct{}]bool
	cancel context.CancelFunc // ends keepFresh
	poked  chan struct{}      // something has happened here
}

// watch returns a channel that gets a value after each reading that has something new.
// A slow caller misses some of the values, but not the last. The records are read as long as
// any caller watches.
func (c *Cache) watch() (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watching.all[ch] = true
	if c.watching.cancel == nil {
		ctx, cancel := context.WithCancel(context.Background())
		c.watching.cancel = cancel
		c.readings.Go(func() { c.keepFresh(ctx) })
	}
	return ch, func() { c.unwatch(ch) }
}

func (c *Cache) unwatch(ch chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watching.all, ch)
	if len(c.watching.all) == 0 {
		c.watching.cancel()
		c.watching.cancel = nil
	}
}

// tellWatching is called with the lock.
func (c *Cache) tellWatching() {
	for ch := range c.watching.all {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// keepFresh reads the records again and again.
func (c *Cache) keepFresh(ctx context.Context) {
	for ctx.Err() == nil {
		begin := time.Now()
		select {
		case <-c.refresh(0):
		case <-ctx.Done():
			return
		}
		took := time.Since(begin)
		c.rest(ctx, c.pace(took), max(leastPace, took))
	}
}

// rest waits for the pace, or for news of this replica and the least time.
func (c *Cache) rest(ctx context.Context, pace, least time.Duration) {
	await(ctx, nil, least)
	await(ctx, c.watching.poked, pace-least)
}

// pace is how long to wait for the next reading. A store that takes long is asked less
// often.
func (c *Cache) pace(took time.Duration) time.Duration {
	c.mu.Lock()
	all := c.last.all
	c.mu.Unlock()
	pace, now := quietPace, time.Now()
	for i := range all {
		if d := paceOf(&all[i], now); d < pace {
			pace = d
		}
	}
	return max(pace, 4*took, leastPace)
}

// paceOf says when something is likely to happen to a job. A singleton runs on and on.
func paceOf(st *desk.Status, now time.Time) time.Duration {
	switch {
	case st.EveryReplica, st.Err != nil:
		return quietPace
	case st.Record.MayRun() && !st.Singleton:
		return busyPace
	case st.Next.IsZero():
		return quietPace
	}
	return max(busyPace, st.Next.Sub(now)+tickDelay)
}

// Hear lets watching callers see at once what has happened on this replica.
func (c *Cache) Hear(e event.Event) {
	switch e.Kind {
	case event.Renewed, event.Detail, event.Skewed, event.Dropped:
		return
	}
	c.poke()
}

// poke has the records read soon, if somebody watches.
func (c *Cache) poke() {
	select {
	case c.watching.poked <- struct{}{}:
	default:
	}
}

// Close ends the streams of those who watch.
func (c *Cache) Close() { c.close() }

// fleetFor is for how long the replicas are not read again: they write every few minutes.
const fleetFor = 5 * time.Second

// A fleet is one reading of the replicas.
type fleet struct {
	presence.Reading
	read  time.Time // by this machine's clock
	wrong error     // why the document is not one of replicas
}

// readFleet reads the replicas, unless the last reading is new. In an outage that one stays.
func readFleet(ctx context.Context, from *presence.Reader, last fleet) fleet {
	if from == nil || !last.read.IsZero() && time.Since(last.read) < fleetFor {
		return last
	}
	now := time.Now()
	r, err := from.Read(ctx)
	switch {
	case err == nil:
		return fleet{Reading: r, read: now}
	case errors.Is(err, presence.ErrForeign):
		return fleet{read: now, wrong: err}
	}
	return last
}

// looks reports whether two readings look the same in a list.
func (f fleet) looks(other fleet) bool {
	return f.Doc == other.Doc && (f.wrong == nil) == (other.wrong == nil) && reflect.DeepEqual(brief(view.Replicas(f.Reading, nil)), brief(view.Replicas(other.Reading, nil)))
}

// brief leaves out when a replica that is up has written: an answer about jobs would be news
// all the time.
func brief(all []view.Replica) []view.Replica {
	for i := range all {
		if all[i].State == presence.Up {
			all[i].Seen = time.Time{}
		}
	}
	return all
}
