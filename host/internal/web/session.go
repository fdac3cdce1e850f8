package web

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/user"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
)

// sessionTime is how long a browser stays signed in at most.
const sessionTime = 12 * time.Hour

// A session is what a browser that has signed in shows in a cookie. All of it is in the
// cookie, so that any replica with the same tokens knows it. The cookie is signed with a
// key that is made of the token: another token ends the session.
type session struct {
	role    role
	expires time.Time
	id      string // distinguishes it from others, to end it
	name    string // who has signed in, by their own account
}

// sessions knows which sessions have been ended. It forgets those that have expired.
type sessions struct {
	app    string
	tokens map[role]string // of the roles
	port   string          // in the name of the cookie; empty: all ports know each other's sessions

	mu    sync.Mutex
	ended map[string]time.Time // by id: when it would have expired
}

// encode returns the cookie's value.
func (s *session) encode(app, token string) string {
	text := strings.Join([]string{string(s.role), strconv.FormatInt(s.expires.Unix(), 10), s.id, s.name}, "|")
	return base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + base64.RawURLEncoding.EncodeToString(sign(app, token, text))
}

func sign(app, token, text string) []byte {
	mac := hmac.New(sha256.New, []byte(token))
	fmt.Fprintf(mac, "soloist session\x00%s\x00%s", app, text)
	return mac.Sum(nil)
}

// open returns the session of a request, false if it has none that counts.
func (all *sessions) open(r *http.Request) (session, bool) {
	cookie, err := r.Cookie(all.cookieName())
	if err != nil {
		return session{}, false
	}
	first, second, _ := strings.Cut(cookie.Value, ".")
	text, err := base64.RawURLEncoding.DecodeString(first)
	mac, err2 := base64.RawURLEncoding.DecodeString(second)
	parts := strings.SplitN(string(text), "|", 4)
	if err != nil || err2 != nil || len(parts) != 4 {
		return session{}, false
	}
	seconds, err := strconv.ParseInt(parts[1], 10, 64)
	s := session{role: role(parts[0]), expires: time.Unix(seconds, 0), id: parts[2], name: parts[3]}
	token := all.tokens[s.role]
	if err != nil || token == "" || !hmac.Equal(mac, sign(all.app, token, string(text))) {
		return session{}, false
	}
	return s, time.Now().Before(s.expires) && !all.over(s.id)
}

// begin gives a browser a session.
func (all *sessions) begin(w http.ResponseWriter, r *http.Request, as role, name string) session {
	s := session{role: as, expires: time.Now().Add(sessionTime), id: rand.Text()[:16], name: name}
	http.SetCookie(w, all.cookie(r, s.encode(all.app, all.tokens[as]), int(sessionTime/time.Second)))
	return s
}

// end ends the session of a browser, also for other holders of the cookie. Other
// replicas accept a copy until it expires: to notify them would take a call of the store for
// each request, or every few seconds.
func (all *sessions) end(w http.ResponseWriter, r *http.Request, s session) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for id, expires := range all.ended {
		if time.Now().After(expires) {
			delete(all.ended, id)
		}
	}
	if s.id != "" {
		all.ended[s.id] = s.expires
	}
	http.SetCookie(w, all.cookie(r, "", -1))
}

func (all *sessions) over(id string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	_, over := all.ended[id]
	return over
}

// cookieName has the name of the app, since ports of one machine share their cookies.
func (all *sessions) cookieName() string { return "soloist-" + all.app + all.port }

// cookie returns a cookie that scripts cannot read and that browsers do not send for other sites.
func (all *sessions) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{Name: all.cookieName(), Value: value, MaxAge: age, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"}
}

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

// signIn gives a browser that has a token a session with the role of the token.
func (p *pages) signIn(w http.ResponseWriter, r *http.Request) {
	var in signIn
	if !readBody(w, r, &in, false) {
		return
	}
	g := p.guard
	switch as := g.sessions.roleBy(in.Token); {
	case as != nobody:
		name := format.Brief(in.Name)
		if account, err := user.Current(); name == "" && g.made && err == nil {
			name = format.Brief(account.Username)
		}
		g.refused.log.Info("signed in over HTTP", caller(r, "role", as, "name", name)...)
		s := g.sessions.begin(w, r, as, name)
		Reply(w, http.StatusOK, signedIn{Changes: g.changesAs(as), Until: format.UTC(s.expires)})
	case cmp.Or(g.sessions.tokens[reader], g.sessions.tokens[adminRole]) == "":
		fail(w, http.StatusForbidden, "neither SOLOIST_READ_TOKEN nor SOLOIST_ADMIN_TOKEN is set, so there is nothing to sign in for")
	case g.refused.note(r, "request refused: wrong token", "setting", "SOLOIST_READ_TOKEN or SOLOIST_ADMIN_TOKEN"):
		fail(w, http.StatusUnauthorized, "that is neither the read token nor the admin token")
	default:
		tooMany(w)
	}
}

// signOut ends the session of a browser.
func (p *pages) signOut(w http.ResponseWriter, r *http.Request) {
	s, _ := p.guard.sessions.open(r)
	p.guard.sessions.end(w, r, s)
	w.WriteHeader(http.StatusNoContent)
}

// bodyWords is what is wrong with a body, without words of Go.
func bodyWords(err error) string {
	if at, ok := errors.AsType[*time.ParseError](err); ok {
		return fmt.Sprintf("%q is no instant such as 2026-03-29T01:00:00Z", format.Brief(at.Value))
	}
	if of, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && of.Field != "" {
		return fmt.Sprintf("%s is %s: want %s", of.Field, of.Value, wanted[of.Type.Kind()])
	}
	if most, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Sprintf("it has more than %d bytes", most.Limit)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// wanted is what JSON has for a type of Go.
var wanted = map[reflect.Kind]string{reflect.Bool: "true or false", reflect.String: "a string", reflect.Int: "a whole number"}

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
		fail(w, http.StatusBadRequest, "the body cannot be read: "+bodyWords(err))
		return false
	}
	return true
}
