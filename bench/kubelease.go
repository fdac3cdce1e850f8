//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// A kubelease is as much of the Kubernetes API as leader election needs, in memory: get, create and update of a Lease of
// coordination.k8s.io/v1, where an update of an old version is a conflict.
type kubelease struct {
	URL string

	server   *http.Server
	mu       sync.Mutex
	versions int
	leases   map[string]object
}

// An object is one of the API, of which only the metadata matter here.
type object map[string]any

func (o object) metadata() map[string]any {
	m, _ := o["metadata"].(map[string]any)
	if m == nil {
		m = map[string]any{}
		o["metadata"] = m
	}
	return m
}

// startKubelease starts a server.
func startKubelease() (*kubelease, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &kubelease{URL: "http://" + ln.Addr().String(), leases: map[string]object{}}
	const path = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path+"/{name}", s.get)
	mux.HandleFunc("POST "+path, s.create)
	mux.HandleFunc("PUT "+path+"/{name}", s.update)
	s.server = &http.Server{Handler: mux}
	go s.server.Serve(ln) // until Close
	return s, nil
}

// Close ends the server.
func (s *kubelease) Close() error { return s.server.Close() }

func (s *kubelease) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.leases[r.PathValue("name")]; o != nil {
		answer(w, http.StatusOK, o)
		return
	}
	refuse(w, http.StatusNotFound, "NotFound")
}

func (s *kubelease) create(w http.ResponseWriter, r *http.Request) {
	o, ok := readObject(w, r)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name, _ := o.metadata()["name"].(string)
	if s.leases[name] != nil {
		refuse(w, http.StatusConflict, "AlreadyExists")
		return
	}
	answer(w, http.StatusCreated, s.keep(name, o))
}

func (s *kubelease) update(w http.ResponseWriter, r *http.Request) {
	o, ok := readObject(w, r)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.PathValue("name")
	old := s.leases[name]
	if old == nil {
		refuse(w, http.StatusNotFound, "NotFound")
		return
	}
	if o.metadata()["resourceVersion"] != old.metadata()["resourceVersion"] {
		refuse(w, http.StatusConflict, "Conflict")
		return
	}
	answer(w, http.StatusOK, s.keep(name, o))
}

// keep stores an object under a new version. The lock is held.
func (s *kubelease) keep(name string, o object) object {
	s.versions++
	o.metadata()["resourceVersion"] = strconv.Itoa(s.versions)
	s.leases[name] = o
	return o
}

func readObject(w http.ResponseWriter, r *http.Request) (o object, ok bool) {
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("not JSON: %s", err))
		return nil, false
	}
	return o, true
}

func answer(w http.ResponseWriter, code int, o object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o) // a client that has gone
}

// refuse answers as the API does.
func refuse(w http.ResponseWriter, code int, reason string) {
	answer(w, code, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": reason, "code": code})
}
