package azurite_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/azurite"
)

func TestStart(t *testing.T) {
	s := azurite.Start(t)
	for url, want := range map[string]string{s.URL + "/none/blob": "Azurite-Blob/3.37.0", s.QueueURL + "/none/messages": "Azurite-Queue/3.37.0"} {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("Server"); got != want { // unsigned, so refused, but by the service
			t.Errorf("got %s from %q, want it from %s", resp.Status, got, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := http.Get(s.URL); err == nil {
		t.Error("still answers after Close")
	}
}

// Over https a token lets in, and none does not.
func TestStartSecure(t *testing.T) {
	s, certificate := azurite.StartSecure(t)
	pool := x509.NewCertPool()
	if text, err := os.ReadFile(certificate); err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	for _, tt := range []struct {
		life time.Duration
		want int
	}{{time.Hour, http.StatusCreated}, {-time.Minute, http.StatusForbidden}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+"/box?restype=container", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+azurite.Token(tt.life))
		r.Header.Set("x-ms-version", "2025-01-05")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("a token of %s: got %s, want %d", tt.life, resp.Status, tt.want)
		}
	}
}
