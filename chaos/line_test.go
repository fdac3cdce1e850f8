package chaos_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/soloist-go/soloist/internal/azurite"
)

// A line is the way of one replica to the service: Toxiproxy, then a front that
// may refuse requests as a busy service does.
type line struct {
	t     *testing.T
	proxy *toxiproxy.Proxy
	front
}

func newLine(t *testing.T, service string) *line {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{t: t, front: front{next: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			// What the service has got it does, though nobody waits for the answer.
			r.Out = r.Out.WithContext(context.WithoutCancel(r.Out.Context()))
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}}}
	server := httptest.NewServer(&l.front)
	t.Cleanup(server.Close)
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l.proxy = toxiproxy.NewProxy(api, t.Name(), "127.0.0.1:0", server.Listener.Addr().String())
	l.up()
	t.Cleanup(l.down)
	return l
}

// connectionString is for the replica of this line.
func (l *line) connectionString() string {
	return (&azurite.Server{URL: "http://" + l.proxy.Listen + "/" + azurite.Account}).ConnectionString()
}

func (l *line) down() { l.proxy.Stop() }

func (l *line) up() {
	if err := l.proxy.Start(); err != nil {
		l.t.Error(err)
	}
}

// spoil adds a toxic (https://github.com/Shopify/toxiproxy#toxics) for what the
// client sends (upstream) or gets (downstream).
func (l *line) spoil(stream, toxic, attribute string, value int) {
	text := fmt.Sprintf(`{"type": %q, "stream": %q, "attributes": {%q: %d}}`, toxic, stream, attribute, value)
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		l.t.Errorf("%s: %v", text, err)
	}
}

func (l *line) mend() { l.proxy.Toxics.ResetToxics(context.Background()) }

// A front passes requests on, or refuses them.
type front struct {
	next http.Handler

	mu      sync.Mutex
	refusal *refusal
	renewed int // requests for that which were refused, of the last refusal
}

// A refusal is the answer of a service that throttles
// (https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes).
type refusal struct {
	status int
	after  time.Duration // of Retry-After
}

// refuse has all requests refused; nil: none.
func (f *front) refuse(r *refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusal = r; r != nil {
		f.renewed = 0
	}
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	no := f.refusal
	if no != nil && r.Header.Get("x-ms-lease-action") == "renew" {
		f.renewed++
	}
	f.mu.Unlock()
	if no == nil {
		f.next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Retry-After", fmt.Sprint(int(no.after/time.Second)))
	w.Header().Set("x-ms-error-code", "ServerBusy")
	w.WriteHeader(no.status)
}

// renewals is how often the replica tried to renew while it was refused.
func (f *front) renewals() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.renewed
}
