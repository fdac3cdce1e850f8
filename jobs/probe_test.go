package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
)

// runProbes runs the job against list and returns its log and its error.
func runProbes(ctx context.Context, client *http.Client, list string) (string, error) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	err := runProbe(ctx, environment("PROBE_URLS", list), client, log)
	return out.String(), err
}

func wantNoSecret(t *testing.T, text, another string) {
	t.Helper()
	for _, secret := range []string{"ada", "hunter", "sesame", another} {
		if strings.Contains(text, secret) {
			t.Errorf("got %q, which shows %q", text, secret)
		}
	}
}

// A roundTrip stands in for the network, which virtual time cannot wait for.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func fakeClient(f roundTrip) *http.Client {
	client := probeClient()
	client.Transport = f
	return client
}

func answer(body io.Reader) *http.Response {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(body)}
}

// silent accepts a request and says nothing.
func silent(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

func fine(*http.Request) (*http.Response, error) { return answer(http.NoBody), nil }

// unasked is a client that may not be used.
func unasked(t *testing.T) *http.Client {
	return fakeClient(func(req *http.Request) (*http.Response, error) {
		t.Error("got a request")
		return fine(req)
	})
}

// raw answers with these bytes and closes the connection.
func raw(t *testing.T, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, text)
		conn.Close()
	}
}

// newProbeServer answers each path with the status or misbehaviour it names.
func newProbeServer(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") })
	for _, status := range []int{204, 304, 399, 400, 404, 500} {
		mux.HandleFunc(fmt.Sprintf("/%d", status), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	// /hops/xxx is redirected once for each x.
	mux.HandleFunc("/hops/{x}", func(w http.ResponseWriter, req *http.Request) {
		if x := req.PathValue("x"); len(x) > 1 {
			http.Redirect(w, req, "/hops/"+x[1:], http.StatusFound)
			return
		}
		http.Redirect(w, req, "/ok", http.StatusFound)
	})
	for path, location := range map[string]string{
		"/loop": "/loop?token=sesame", "/bad-location": "http://ada:hunter2@%zz/?token=sesame", "/other-scheme": "ftp://ada:hunter2@example.test/?token=sesame",
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		})
	}
	mux.HandleFunc("/hang-up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/cut", raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot a hundred bytes"))
	mux.HandleFunc("/garbage", raw(t, "token=sesame\r\n\r\n"))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func TestProbe(t *testing.T) {
	server := newProbeServer(t)
	tests := []struct {
		path   string
		status int
		want   string // of the error; empty: no error
	}{
		{"/ok", 200, ""},
		{"/204", 204, ""},
		{"/304", 304, ""},
		{"/399", 399, ""},
		{"/400", 400, "status 400"},
		{"/404", 404, "status 404"},
		{"/500", 500, "status 500"},
		{"/hops/xxx", 200, ""},
		{"/hops/xxxx", 0, "more than 3 redirects"},
		{"/loop", 0, "more than 3 redirects"},
		{"/bad-location", 0, "no valid answer"},
		{"/other-scheme", 0, "no valid answer"},
		{"/hang-up", 0, "EOF"},
		{"/cut", 200, "unexpected EOF"},
		{"/garbage", 0, "no valid answer"},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			name := server.URL + test.path
			secret := strings.Replace(name, "//", "//ada:hunter2@", 1) + "?token=sesame#token"
			log, err := runProbes(t.Context(), probeClient(), secret)

			wantNoSecret(t, log+fmt.Sprint(err), "token")
			want := fmt.Sprintf("url=%s status=%d latency_ms=", name, test.status)
			if !strings.Contains(log, want) || strings.Count(log, "\n") != 1 {
				t.Errorf("got log %q, want one line with %q", log, want)
			}
			if test.want == "" {
				if err != nil {
					t.Errorf("got %v, want no error", err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), name+": ") || !strings.HasSuffix(err.Error(), test.want) {
				t.Errorf("got %v, want %s: %s", err, name, test.want)
			}
			if !strings.Contains(log, "level=WARN") {
				t.Errorf("got log %q, want a warning", log)
			}
		})
	}
}

func TestProbeNamesAllThatFailed(t *testing.T) {
	server := newProbeServer(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	list := strings.Join([]string{server.URL + "/ok", gone.URL + "/x", server.URL + "/404"}, ",")

	log, err := runProbes(t.Context(), probeClient(), list)
	if err == nil {
		t.Fatal("got no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], gone.URL+"/x: dial tcp ") || lines[1] != server.URL+"/404: status 404" {
		t.Errorf("got %q", lines)
	}
	if n := strings.Count(log, "\n"); n != 3 {
		t.Errorf("got %d log lines, want 3: %s", n, log)
	}
}

func TestProbeCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	_, err := runProbes(t.Context(), probeClient(), server.URL)
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want an error about the certificate", err)
	}
}

// The user info is for the server that it names, and the query likewise.
func TestProbeCredentials(t *testing.T) {
	var referer, authorization atomic.Value
	second := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		referer.Store(req.Header.Get("Referer"))
		authorization.Store(req.Header.Get("Authorization"))
	}))
	defer second.Close()
	var user atomic.Value
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, password, _ := req.BasicAuth()
		user.Store(name + " " + password + " " + req.URL.RawQuery)
		http.Redirect(w, req, second.URL, http.StatusFound)
	}))
	defer first.Close()

	_, err := runProbes(t.Context(), probeClient(), strings.Replace(first.URL, "//", "//ada:hunter2@", 1)+"/?token=sesame")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := user.Load(), "ada hunter2 token=sesame"; got != want {
		t.Errorf("first server: got %q, want %q", got, want)
	}
	if referer.Load() != "" || authorization.Load() != "" {
		t.Errorf("second server: got referer %q, authorization %q, want none", referer.Load(), authorization.Load())
	}
}

