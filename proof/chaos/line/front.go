package line

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// A Front passes requests on, or refuses them.
type Front struct {
	next http.Handler

	mu      sync.Mutex
	refusal *Refusal
	share   float64 // of the answers that are lost
}

// A Refusal is the answer of a service that throttles
// (https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes).
type Refusal struct {
	Status int
	After  time.Duration // of Retry-After; zero: there is none
	Share  float64       // of the requests; zero: all
}

// Refuse has requests refused; nil: none.
func (f *Front) Refuse(r *Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusal = r
}

// Lose has a share of the answers lost: the service has done what was asked.
func (f *Front) Lose(share float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.share = share
}

func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refusal, lost := f.decide()
	switch {
	case refusal != nil:
		if refusal.After > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(int(refusal.After/time.Second)))
		}
		w.Header().Set("x-ms-error-code", "ServerBusy")
		w.WriteHeader(refusal.Status)
	case lost:
		f.next.ServeHTTP(nowhere{http.Header{}}, r)
		panic(http.ErrAbortHandler) // which ends the connection
	default:
		f.next.ServeHTTP(w, r)
	}
}

func (f *Front) decide() (refusal *Refusal, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if refusal = f.refusal; refusal != nil && refusal.Share > 0 && rand.Float64() >= refusal.Share {
		refusal = nil
	}
	return refusal, rand.Float64() < f.share
}

// nowhere is where lost answers go.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}
