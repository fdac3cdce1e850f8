package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// A tokenGuard knows the token of a setting.
type tokenGuard struct {
	setting, token string
	refused        *refusals
}

// offered reports whether a request has the token.
func (g tokenGuard) offered(r *http.Request) bool {
	scheme, offered, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return g.token != "" && strings.EqualFold(scheme, "Bearer") && equal(offered, g.token)
}

// equal takes a time that does not depend on the token.
func equal(offered, token string) bool {
	got, want := sha256.Sum256([]byte(offered)), sha256.Sum256([]byte(token)) // of equal length, whatever is offered
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// code is the answer to a request without the right token. The right token is admitted
// before, whatever others offer at the same time: a limit before the comparison would let
// a guesser lock the operator out, since both have one address behind a proxy. The length
// of the token defeats guesses. The limit bounds what they cost, and what they write to
// the log. A request without a token is no guess.
func (g tokenGuard) code(r *http.Request) int {
	if r.Header.Get("Authorization") == "" || g.refused.note(r, "request refused: wrong token", "setting", g.setting) {
		return http.StatusUnauthorized
	}
	return http.StatusTooManyRequests
}

// refuse answers with the code. It asks for no password, as a browser would show a box
// for it, keep it until it is closed, and send it on behalf of other sites.
func (g tokenGuard) refuse(w http.ResponseWriter, code int) {
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", refusalSeconds)
		w.Header().Set("Connection", "close") // so that each guess costs a connection
		fail(w, code, "too many wrong tokens: wait "+refusalSeconds+" s")
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	fail(w, code, "want the header Authorization: Bearer, with the token of "+g.setting+", or the session of a browser that has signed in on the page")
}
