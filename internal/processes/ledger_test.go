//go:build unix

package processes

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

// A keeper is what a sink of pages does about requests that come twice or late.
type keeper struct {
	forgets  bool // which pages it has
	unfenced bool
}

// A moment is a point in the life of a page.
type moment string

const (
	atSource     moment = "before the source answers"
	beforeCommit moment = "before the sink commits"
	beforeAnswer moment = "before the sink answers"
)

// A ledger is the source and the sink of pages, and what happened there, in order: the judge of the example job ingest.
type ledger struct {
	keeper
	source, target *httptest.Server
	at             func(m moment, page int, r *http.Request) (drop bool) // holds up the life of a page

	mu        sync.Mutex
	published int // pages 1 to this are at the source
	asks      []request
	puts      []request
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

func newLedger(t *testing.T, k keeper, at func(moment, int, *http.Request) bool) *ledger {
	l := &ledger{keeper: k, at: at}
	serve := func(pattern string, f http.HandlerFunc) *httptest.Server {
		mux := http.NewServeMux()
		mux.HandleFunc(pattern, f)
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		return server
	}
	l.source, l.target = serve("GET /pages/{page}", l.get), serve("PUT /pages/{page}", l.put)
	return l
}

// slowly lets time pass, mostly little. A request whose sender has died may take long: it then comes in the middle of what
// a later run does.
func slowly(random *rand.Rand, lease time.Duration) func(moment, int, *http.Request) bool {
	var mu sync.Mutex
	return func(_ moment, _ int, r *http.Request) bool {
		mu.Lock()
		d, late := time.Duration(random.IntN(20))*time.Millisecond, time.Duration(random.Int64N(int64(3*lease)))
		mu.Unlock()
		select {
		case <-time.After(d):
		case <-r.Context().Done():
			time.Sleep(late)
		}
		return false
	}
}

func text(page int) string { return fmt.Sprintf("this is page %d", page) }

func parse(r *http.Request) request {
	page, _ := strconv.Atoi(r.PathValue("page"))
	token, _ := strconv.ParseInt(r.Header.Get("Soloist-Token"), 10, 64)
	return request{page: page, token: token}
}

func (l *ledger) get(w http.ResponseWriter, r *http.Request) {
	ask := parse(r)
	l.mu.Lock()
	there := ask.page <= l.published
	l.asks = append(l.asks, ask)
	l.mu.Unlock()
	l.at(atSource, ask.page, r)
	if !there {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	io.WriteString(w, text(ask.page))
}

func (l *ledger) put(w http.ResponseWriter, r *http.Request) {
	put := parse(r)
	body, err := io.ReadAll(r.Body)
	if err != nil || l.at(beforeCommit, put.page, r) {
		return
	}
	status := l.commit(put, string(body))
	l.at(beforeAnswer, put.page, r)
	w.WriteHeader(status)
}

// commit is what a sink's transaction has to be.
func (l *ledger) commit(put request, body string) (status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	status, put.outcome = http.StatusCreated, applied
	for _, before := range l.puts {
		switch {
		case !l.unfenced && before.outcome != refused && before.token > put.token:
			status, put.outcome = http.StatusPreconditionFailed, refused
		case !l.forgets && before.outcome == applied && before.page == put.page && put.outcome == applied:
			status, put.outcome = http.StatusOK, again
		}
	}
	if body != text(put.page) {
		l.garbled++
	}
	l.puts = append(l.puts, put)
	return status
}

func (l *ledger) publish(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.published += n
}

// newest is the largest token seen.
func (l *ledger) newest() (token int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ask := range l.asks {
		token = max(token, ask.token)
	}
	return token
}

// drained reports whether a run has asked for the page after the last one.
func (l *ledger) drained() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.asks, func(ask request) bool { return ask.page == l.published+1 })
}

// count returns how many puts had an outcome.
func (l *ledger) count(outcome string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, put := range l.puts {
		if put.outcome == outcome {
			n++
		}
	}
	return n
}

// faults judges the log and nothing else, whatever the sink believes. It ends source and sink first, once all requests
// are answered, also those whose senders are dead.
func (l *ledger) faults() (list []string) {
	l.source.Close()
	l.target.Close()
	fault := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	times := map[int]int{}
	var newest int64
	for _, put := range l.puts {
		if put.outcome == applied {
			if times[put.page]++; put.token < newest {
				fault("page %d is applied by a stale run", put.page)
			}
		}
		newest = max(newest, put.token)
	}
	for page := 1; page <= l.published; page++ {
		switch n := times[page]; {
		case n == 0:
			fault("page %d is lost", page)
		case n > 1:
			fault("page %d is applied %d times", page, n)
		}
	}
	if len(times) > l.published || l.garbled > 0 {
		fault("%d pages are applied of %d, and %d are not what they were", len(times), l.published, l.garbled)
	}
	if from, to := l.stepBack(); to > 0 {
		fault("the position went back from %d to %d", from, to)
	}
	return list
}

// stepBack finds where the position first went back: a run asks for the page that its checkpoint names, so none asks for a
// smaller one than a run before it.
func (l *ledger) stepBack() (from, to int) {
	asks := slices.Clone(l.asks)
	slices.SortStableFunc(asks, func(a, b request) int { return cmp.Compare(a.token, b.token) })
	for _, ask := range asks {
		if ask.page < from {
			return from, ask.page
		}
		from = ask.page
	}
	return 0, 0
}
