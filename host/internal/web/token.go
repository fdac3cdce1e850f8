package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// A tokenGuard admits the requests that have the token of a setting.
type tokenGuard struct {
	setting, token string
	refused        *refusals
}

// around answers the requests that have no token, or a wrong one.
func (g tokenGuard) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch g.check(r) {
		case http.StatusOK:
			h.ServeHTTP(w, r)
		case http.StatusTooManyRequests:
			w.Header().Set("Retry-After", refusalSeconds)
			w.Header().Set("Connection", "close") // so that each guess costs a connection
			fail(w, http.StatusTooManyRequests, "too many wrong tokens: wait "+refusalSeconds+" s")
		default:
			w.Header().Add("WWW-Authenticate", "Bearer")
			w.Header().Add("WWW-Authenticate", fmt.Sprintf(`Basic realm=%q, charset="UTF-8"`, g.setting))
			fail(w, http.StatusUnauthorized, "want the header Authorization: Bearer, with the token of "+g.setting+", or the token as the password of any user")
		}
	})
}

// check returns 200 for the right token, whatever others offer at the same time:
// a limit before the comparison would let a guesser lock the operator out, since
// both have one address behind a proxy. The length of the token defeats guesses.
// The limit bounds what they cost, and what they write to the log. A request
// without a token is no guess: a browser sends one before it asks for a password.
func (g tokenGuard) check(r *http.Request) int {
	switch {
	case offers(r, g.token):
		return http.StatusOK
	case r.Header.Get("Authorization") == "":
		return http.StatusUnauthorized
	case g.refused.note(r, "request refused: wrong token", "setting", g.setting):
		return http.StatusUnauthorized
	}
	return http.StatusTooManyRequests
}

// offers reports whether the request has the token: as such, or as a browser
// sends what was typed as a password.
func offers(r *http.Request, token string) bool {
	scheme, offered, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if _, password, ok := r.BasicAuth(); ok {
		offered = password
	} else if !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	got, want := sha256.Sum256([]byte(offered)), sha256.Sum256([]byte(token)) // of equal length, whatever is offered
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