func TestProbeURLs(t *testing.T) {
	tests := []struct {
		list, want string // the URLs, quoted, or the error
	}{
		{"http://a", `"http://a"`},
		{"http://a,https://b:8443/c?d=e", `"http://a" "https://b:8443/c?d=e"`},
		{" http://a ,\n\thttps://b,, ", `"http://a" "https://b"`},
		{"HTTP://a http://[::1]:80/", `"http://a" "http://[::1]:80/"`},
		{" ,\n", "PROBE_URLS holds no URL: want at least one"},
		{"ftp://ada:hunter2@a", "PROBE_URLS, entry 1: want a URL that begins with http:// or https://"},
		{"ada:hunter2@b/?token", "PROBE_URLS, entry 1: want a URL that begins with http:// or https://"},
		{"http://a,http://a b@c", "PROBE_URLS, entry 3: want a URL that begins with http:// or https://"},
		{"http://ada:hunter/2@b", "PROBE_URLS, entry 1: not a valid URL"},
		{"http://a/%zztoken", "PROBE_URLS, entry 1: not a valid URL"},
		{"http:///token", "PROBE_URLS, entry 1: the URL has no host"},
		{"http://ada:hunter2@:80/", "PROBE_URLS, entry 1: the URL has no host"},
		{"http:token", "PROBE_URLS, entry 1: the URL has no host"},
		{"x://token http://a https://", "PROBE_URLS, entry 1: want a URL that begins with http:// or https://\n" +
			"PROBE_URLS, entry 3: the URL has no host"},
	}
	for _, test := range tests {
		urls, err := probeURLs(test.list)
		got := strings.Trim(fmt.Sprintf("%q", urls), "[]")
		if err != nil {
			got = err.Error()
			wantNoSecret(t, got, "token")
		}
		if got != test.want {
			t.Errorf("%q: got %q, want %q", test.list, got, test.want)
		}
	}
}

func TestProbeTimeout(t *testing.T) {
	checkDurations(t, "PROBE_TIMEOUT", probeTimeout, []durationTest{
		{"", 10 * time.Second}, {"250ms", 250 * time.Millisecond}, {"30s", 30 * time.Second},
		{"30001ms", 0}, {"0", 0}, {"0s", 0}, {"-1s", 0}, {"10", 0}, {"soon", 0},
	})
}

