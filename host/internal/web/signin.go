package web

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
)

// mostBody is the largest body of a request to the API in bytes.
const mostBody = 4 << 10

// A signIn is what a browser sends to sign in.
type signIn struct {
	Token string `json:"token"`
	Name  string `json:"name"` // who signs in, for the list of changes; it is not checked
}

// A signedIn is what it gets.
type signedIn struct {
	Changes access    `json:"changes"` // whether it may change something
	Until   time.Time `json:"until"`   // when the session ends
}

// signIn gives a browser that has a token a session.
func (p *pages) signIn(w http.ResponseWriter, r *http.Request) {
	var in signIn
	if !readBody(w, r, &in, false) {
		return
	}
	s, code := p.guard.signIn(w, r, in.Token, in.Name)
	switch code {
	case http.StatusOK:
		Reply(w, code, signedIn{Changes: p.guard.changesAs(s.role), Until: format.UTC(s.expires)})
	case http.StatusTooManyRequests:
		p.guard.read.refuse(w, code)
	case http.StatusForbidden:
		fail(w, code, "neither SOLOIST_READ_TOKEN nor SOLOIST_ADMIN_TOKEN is set, so there is nothing to sign in for")
	default:
		fail(w, code, "that is neither the read token nor the admin token")
	}
}

// signOut ends the session of a browser.
func (p *pages) signOut(w http.ResponseWriter, r *http.Request) {
	p.guard.signOut(w, r)
	w.WriteHeader(http.StatusNoContent)
}

// readBody decodes the body of a request, or answers with what is wrong with it. A form of
// another site cannot send this type. An optional body may be missing.
func readBody(w http.ResponseWriter, r *http.Request, body any, optional bool) bool {
	if optional && r.ContentLength == 0 {
		return true
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, "want a body of the type application/json")
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBody))
	d.DisallowUnknownFields()
	err := d.Decode(body)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows the JSON value")
		}
	}
	if err != nil && !(errors.Is(err, io.EOF) && optional) {
		fail(w, http.StatusBadRequest, "the body cannot be read: "+err.Error())
		return false
	}
	return true
}
