//go:build unix

package main

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
)

// A sink takes the effects of all runs and refuses those of stale ones: the
// fence that the package comment of soloist asks for.
type sink struct {
	URL    string
	server *http.Server
}

func newSink(s *scribe) (*sink, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	newest := map[string]int64{} // the largest token of each job; the scribe's lock guards it
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e Effect
		if json.NewDecoder(r.Body).Decode(&e) != nil {
			w.WriteHeader(http.StatusBadRequest)
		} else if !s.effect(e, newest) {
			w.WriteHeader(http.StatusPreconditionFailed)
		}
	})}
	go server.Serve(ln) // until close
	return &sink{"http://" + ln.Addr().String(), server}, nil
}

func (s *sink) close() { s.server.Close() }
