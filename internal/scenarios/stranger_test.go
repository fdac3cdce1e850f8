package scenarios_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim"
)

const (
	storage = "https://storage.azure.com"            // as a resource of tokens
	foreign = "11111111-2222-3333-4444-555555555555" // an application that has nothing to do with storage
)

// challenges are answers 401 of something other than the service: the sign-in
// of a web site, an API of another resource, and one without a tenant.
var challenges = map[string]string{
	"a sign-in": `Bearer realm="x.azurewebsites.net" authorization_uri="https://login.windows.net/` + foreign + `/oauth2/authorize" resource_id="` + foreign + `"`,
	"an API":    `Bearer authorization_uri="https://login.windows.net/` + foreign + `/oauth2/authorize" resource_id="https://management.azure.com"`,
	"no tenant": `Bearer authorization_uri="https://login.example.com" resource_id="` + foreign + `"`,
	"claims":    `Bearer realm="", error="insufficient_claims", claims="eyJhY2Nlc3NfdG9rZW4iOnt9fQ=="`,
}

// A stranger answers in the place of the service, and of the source of tokens it
// keeps what was asked for.
type stranger struct {
	answer network
	there  atomic.Bool

	mu    sync.Mutex
	asked map[string]int // requests for a token, by resource
	met   int            // requests that the stranger answered
}

func (s *stranger) strike(ctx context.Context, p *sim.RPC) (*http.Response, error) {
	resource := p.HTTP().URL.Query().Get("resource")
	switch {
	case p.Op() == "token" && resource != storage:
		s.note(func() { s.asked[resource]++ })
		return refuse(400, "")(ctx, p) // the identity has no right to it
	case p.Op() == "token":
		s.note(func() { s.asked[resource]++ })
		return tokens(24*time.Hour, new(atomic.Bool), nil)(ctx, p)
	case !s.there.Load():
		return p.Go(ctx)
	}
	s.note(func() { s.met++ })
	return s.answer(ctx, p)
}

func (s *stranger) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// The identity asks for tokens for storage and nothing else, whoever answers 401,
// and goes on when the service answers again.
func TestAChallengeOfAStranger(t *testing.T) {
	t.Setenv("IDENTITY_ENDPOINT", "http://"+tokenHost+"/token")
	t.Setenv("IDENTITY_HEADER", signature)
	for name, challenge := range challenges {
		inCase(t, name, long, func(w *world) {
			s := &stranger{answer: refuse(401, "", "WWW-Authenticate: "+challenge), asked: map[string]int{}}
			w.azure = byIdentity
			w.meet(s.strike)
			w.start("a", "b")
			time.Sleep(5*time.Minute + 10*time.Second)
			s.there.Store(true)
			time.Sleep(20 * time.Second)
			s.there.Store(false)
			w.wellAfter(time.Now())
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.asked) != 1 || s.asked[storage] != len(w.replicas) || s.met == 0 {
				w.Errorf("tokens asked for, by resource: %v, with %d requests to the stranger; want one for storage by each replica", s.asked, s.met)
			}
		})
	}
}

// gateway answers as an API gateway or a server like S3 does that has no such
// route: with a code in the body, and no header of the service.
func gateway(status int, kind, body string) network {
	return func(ctx context.Context, p *sim.RPC) (*http.Response, error) {
		resp, err := refuse(status, "", "Content-Type: "+kind)(ctx, p)
		if err == nil {
			resp.Body = io.NopCloser(strings.NewReader(body))
		}
		return resp, err
	}
}

// A code in the body of a stranger's refusal says nothing of the entry: each
// tick succeeds all the same, in one attempt.
func TestACodeOfAGateway(t *testing.T) {
	for kind, body := range map[string]string{
		"application/json": `{"error":{"code":"NotFound","message":"no such route"}}`,
		"application/xml":  `<?xml version="1.0"?><Error><Code>LeaseLost</Code></Error>`,
	} {
		for _, status := range []int{404, 409, 412} {
			for _, op := range []string{"acquire", "claim", "renew", "finish", "release"} {
				for _, interrupted := range []soloist.InterruptedPolicy{soloist.Abandon, soloist.Rerun} {
					name := fmt.Sprintf("%d %s to %s, rerun %t", status, kind, op, interrupted == soloist.Rerun)
					beside(t, name, job{time.Minute, 20 * time.Second, interrupted}, func(w *world) {
						w.start("a", "b")
						time.Sleep(3*time.Minute - 5*time.Second)
						w.meet(first(1, op, gateway(status, kind, body)))
						time.Sleep(5*time.Minute + 30*time.Second)
						w.succeeded(8, D/2)
						if n := len(w.runs()); n != 8 {
							w.Errorf("%d runs of 8 ticks", n)
						}
					})
				}
			}
		}
	}
}

// weakened is a proxy that makes each ETag a weak one, as one does that compresses
// (https://www.rfc-editor.org/rfc/rfc9110#name-etag).
func weakened(ctx context.Context, p *sim.RPC) (*http.Response, error) {
	resp, err := p.Go(ctx)
	if err == nil && resp.Header.Get("ETag") != "" {
		resp.Header.Set("ETag", "W/"+resp.Header.Get("ETag"))
	}
	return resp, err
}

// cached is a proxy that answers reads by the first answer that showed the entry free.
func cached() network {
	var mu sync.Mutex
	kept := http.Header{}
	return func(ctx context.Context, p *sim.RPC) (*http.Response, error) {
		resp, err := p.Go(ctx)
		if err != nil || p.Op() != "read" || p.HTTP().Method != http.MethodHead {
			return resp, err
		}
		mu.Lock()
		defer mu.Unlock()
		if len(kept) == 0 && resp.Header.Get("x-ms-lease-state") != "available" {
			return resp, nil
		}
		date := resp.Header.Get("Date")
		if len(kept) == 0 {
			kept = resp.Header.Clone()
		}
		resp.Header = kept.Clone()
		resp.Header.Set("Date", date)
		return resp, nil
	}
}

// A proxy that changes ETags or keeps answers is told by each replica that does not get
// on with it, and all goes on when it is gone.
func TestAProxyThatSpoilsETags(t *testing.T) {
	for name, proxy := range map[string]func() network{"weakened": func() network { return weakened }, "cached": cached} {
		inCase(t, name, long, func(w *world) {
			w.start("a", "b")
			time.Sleep(5*time.Minute + 50*time.Second) // no run is under way
			w.meet(noted("a proxy", proxy()))
			time.Sleep(10 * time.Minute)
			told := 0
			for _, r := range w.replicas {
				if h := r.Health(); h.Storage != nil || len(h.Broken) > 0 {
					told++
				}
			}
			if told == 0 {
				w.Error("each replica says that all is well")
			}
			w.mend()
			w.wellAfter(time.Now())
		})
	}
}
