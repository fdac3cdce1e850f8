package azure_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
)

// A connection that comes to no TLS is a finding that tells why.
func TestExamineConnectionWithoutTLS(t *testing.T) {
	for want, start := range map[string]func(*httptest.Server){"its certificate is not trusted": (*httptest.Server).StartTLS, "does not speak TLS": (*httptest.Server).Start} {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		start(server)
		_, address, _ := strings.Cut(server.URL, "://")
		s := opened(t, azure.Config{ServiceURL: "https://" + address + "/sim?sig=" + secret})
		if got := examine(t, s, "connection", time.Now); !got.Fails || !strings.Contains(got.Text, "no TLS with "+address) || !strings.Contains(got.Advice, want) {
			t.Errorf("got %+v, want a failure and the advice %q", got, want)
		}
		server.Close()
	}
}

// What a signature says of itself tells whether it is enough.
func TestExamineSignature(t *testing.T) {
	for _, test := range []struct {
		url, says string
		fails     bool
	}{
		{"https://sim.blob.core.windows.net/?sp=rcwd&spr=https&sr=c&se=2026-12-31", "shared access signature of account sim until 2026-12-31T00:00:00Z", false},
		{"https://sim.blob.core.windows.net/?sp=rcwd&ss=b&srt=co&se=2026-12-31T10:20Z", "until 2026-12-31T10:20:00Z", false},
		{"https://sim.blob.core.windows.net/?si=policy", "shared access signature of account sim", false},
		{"https://sim.blob.core.windows.net/?sp=rcwd&se=2026-11-27", "until 2026-11-27T00:00:00Z, soon", false},
		{"http://127.0.0.1:10000/sim?sp=rcwd&spr=https", "is for https only", true},
		{"https://sim.blob.core.windows.net/?sp=rcwd&se=2026-11-20", "has expired", true},
		{"https://sim.blob.core.windows.net/?sp=rcwd&st=2026-11-22", "begins at 2026-11-22T00:00:00Z only", true},
		{"https://sim.blob.core.windows.net/?sp=rcwd&ss=fqt", "is not for the Blob service (ss=fqt)", true},
		{"https://sim.blob.core.windows.net/?sp=rcwd&ss=b&srt=sc", "is not for blobs themselves (srt=sc lacks o)", true},
		{"https://sim.blob.core.windows.net/?sp=rcwd&sr=b", "is not for a container (sr=b)", true},
		{"https://sim.blob.core.windows.net/?sp=rl", "does not allow to read and write (sp=rl)", true},
		{"https://sim.blob.core.windows.net/?sp=w", "does not allow to read and write (sp=w)", true},
	} {
		s := opened(t, azure.Config{ServiceURL: test.url + "&sig=" + secret, Transport: refusing("AuthenticationFailed", "")})
		now := func() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) }
		got := examine(t, s, "credentials", now)
		if got.Fails != test.fails || !strings.HasSuffix(got.Text, test.says) || got.Fails && got.Advice == "" || strings.Contains(got.Text+got.Advice, secret) {
			t.Errorf("%s: got %+v, want a failure %t that ends with %q", test.url, got, test.fails, test.says)
		}
	}
}

// examine does one check of a store.
func examine(t *testing.T, s *azure.Store, check string, now func() time.Time) azure.Finding {
	t.Helper()
	for _, c := range s.Examine(name, now) {
		if c.Name == check {
			return c.Do(t.Context())
		}
	}
	t.Fatalf("there is no check %q", check)
	return azure.Finding{}
}
