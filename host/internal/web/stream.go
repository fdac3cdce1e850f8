package web

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"time"
)

const (
	beatTime  = 10 * time.Second // a stream with no news says so often that it is alive
	sendTime  = 10 * time.Second // for one message: who reads slower is cut off
	retryTime = 2 * time.Second  // after which a browser whose stream has ended asks again
)

// A viewOf is what a stream shows, as a GET would answer it, and the app's part of it, in
// which the time differs from answer to answer.
type viewOf func(n news) (answer any, info *appInfo)

// stream sends what GET /jobs or, with the parameter job, GET /jobs/{job} would answer:
// now, and whenever that changes.
func (p *pages) stream(w http.ResponseWriter, r *http.Request) {
	show, ok := asked(w, r, func(values map[string]string) (viewOf, error) { return p.viewOf(r, values) })
	if !ok {
		return
	}
	if p.streams.Add(1) > int64(mostStreams()) {
		p.streams.Add(-1)
		w.Header().Set("Retry-After", refusalSeconds)
		fail(w, http.StatusServiceUnavailable, "too many streams are open: ask for /api/v1/jobs now and then in place of this")
		return
	}
	defer p.streams.Add(-1)
	changed, stop := p.cache.watch()
	defer stop()
	s := newStream(w)
	beat := time.NewTicker(beatTime)
	defer beat.Stop()
	if p.cache.refresh(freshFor); p.cache.now().at.IsZero() {
		p.cache.look(r.Context())
	} // else it begins with the last reading: the next one follows as soon as it is over
	for {
		if !p.guard.mayRead(r) { // the session is over
			return
		}
		if err := s.update(show, p.cache.now()); err != nil {
			return
		}
		select {
		case <-changed:
		case <-beat.C:
			s.silent = true
		case <-r.Context().Done():
			return
		case <-p.cache.closed.Done():
			return
		}
	}
}

// viewOf reads the parameters of a stream.
func (p *pages) viewOf(r *http.Request, values map[string]string) (viewOf, error) {
	name, one := values["job"]
	if !one {
		q, err := parseQuery(values)
		return func(n news) (any, *appInfo) {
			answer := p.jobsFor(r, n, q)
			return &answer, &answer.App
		}, err
	}
	if len(values) > 1 {
		return nil, fmt.Errorf("job is there beside other parameters: want it alone")
	}
	return func(n news) (any, *appInfo) {
		answer, ok := p.jobFor(r, n, name)
		if !ok {
			answer.App = p.infoFor(r, n)
			return &answer.App, &answer.App
		}
		return &answer, &answer.App
	}, p.app.One(name)
}

// A stream is an answer of server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
type stream struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	sent   []byte // the last message, without its times
	silent bool   // nothing was sent for beatTime
}

func newStream(w http.ResponseWriter) *stream {
	s := &stream{w: w, rc: http.NewResponseController(w)}
	s.rc.SetReadDeadline(time.Time{}) // else the connection ends with the limit for a request
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for a proxy that would wait for more
	return s
}

// update sends what is shown if it has changed, a beat if nothing has for long.
func (s *stream) update(show viewOf, n news) error {
	answer, info := show(n)
	at, readAt := info.Time, info.ReadAt
	info.Time, info.ReadAt = time.Time{}, time.Time{}
	plain, err := encode(answer)
	if err != nil {
		return err
	}
	if bytes.Equal(plain, s.sent) {
		if s.silent {
			s.silent = false
			return s.send(fmt.Appendf(nil, "event: beat\ndata: {\"time\":%q}\n\n", at.Format(time.RFC3339Nano)))
		}
		return nil
	}
	first := s.sent == nil
	s.sent, s.silent = plain, false
	info.Time, info.ReadAt = at, readAt
	text, err := encode(answer)
	if err != nil {
		return err
	}
	message := slices.Concat([]byte("event: news\ndata: "), bytes.TrimSpace(text), []byte("\n\n"))
	if first {
		message = slices.Concat(fmt.Appendf(nil, "retry: %d\n", retryTime.Milliseconds()), message)
	}
	return s.send(message)
}

func (s *stream) send(message []byte) error {
	s.rc.SetWriteDeadline(time.Now().Add(sendTime))
	if _, err := s.w.Write(message); err != nil {
		return err
	}
	return s.rc.Flush()
}
