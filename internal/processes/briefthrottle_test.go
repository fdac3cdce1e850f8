//go:build unix

package processes

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/azurite"
)

// A throttle is on the way to the service, and answers nothing but 429 while it is shut.
type throttle struct {
	server  *httptest.Server
	shut    atomic.Bool
	refused atomic.Int64
}

func newThrottle(t *testing.T, server *azurite.Server) *throttle {
	t.Helper()
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	h := &throttle{}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out = r.Out.WithContext(context.WithoutCancel(r.Out.Context())) // what has come to the service is done
		},
		Transport: &http.Transport{IdleConnTimeout: 2 * time.Second, MaxIdleConnsPerHost: 32}, // Azurite ends connections that are idle for 5 s
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	h.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.shut.Load() {
			forward.ServeHTTP(w, r)
			return
		}
		h.refused.Add(1)
		w.Header().Set("x-ms-error-code", "ServerBusy")
		w.Header().Set("x-ms-request-id", "throttled")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(h.server.Close)
	return h
}

// setting leads a replica to the service through the throttle.
func (h *throttle) setting() string {
	return "SOLOIST_STORAGE=" + (&azurite.Server{URL: h.server.URL + "/" + azurite.Account}).ConnectionString()
}

// While the service answers nothing but 429, nobody acts once the trust in the lease is over. Soon after that,
// somebody does.
func TestThrottledHolderOfShortLease(t *testing.T) {
	t.Parallel()
	ofLengths(t, func(t *testing.T, length time.Duration, n int) {
		f := newBriefFleet(t, length, order{Program: noted})
		h := newThrottle(t, f.storage.Server)
		f.Env = append(f.Env, h.setting())
		f.join(3)
		f.effectAfter(t, 0)
		time.Sleep(2 * time.Second)
		for round := range n {
			switch {
			case *rounds > 0:
				f.throttleFor(h, time.Minute)
			case round == 0:
				f.throttleFor(h, 4*length) // the service's lease outlasts it
			default:
				f.throttleFor(h, lease+3*length)
			}
		}
		f.check(t)
	})
}

// throttleFor shuts the service for a while.
func (f *briefFleet) throttleFor(h *throttle, long time.Duration) {
	f.t.Helper()
	f.somewhere()
	h.refused.Store(0)
	h.shut.Store(true)
	shut := time.Now()
	time.Sleep(long)
	opened := time.Now()
	h.shut.Store(false)
	next := f.notebook.await(f.t, "an effect after the end", func(n note) bool { return n.what == works && n.at.After(opened) })
	var acted time.Duration
	for _, n := range f.all {
		if n.what == works && n.at.Before(opened) {
			acted = n.at.Sub(shut)
		}
	}
	took, most := next.at.Sub(opened), limit(f.lease+2*time.Second)
	f.t.Logf("lease %s, throttled for %s, %d requests: the last effect came after %s, the next one %s after the end, wanted at most %s",
		f.lease, ms(long), h.refused.Load(), ms(acted), ms(took), most)
	if acted > f.lease {
		f.t.Errorf("an effect %s after the service began to refuse everything, under a lease of %s", ms(acted), f.lease)
	}
	if took > most {
		f.t.Errorf("the next effect came %s after the end, want at most %s", ms(took), most)
	}
}