// A durationTest is a text of a setting and what it means; zero: it is refused.
type durationTest struct {
	text string
	want time.Duration
}

func checkDurations(t *testing.T, setting string, parse func(string) (time.Duration, error), tests []durationTest) {
	t.Helper()
	for _, test := range tests {
		got, err := parse(test.text)
		if got != test.want || (err != nil) != (test.want == 0) {
			t.Errorf("%q: got %v, %v, want %v", test.text, got, err, test.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), fmt.Sprintf("%s is %q: want ", setting, test.text)) {
			t.Errorf("%q: got error %q", test.text, err)
		}
	}
}

func TestProbeSkips(t *testing.T) {
	_, err := runProbes(t.Context(), probeClient(), "")
	if want := soloist.Skip("PROBE_URLS is not set"); err == nil || err.Error() != want.Error() {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestProbeBadEnvironmentAsksNobody(t *testing.T) {
	env := environment("PROBE_URLS", "http://a ftp://b", "PROBE_TIMEOUT", "soon")
	err := runProbe(t.Context(), env, unasked(t), slog.New(slog.DiscardHandler))
	for _, want := range []string{"PROBE_URLS, entry 2", `PROBE_TIMEOUT is "soon"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to hold %q", err, want)
		}
	}
}

func TestProbeEightAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		client := fakeClient(func(*http.Request) (*http.Response, error) {
			// Grows by steps of one, so the highest value is seen by somebody.
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second) // virtual
			now.Add(-1)
			return answer(http.NoBody), nil
		})
		began := time.Now()
		if _, err := runProbes(t.Context(), client, strings.Repeat("http://a ", 20)); err != nil {
			t.Fatal(err)
		}
		if got, want := time.Since(began), 3*time.Second; got != want {
			t.Errorf("20 requests of 1 s took %v, want %v", got, want)
		}
		if got := most.Load(); got != 8 {
			t.Errorf("got %d at once, want 8", got)
		}
	})
}

// A server that accepts and says nothing, or a status and then nothing.
func TestProbeTimeLimit(t *testing.T) {
	stuck := func(req *http.Request) (*http.Response, error) {
		body, end := io.Pipe()
		context.AfterFunc(req.Context(), func() { end.CloseWithError(req.Context().Err()) })
		return answer(body), nil
	}
	for status, server := range map[int]roundTrip{0: silent, 200: stuck} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			log, err := runProbes(t.Context(), fakeClient(server), "http://a/b")
			if want := "http://a/b: no complete answer within 10s"; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			if got, want := time.Since(began), 10*time.Second; got != want {
				t.Errorf("took %v, want %v", got, want)
			}
			if want := fmt.Sprintf("status=%d latency_ms=10000", status); !strings.Contains(log, want) {
				t.Errorf("got log %q, want it to hold %q", log, want)
			}
		})
	}
}

func TestProbeStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the lease was lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(4*time.Second, func() { cancel(cause) })
		began := time.Now()
		_, err := runProbes(ctx, fakeClient(silent), strings.Repeat("http://a ", 20))
		if !errors.Is(err, cause) || strings.Count(err.Error(), cause.Error()) != 20 {
			t.Errorf("got %v, want %v for each URL", err, cause)
		}
		if got, want := time.Since(began), 4*time.Second; got != want {
			t.Errorf("took %v, want %v", got, want)
		}
	})
}

// A body without end is left after 64 KiB.
func TestProbeBodyLimit(t *testing.T) {
	var body endless
	client := fakeClient(func(*http.Request) (*http.Response, error) { return answer(&body), nil })
	if _, err := runProbes(t.Context(), client, "http://a"); err != nil {
		t.Fatal(err)
	}
	if body.read != 64<<10 {
		t.Errorf("read %d bytes, want %d", body.read, 64<<10)
	}
}

// endless is a body that ends in an error, so that a broken limit is seen to
// break, long after any fair limit.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	if e.read > 1<<20 {
		return 0, errors.New("read on and on")
	}
	e.read += len(p)
	return len(p), nil
}
