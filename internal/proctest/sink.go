package proctest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// A Sink takes what replicas send to it with [Send].
type Sink struct {
	URL    string
	server *http.Server
}

// NewSink serves until Close. Each effect is passed to take, which reports
// whether the sink accepts it.
func NewSink[E any](take func(E) bool) (*Sink, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e E
		if json.NewDecoder(r.Body).Decode(&e) != nil {
			w.WriteHeader(http.StatusBadRequest)
		} else if !take(e) {
			w.WriteHeader(http.StatusPreconditionFailed)
		}
	})}
	go server.Serve(ln) // until Close
	return &Sink{"http://" + ln.Addr().String(), server}, nil
}

// Close ends the sink.
func (s *Sink) Close() { s.server.Close() }

// ErrStale is what [Send] returns of an effect that the sink does not accept.
var ErrStale = errors.New("the sink has seen a larger token")

// client closes idle connections soon, since their sink may be dead.
var client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{IdleConnTimeout: 2 * time.Second}}

// Send sends an effect to a sink. No context: it cannot be called back once it
// is on its way.
func Send(url string, effect any) error {
	b, err := json.Marshal(effect)
	if err != nil {
		return err
	}
	resp, err := client.Post(url, "application/json", bytes.NewReader(b))
	if err != nil {
		return err
	}
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusPreconditionFailed:
		return ErrStale
	}
	return fmt.Errorf("the sink answers %s", resp.Status)
}

// A Fence knows the largest token of each job: the fence that the package
// comment of soloist asks for. The caller locks it.
type Fence map[string]int64

// Pass reports whether an effect under the token may be accepted.
func (f Fence) Pass(job string, token int64) bool {
	f[job] = max(f[job], token)
	return token == f[job]
}
