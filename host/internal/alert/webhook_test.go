package alert_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/internal/alert"
	"github.com/soloist-go/soloist/store"
)

func TestSignature(t *testing.T) {
	mac := hmac.New(sha256.New, []byte("key"))
	mac.Write([]byte(`1700000000.{"a":1}`))
	if got, want := alert.Signature("key", 1700000000, []byte(`{"a":1}`)), fmt.Sprintf("t=1700000000,v1=%x", mac.Sum(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// roundTripper answers requests without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A receiver that does not answer, or refuses, is logged without the URL, which may be secret.
func TestLogHasNoURL(t *testing.T) {
	for name, answer := range map[string]roundTripper{
		"refused":  func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("connection refused") },
		"silent":   func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
		"redirect": func(*http.Request) (*http.Response, error) { return answered(302), nil },
		"error":    func(*http.Request) (*http.Response, error) { return answered(500), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 0)
				var log strings.Builder
				r := w.addWith("r0", slog.New(slog.NewTextHandler(&log, nil)), answer)
				w.end("report", store.Failed)
				time.Sleep(2 * time.Minute)
				r.die()
				synctest.Wait()
				if !strings.Contains(log.String(), "has not taken a message") || strings.Contains(log.String(), "secret") || strings.Contains(log.String(), "hooks") {
					t.Errorf("got the log %s", log.String())
				}
			})
		})
	}
}

func answered(code int) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Location": {"https://elsewhere.example/"}}, Body: http.NoBody}
}

// A redirect could lead messages elsewhere.
func TestNoRedirectIsFollowed(t *testing.T) {
	followed := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if followed = followed || r.URL.Path == "/elsewhere"; !followed {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
	}))
	defer s.Close()
	answer, err := alert.NewClient().Post(s.URL+"/hook", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusTemporaryRedirect || followed {
		t.Errorf("got code %d, followed %t", answer.StatusCode, followed)
	}
}
