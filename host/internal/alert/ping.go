package alert

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/ontime"
	"github.com/soloist-go/soloist/internal/queue"
)

const (
	pingTries = 3
	pingPause = time.Second
	mostPings = 20    // of one job that wait; further ones are dropped
	pingBody  = 10000 // bytes of an error's end
)

// Pings report to a dead-man's switch when each run begins and how it ends, in the format of
// https://healthchecks.io/docs/http_api/. The replica that runs the job sends them. No run
// waits for them.
type Pings struct {
	app    string
	urls   map[string]string // by job
	client *http.Client
	log    *slog.Logger

	ctx    context.Context // ends the calls
	cancel context.CancelFunc
	mu     sync.Mutex
	queues map[string]*queue.Queue[ping] // of each job: they keep the order
}

// A ping is one call.
type ping struct {
	path, run, body string
	lost            int // it is no call, but so many before it were dropped
}

// NewPings returns the pings of jobs with a URL.
func NewPings(app string, urls map[string]string, client *http.Client, log *slog.Logger) *Pings {
	ctx, cancel := context.WithCancel(context.Background())
	return &Pings{app: app, urls: urls, client: client, log: log, ctx: ctx, cancel: cancel, queues: map[string]*queue.Queue[ping]{}}
}

// Hear takes an event of the scheduler. It does not block.
func (p *Pings) Hear(e event.Event) {
	if p.urls[e.Job] == "" || event.BackfillOf(e.Run.Request) != 0 { // which says nothing about the schedule
		return
	}
	switch e.Kind {
	case event.Started:
		if e.Run.Try <= 1 {
			p.add(e.Job, ping{path: "/start", run: runID(p.app, &e)})
		}
	case event.Ended, event.Unrecorded:
		switch e.Outcome.Status {
		case event.Succeeded, event.Skipped:
			p.add(e.Job, ping{run: runID(p.app, &e)})
		case event.Failed, event.Stalled, event.Cancelled:
			if strings.HasPrefix(e.Outcome.Reason, soloist.ErrReplaced.Error()) {
				return // a newer tick takes its place, and that run's ping reports how it ends
			}
			p.add(e.Job, ping{path: "/fail", run: runID(p.app, &e), body: tail(failure(&e))})
		}
		// Another replica may take up what was abandoned; if none does, the success is missing.
	}
}

// failure is why a run has failed.
func failure(e *event.Event) string {
	text := string(e.Outcome.Status)
	if e.Outcome.Reason != "" {
		text += ": " + e.Outcome.Reason
	}
	return text
}

// tail is the end of a text.
func tail(text string) string {
	if len(text) > pingBody {
		text = text[len(text)-pingBody:]
	}
	return strings.ToValidUTF8(text, "")
}

// runID is a UUID that the pings of one run share.
func runID(app string, e *event.Event) string {
	b := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d\x00%s\x00%d", app, e.Job, everywhere(e), e.Run.Token, e.Run.Request, e.Run.Tick.UnixNano()))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8, of one's own making
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// everywhere names the replica of a run without a token: other replicas have one of the same
// tick.
func everywhere(e *event.Event) string {
	if e.Run.Token == 0 {
		return e.Replica
	}
	return ""
}

// add gives a ping to the queue of its job.
func (p *Pings) add(job string, one ping) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues[job] == nil {
		to := receiver{Pings: p, job: job, unknown: map[string]bool{}}
		p.queues[job] = &queue.Queue[ping]{Take: to.send, Most: mostPings, Lost: func(n int) ping { return ping{lost: n} }}
	}
	p.queues[job].Add(one)
}

// A receiver is the destination of one job's pings. Some accept only GET, and only pings of success.
type receiver struct {
	*Pings
	job     string
	get     bool            // it takes GET, and not POST
	unknown map[string]bool // paths that it does not have; the path of a success is never among them
}

// send makes the calls of one ping until one is accepted. A receiver that has no path for the start or the failure of
// a run gets no such ping: it notices that the success is missing.
func (r *receiver) send(one ping) {
	if one.lost > 0 {
		r.log.Warn("pings are left out: too many wait for the receiver", "job", r.job, "pings", one.lost)
		return
	}
	for try := 1; !r.unknown[one.path]; try++ {
		err := r.call(one)
		if err == nil || r.ctx.Err() != nil {
			return
		}
		if one.path != "" && errors.Is(err, errNoSuchCall) {
			r.unknown[one.path] = true
			r.log.Info("the receiver of pings has no such call, so it hears of successes", "job", r.job, "ping", strings.TrimPrefix(one.path, "/"), "answer", err)
			return
		}
		if try == pingTries || !ontime.Sleep(r.ctx, pingPause<<(try-1)) {
			r.log.Warn("a ping was not taken", "job", r.job, "ping", strings.TrimPrefix(one.path, "/"), "error", err)
			return
		}
	}
}

// call makes one call: by POST, which has room for an error, or by GET to who takes no POST.
func (r *receiver) call(one ping) error {
	if !r.get {
		err := r.ask(http.MethodPost, one)
		if !errors.Is(err, errNoSuchCall) {
			return err
		}
	}
	err := r.ask(http.MethodGet, one)
	r.get = r.get || err == nil
	return err
}

func (r *receiver) ask(method string, one ping) error {
	u, err := url.Parse(r.urls[r.job])
	if err != nil {
		return errNoURL
	}
	u = u.JoinPath(one.path)
	query := u.Query()
	query.Set("rid", one.run)
	u.RawQuery = query.Encode()
	ctx, cancel := context.WithTimeout(r.ctx, sendTime)
	defer cancel()
	body := one.body
	if method == http.MethodGet {
		body = ""
	}
	q, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(body))
	if err != nil {
		return errNoURL
	}
	return do(r.client, q)
}

// Close waits for the pings that are on their way, for so long at most.
func (p *Pings) Close(patience time.Duration) {
	defer p.cancel()
	t := time.AfterFunc(patience, p.cancel) // with which the pings that wait fail at once
	defer t.Stop()
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.queues))
	p.mu.Unlock()
	for _, q := range all {
		q.Wait(math.MaxInt64)
	}
}
