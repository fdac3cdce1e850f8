package scenarios_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// refusals of a request for who sent it, and what the error has to say.
var refusals = []struct {
	status     int
	code, hint string
}{
	{403, "AuthenticationFailed", "key or signature is wrong or has expired"},
	{403, "AuthorizationPermissionMismatch", `grant the identity the role "Storage Blob Data Contributor"`},
	{403, "AuthorizationFailure", "network rules"},
	{403, "KeyBasedAuthenticationNotPermitted", "use an identity"},
	{401, "InvalidAuthenticationInfo", "of one tenant"},
	{401, "NoAuthenticationInformation", "of one tenant"},
}

var ways = map[string]string{"key": byKey, "signature": bySignature}

// denied checks that health says what is wrong, and what to do about it.
func (w *world) denied(name, code, hint string) {
	w.Helper()
	h := w.replicas[name].Health()
	if !errors.Is(h.Storage, fs.ErrPermission) {
		w.Errorf("%s: health tells %v", name, h.Storage)
		return
	}
	w.tells(h.Storage.Error())
	if text := h.Storage.Error(); !strings.Contains(text, code) || !strings.Contains(text, hint) {
		w.Errorf("%s: health tells %q", name, text)
	}
}

// A key is rotated, a signature runs out or a role is removed while a run is
// under way.
func TestCredentialsThatGoBad(t *testing.T) {
	for how, way := range ways {
		for _, tt := range refusals {
			o := outage{fault: refuse(tt.status, tt.code), share: 1, way: way,
				tell: func(w *world, name string) { w.denied(name, tt.code, tt.hint) }}
			each(t, fmt.Sprintf("%s, %d %s", how, tt.status, tt.code), o, 6*time.Second, 3*time.Minute)
		}
	}
}

func TestCredentialsThatWereNeverGood(t *testing.T) {
	for how, way := range ways {
		for _, tt := range refusals {
			beside(t, fmt.Sprintf("%s, %d %s", how, tt.status, tt.code), long, func(w *world) {
				w.azure = by(way)
				begin := time.Now()
				w.meet(refuse(tt.status, tt.code))
				w.start("a", "b")
				time.Sleep(10 * time.Minute)
				for name, r := range w.replicas {
					w.denied(name, tt.code, tt.hint)
					if r.Health().Reached {
						w.Errorf("%s: reached what refuses", name)
					}
				}
				applied := func(e trace.Event) bool { return e.Status != 0 }
				if runs := w.runs(); len(runs) > 0 || slices.ContainsFunc(w.events(trace.Request, ""), applied) {
					w.Errorf("%d runs, or a request was applied", len(runs))
				}
				over := time.Now()
				w.meet(nil)
				w.wellAfter(over)
				w.bounded(perSecond, begin, over)
			})
		}
	}
}

// A read that succeeds must neither start the pauses between acquisitions anew
// nor end the outage: nothing can be written.
func TestARoleThatMayOnlyRead(t *testing.T) {
	in(t, long, func(w *world) {
		w.start("a", "b")
		time.Sleep(long.every + long.takes + 5*time.Second)
		begin := time.Now()
		w.meet(only(refuse(403, "AuthorizationPermissionMismatch"), "container", "create", "acquire", "claim", "settle", "progress", "renew", "finish", "release"))
		time.Sleep(10 * time.Minute)
		for name, r := range w.replicas {
			if n := len(w.sent(name, begin, begin.Add(10*time.Minute))); n > 10*60 {
				t.Errorf("%s sent %d requests in ten minutes", name, n)
			}
			if n := strings.Count(w.logs[name].String(), "a call to the store failed: trying again"); n > 1 {
				t.Errorf("%s told the outage %d times", name, n)
			}
			told := 0
			for range 60 {
				if h := r.Health(); errors.Is(errors.Join(h.Storage, h.Broken["work"]), fs.ErrPermission) {
					told++
				}
				time.Sleep(time.Second)
			}
			if told < 60 {
				t.Errorf("%s: health told it %d times of 60", name, told)
			}
		}
		over := time.Now()
		w.meet(nil)
		w.wellAfter(over)
		w.bounded(perSecond, begin, over)
	})
}

// tokenHost gives out tokens as App Service and Container Apps do
// (https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference).
const tokenHost = "platform.test"

// tokens answers for tokens that are good for life, while the source is not broken.
func tokens(life time.Duration, broken *atomic.Bool, f network) network {
	return func(ctx context.Context, p *sim.RPC) (*http.Response, error) {
		switch {
		case p.HTTP().URL.Host != tokenHost:
			return p.Go(ctx)
		case broken.Load():
			return f(ctx, p)
		}
		body := fmt.Sprintf(`{"access_token":%q,"expires_on":"%d","token_type":"Bearer","resource":"https://storage.azure.com"}`,
			accountKey, time.Now().Add(life).Unix())
		return &http.Response{StatusCode: 200, Request: p.HTTP(), Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}, nil
	}
}

// byIdentity has a client id of its own for each replica: the client library
// keeps tokens by it for the whole process.
func byIdentity() azure.Config {
	var b [16]byte
	rand.Read(b[:])
	id := fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	return azure.Config{AccountName: "sim", Credential: "managedidentity", ClientID: id}
}

// The source of tokens breaks some time before the token runs out, which is in
// the middle of a run.
func TestASourceOfTokensThatBreaks(t *testing.T) {
	t.Setenv("IDENTITY_ENDPOINT", "http://"+tokenHost+"/token")
	t.Setenv("IDENTITY_HEADER", signature)
	for name, f := range map[string]network{"refuses": refuse(400, ""), "fails": refuse(500, ""), "hangs": hang, "closes": refused} {
		for mended, lost := range map[time.Duration]bool{43 * time.Minute: false, 50 * time.Minute: true} {
			inCase(t, fmt.Sprintf("%s until %s", name, mended), job{20 * time.Minute, 15 * time.Minute, soloist.Rerun}, func(w *world) {
				var broken atomic.Bool
				w.azure = byIdentity
				w.meet(tokens(45*time.Minute, &broken, f))
				w.start("a", "b")
				time.Sleep(30 * time.Minute)
				broken.Store(true)
				time.Sleep(12 * time.Minute)
				run := w.running()
				time.Sleep(mended - 42*time.Minute)
				for name, hit := range w.replicas {
					if text := fmt.Sprint(hit.Health().Storage); lost && !strings.Contains(text, "token") {
						w.Errorf("%s: health tells %q", name, text)
					}
				}
				broken.Store(false)
				w.wellAfter(time.Now())
				if got := w.lost(run); got != lost {
					w.Errorf("the run lost its lease: %t", got)
				}
				time.Sleep(time.Until(w.running().Time.Add(w.job.takes + time.Second))) // a run longer than the cluster has to settle
			})
		}
	}
}
