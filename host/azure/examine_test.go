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
func TestExamineAConnectionWithoutTLS(t *testing.T) {
	for want, start := range map[string]func(*httptest.Server){"its certificate is not trusted": (*httptest.Server).StartTLS, "does not speak TLS": (*httptest.Server).Start} {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		start(server)
		_, address, _ := strings.Cut(server.URL, "://")
		s, err := azure.Open(azure.Config{ServiceURL: "https://" + address + "/sim?sig=" + secret})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, check := range s.Examine(name, time.Now) {
			if check.Name != "connection" {
				continue
			}
			found = true
			if got := check.Do(t.Context()); !got.Fails || !strings.Contains(got.Text, "no TLS with "+address) || !strings.Contains(got.Advice, want) {
				t.Errorf("got %+v, want a failure and the advice %q", got, want)
			}
		}
		if !found {
			t.Error("the connection is not looked at")
		}
		server.Close()
	}
}
