package web

import (
	"fmt"
	"net/http"
	"net/url"

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
	text, err := parseLocks(r.URL.Query())
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	reading, note := p.shelf.look(r.Context())
	answer := locksAnswer{App: p.infoFor(r, p.cache.now()), Shown: reading.Matching(text).Shown(mostRows)}
	if note != "" {
		answer.LocksNote = note
	}
	Reply(w, http.StatusOK, answer)
}

// parseLocks reads the parameters of a list of locks.
func parseLocks(values url.Values) (text string, err error) {
	for name, all := range values {
		if name != "q" {
			return "", fmt.Errorf("unknown parameter %q: want q", format.Brief(name))
		}
		if len(all) > 1 {
			return "", fmt.Errorf("the parameter q is there %d times: want it once", len(all))
		}
		text = all[0]
	}
	return text, nil
}
