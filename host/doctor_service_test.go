package host_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// Secrets, easily recognised. The key is base64, of "do-not-tell-anybody!".
const (
	hiddenKey       = "ZG8tbm90LXRlbGwtYW55Ym9keSE="
	hiddenSignature = "DoNotTellThisSignature"
)

// A rule refuses some requests to a service, with a status and a code.
type rule func(r *http.Request) (status int, code string)

func always(status int, code string) rule {
	return func(*http.Request) (int, string) { return status, code }
}

// when is a rule for the requests that match.
func when(matches func(*http.Request) bool, status int, code string) rule {
	return func(r *http.Request) (int, string) {
		if matches(r) {
			return status, code
		}
		return 0, ""
	}
}

// authorized is a rule for requests that show credentials: doctor's first shows
// none, and is answered by any account.
func authorized(status int, code string) rule {
	return when(func(r *http.Request) bool { return r.Header.Get("Authorization") != "" || r.URL.Query().Has("sig") }, status, code)
}

// toWrite is a rule for those who may only read.
func toWrite(status int, code string) rule {
	return when(func(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }, status, code)
}

func toWriteRecords(status int, code string) rule {
	return when(func(r *http.Request) bool { return r.URL.Query().Get("comp") == "metadata" }, status, code)
}

func toDelete(status int, code string) rule {
	return when(func(r *http.Request) bool { return r.Method == http.MethodDelete }, status, code)
}

func toMakeContainers(status int, code string) rule {
	return when(func(r *http.Request) bool {
		return r.Method == http.MethodPut && r.URL.Query().Get("restype") == "container"
	}, status, code)
}

// ruled is a simulated service with a rule.
type ruled struct {
	blobtest.Blob
	rule rule
}

func (s *ruled) Do(r *http.Request) (*http.Response, error) {
	if s.rule != nil {
		if status, code := s.rule(r); status != 0 {
			return blobtest.Refusal(r, time.Now(), status, code), nil
		}
	}
	return s.Blob.Do(r)
}

func (s *ruled) ServeHTTP(w http.ResponseWriter, r *http.Request) { blobtest.Handler(s.Do)(w, r) }

// served returns the address of a handler.
func served(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// encrypted returns the https address of a handler with a certificate.
func encrypted(t *testing.T, until time.Time, host string) string {
	t.Helper()
	cert, key := azurite.Certificate(t, until, host)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(new(ruled))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail, as they should
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func byKey(url string) string {
	return "SOLOIST_STORAGE=AccountName=shopstore;AccountKey=" + hiddenKey + ";BlobEndpoint=" + url + "/shopstore"
}

func bySignature(url, more string) string {
	return "SOLOIST_STORAGE=" + url + "/shopstore?sv=2025-01-05&sig=" + hiddenSignature + more
}

// byIdentity opens a store over a service for the identity of a platform. The
// client library keeps tokens by client id for the whole process, hence a new
// id for each.
func byIdentity(t *testing.T, s *ruled, p *azurite.Platform, more ...string) store.Store {
	t.Helper()
	environment(t, append(p.Environment(), more...)...)
	return opened(t, azure.Config{AccountName: "shopstore", Credential: "managedidentity", ClientID: newUUID()}, s)
}

// opened is a store of a service in the public cloud.
func opened(t *testing.T, c azure.Config, s *ruled) store.Store {
	t.Helper()
	c.Transport = send(func(r *http.Request) (*http.Response, error) {
		switch {
		case strings.HasPrefix(r.URL.Host, "127.0.0.1:"):
			return http.DefaultClient.Do(r)
		case r.URL.Host == "169.254.169.254": // where virtual machines ask, and what one without an identity gets
			return blobtest.Refusal(r, time.Now(), http.StatusBadRequest, "invalid_request"), nil
		}
		return s.Do(r)
	})
	backend, err := azure.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return backend
}

type send func(*http.Request) (*http.Response, error)

func (f send) Do(r *http.Request) (*http.Response, error) { return f(r) }

// withContainer is a service with the container, and from then on the rule.
func withContainer(t *testing.T, then rule) *ruled {
	t.Helper()
	s := &ruled{}
	if resp := s.put(t, "?restype=container", ""); resp.StatusCode != http.StatusCreated {
		t.Fatal("no container")
	}
	s.rule = then
	return s
}

// put sends a request about the container.
func (s *ruled) put(t *testing.T, path, content string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequest(http.MethodPut, "https://shopstore.blob.core.windows.net/soloist"+path, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// A maker makes a set-up: it returns settings, and may change the program.
type maker func(t *testing.T, p *host.Program) (env []string)

func withSettings(env ...string) maker {
	return func(*testing.T, *host.Program) []string { return env }
}

// withKey has the key of an account whose service has the rule.
func withKey(r rule) maker {
	return func(t *testing.T, _ *host.Program) []string { return []string{byKey(served(t, &ruled{rule: r}))} }
}

func withSignature(r rule, more string) maker {
	return func(t *testing.T, _ *host.Program) []string {
		return []string{bySignature(served(t, &ruled{rule: r}), more)}
	}
}

func withIdentity(r rule, more ...string) maker {
	return func(t *testing.T, p *host.Program) []string {
		p.Store = byIdentity(t, &ruled{rule: r}, azurite.NewPlatform(t), more...)
		return nil
	}
}

// withCertificate has the key of an account whose service has a certificate that is
// good for so long.
func withCertificate(good time.Duration, name string) maker {
	return func(t *testing.T, _ *host.Program) []string {
		return []string{byKey(encrypted(t, time.Now().Add(good), name))}
	}
}

// withClock is a set-up on a machine whose clock is off.
func withClock(off time.Duration, make maker) maker {
	return func(t *testing.T, p *host.Program) []string {
		p.Now = func() time.Time { return time.Now().Add(off) }
		return make(t, p)
	}
}

// withRecord has one under a job's name.
func withRecord(text string) maker {
	return func(t *testing.T, p *host.Program) []string {
		p.Store = &local.Memory{}
		put(t, p.Store, "demo/beat", text, false)
		return nil
	}
}

// withBlob has a blob of another tool under a job's name.
func withBlob(content string, headers ...string) maker {
	return func(t *testing.T, _ *host.Program) []string {
		s := withContainer(t, nil)
		s.put(t, "/demo/beat", content, append(headers, "x-ms-blob-type", "BlockBlob")...)
		return []string{byKey(served(t, s))}
	}
}

func newUUID() string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", os.Getpid(), time.Now().UnixNano()&(1<<48-1))
}

// unwritable is a directory in which this user can make nothing; root can in
// all but those that the kernel makes up.
func unwritable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, "/sys"} {
		if _, err := os.Stat(dir); err == nil && os.Mkdir(filepath.Join(dir, "try"), 0o700) != nil {
			return dir
		}
		os.Remove(filepath.Join(dir, "try"))
	}
	t.Skip("this user writes everywhere, and there is no /sys")
	return ""
}
