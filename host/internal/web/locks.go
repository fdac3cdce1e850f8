package web

import (
	"fmt"
	"net/http"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/locks"
)

// A locksAnswer is the locks of the app, and what is done once.
type locksAnswer struct {
	App appInfo `json:"app"`
	locks.Shown
}

// locks answers with the locks.
func (p *pages) locks(w http.ResponseWriter, r *http.Request) {
	values, err := parameters(r)
	if err == nil {
		err = checkLocks(values)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	reading, note := p.shelf.look(r.Context())
	answer := locksAnswer{App: p.infoFor(r, p.cache.now()), Shown: reading.Matching(values["q"]).Shown(mostRows)}
	if note != "" {
		answer.LocksNote = note
	}
	Reply(w, http.StatusOK, answer)
}

// checkLocks returns what is wrong with the parameters of a list of locks.
func checkLocks(values map[string]string) error {
	for name := range values {
		if name != "q" {
			return fmt.Errorf("unknown parameter %q: want q", format.Brief(name))
		}
	}
	return nil
}
