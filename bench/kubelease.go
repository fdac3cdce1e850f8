//go:build linux

package main

import (
	"encoding/json"
	"net/http"
	"path"
	"strconv"
	"sync"
)

// A kubelease is as much of the Kubernetes API as leader election needs, in memory: get, create and update of a Lease of
// coordination.k8s.io/v1, where an update of an old version is a conflict.
type kubelease struct {
	mu       sync.Mutex
	versions int
	leases   map[string]object
}

// An object is one of the API, of which only the metadata matter here.
type object map[string]any

// metadata is never nil for what leader election sends.
func (o object) metadata() map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}

func (s *kubelease) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, o := path.Base(r.URL.Path), object{}
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.metadata() == nil {
			refuse(w, http.StatusBadRequest, "BadRequest")
			return
		}
	}
	if r.Method == http.MethodPost {
		name, _ = o.metadata()["name"].(string)
	}
	switch old := s.leases[name]; {
	case r.Method == http.MethodPost && old != nil:
		refuse(w, http.StatusConflict, "AlreadyExists")
	case r.Method != http.MethodPost && old == nil:
		refuse(w, http.StatusNotFound, "NotFound")
	case r.Method == http.MethodGet:
		answer(w, http.StatusOK, old)
	case r.Method == http.MethodPut && o.metadata()["resourceVersion"] != old.metadata()["resourceVersion"]:
		refuse(w, http.StatusConflict, "Conflict")
	default:
		s.versions++
		o.metadata()["resourceVersion"] = strconv.Itoa(s.versions)
		s.leases[name] = o
		answer(w, http.StatusOK, o)
	}
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
