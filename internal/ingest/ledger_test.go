//go:build unix

package ingest

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A sink is what a sink does about requests that come twice or late.
type sink struct {
	forgets  bool // which pages it has
	unfenced bool
}

// A moment is a point in the life of a page at which a test may interfere.
type moment string

const (
	atSource     moment = "before the source answers"
	beforeCommit moment = "before the sink commits"
	beforeAnswer moment = "before the sink answers"
)

// A hook holds up the life of a page, and may drop the request.
type hook func(moment, int) (drop bool)

// A ledger is the source and the sink of one world and what happened there, in
// order: the judge of whoever carries the pages.
type ledger struct {
	sink
	source, target *httptest.Server
	lease          time.Duration // of who carries the pages
	hook           hook          // nil: random pauses

	mu        sync.Mutex
	rand      *rand.Rand
	published int // pages 1 to this are at the source
	asks      []request
	puts      []request
	phase     string // what the newest run is at
	garbled   int
}

// A request is one that the source answered or the sink decided on.
type request struct {
	page    int
	token   int64
	outcome string // of a put
}

const (
	applied = "applied"
	again   = "there already"
	refused = "refused"
)

func newLedger(t *testing.T, seed uint64, lease time.Duration, s sink, h hook) *ledger {
	l := &ledger{sink: s, lease: lease, hook: h, rand: rand.New(rand.NewPCG(seed, 1)), phase: "starting"}
	serve := func(pattern string, f http.HandlerFunc) *httptest.Server {
		mux := http.NewServeMux()
		mux.HandleFunc(pattern, f)
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		return server
	}
	l.source = serve("GET /pages/{page}", l.get)
	l.target = serve("PUT /pages/{page}", l.put)
	return l
}

func text(page int) string { return fmt.Sprintf("this is page %d", page) }

func parse(req *http.Request) request {
	page, _ := strconv.Atoi(req.PathValue("page"))
	token, _ := strconv.ParseInt(req.Header.Get("Soloist-Token"), 10, 64)
	return request{page: page, token: token}
}

func (l *ledger) get(w http.ResponseWriter, req *http.Request) {
	r := parse(req)
	l.mu.Lock()
	there := r.page <= l.published
	l.asks = append(l.asks, r)
	l.phase = "get"
	l.mu.Unlock()
	l.at(atSource, r.page, req)
	if !there {
		l.set("end or pause")
		w.WriteHeader(http.StatusNotFound)
		return
	}
	l.set("between get and put")
	io.WriteString(w, text(r.page))
}

func (l *ledger) put(w http.ResponseWriter, req *http.Request) {
	r := parse(req)
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return // of one who died while sending
	}
	l.set("put")
	if l.at(beforeCommit, r.page, req) {
		return
	}
	status := l.commit(r, string(b))
	l.at(beforeAnswer, r.page, req)
	l.set("save")
	w.WriteHeader(status)
}

// commit is what a sink's transaction has to be.
func (l *ledger) commit(r request, body string) (status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = "put, applied"
	status, r.outcome = http.StatusCreated, applied
	for _, before := range l.puts {
		switch {
		case !l.unfenced && before.outcome != refused && before.token > r.token:
			status, r.outcome = http.StatusPreconditionFailed, refused
		case !l.forgets && before.outcome == applied && before.page == r.page && r.outcome == applied:
			status, r.outcome = http.StatusOK, again
		}
	}
	if body != text(r.page) {
		l.garbled++
	}
	l.puts = append(l.puts, r)
	return status
}

func (l *ledger) set(phase string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = phase
}

// at lets time pass, mostly little. A request whose sender has died may take
// long: it then comes in the middle of what a later run does.
func (l *ledger) at(m moment, page int, req *http.Request) (drop bool) {
	if l.hook != nil {
		return l.hook(m, page)
	}
	l.mu.Lock()
	d, late := time.Duration(l.rand.IntN(4))*time.Millisecond, time.Duration(l.rand.Int64N(int64(3*l.lease)))
	if l.rand.IntN(5) == 0 {
		d = time.Duration(l.rand.IntN(40)) * time.Millisecond
	}
	l.mu.Unlock()
	select {
	case <-time.After(d):
	case <-req.Context().Done():
		time.Sleep(late)
	}
	return false
}

// publish makes n more pages.
func (l *ledger) publish(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.published += n
}

// newest is the largest token seen.
func (l *ledger) newest() (token int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.asks {
		token = max(token, r.token)
	}
	return token
}

// drained reports whether somebody believes that all pages are in the sink.
func (l *ledger) drained() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.asks, func(r request) bool { return r.page == l.published+1 })
}

// count returns how many puts had an outcome.
func (l *ledger) count(outcome string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.puts {
		if r.outcome == outcome {
			n++
		}
	}
	return n
}

// faults judges the log and nothing else, whatever the sink believes.
func (l *ledger) faults() (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fault := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	times := map[int]int{}
	var newest int64
	for _, r := range l.puts {
		if r.outcome == applied {
			times[r.page]++
			if r.token < newest {
				fault("page %d is applied by a stale run", r.page)
			}
		}
		newest = max(newest, r.token)
	}
	for page := 1; page <= l.published; page++ {
		switch n := times[page]; {
		case n == 0:
			fault("page %d is lost", page)
		case n > 1:
			fault("page %d is applied %d times", page, n)
		}
	}
	if len(times) > l.published {
		fault("%d pages are applied of %d", len(times), l.published)
	}
	if l.garbled > 0 {
		fault("%d pages are not what they were", l.garbled)
	}
	if from, to := l.stepBack(); to > 0 {
		fault("the position went back from %d to %d", from, to)
	}
	return list
}

// stepBack finds where the position first went back: a run asks for the page
// that its checkpoint names, so none asks for a smaller one than a run before it.
func (l *ledger) stepBack() (from, to int) {
	asks := slices.Clone(l.asks)
	slices.SortStableFunc(asks, func(a, b request) int { return cmp.Compare(a.token, b.token) })
	for _, r := range asks {
		if r.page < from {
			return from, r.page
		}
		from = r.page
	}
	return 0, 0
}

// publishing makes pages now and then, until stop: so many that a run is mostly
// at work, so few that some runs come to their end.
func (l *ledger) publishing(seed uint64) (stop func()) {
	random := rand.New(rand.NewPCG(seed, 2))
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-time.After(50*time.Millisecond + time.Duration(random.IntN(450))*time.Millisecond):
				if l.backlog() < 20 {
					l.publish(1 + random.IntN(20))
				}
			}
		}
	}()
	return sync.OnceFunc(func() { close(quit); <-done })
}

func (l *ledger) backlog() int {
	n := l.count(applied)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.published - n
}

// strike notes that the newest run, or another replica, is about to be killed,
// and returns what the run is at.
func (l *ledger) strike(runner bool) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !runner {
		return "no run of its own"
	}
	was := l.phase
	l.phase = "before its first page"
	return was
}

// close ends source and sink when all requests are answered, also those whose
// senders are dead.
func (l *ledger) close() {
	l.source.Close()
	l.target.Close()
}
