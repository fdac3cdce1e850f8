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
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, req *http.Request) {
		code, _ := strconv.Atoi(req.PathValue("code"))
		w.WriteHeader(code)
	})
	for path, location := range map[string]string{
		"/hops/1": "/hops/2", "/hops/2": "/hops/3", "/hops/3": "/hops/4", "/hops/4": "/status/200", "/loop": "/loop?token=sesame",
		"/bad-location": "http://ada:hunter2@%zz/?token=sesame", "/other-scheme": "ftp://ada:hunter2@example.test/?token=sesame",
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
	for path, test := range map[string]struct {
		status int
		want   string // of the error; empty: no error
	}{
		"/status/200":   {200, ""},
		"/status/399":   {399, ""},
		"/status/400":   {400, "status 400"},
		"/status/500":   {500, "status 500"},
		"/hops/2":       {200, ""},
		"/hops/1":       {0, "more than 3 redirects"},
		"/loop":         {0, "more than 3 redirects"},
		"/bad-location": {0, "no valid answer"},
		"/other-scheme": {0, "no valid answer"},
		"/hang-up":      {0, "EOF"},
		"/cut":          {200, "unexpected EOF"},
		"/garbage":      {0, "no valid answer"},
	} {
		name := server.URL + path
		secret := strings.Replace(name, "//", "//ada:hunter2@", 1) + "?token=sesame#token"
		log, err := runProbes(t.Context(), probeClient(), secret)
		wantNoSecret(t, log+fmt.Sprint(err), "token")
		want := fmt.Sprintf("url=%s status=%d latency_ms=", name, test.status)
		if !strings.Contains(log, want) || strings.Count(log, "\n") != 1 || strings.Contains(log, "level=WARN") != (test.want != "") {
			t.Errorf("got log %q, want one line with %q", log, want)
		}
		got, named := strings.CutPrefix(fmt.Sprint(err), name+": ")
		if (err == nil) != (test.want == "") || err != nil && !(named && strings.HasSuffix(got, test.want)) {
			t.Errorf("got %v, want %s: %s", err, name, test.want)
		}
	}
}

func TestProbeNamesAllThatFailed(t *testing.T) {
	server, gone, untrusted := newProbeServer(t), httptest.NewServer(nil), httptest.NewUnstartedServer(nil)
	gone.Close()
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	untrusted.StartTLS()
	defer untrusted.Close()
	good, bad := server.URL+"/status/200", server.URL+"/status/404"
	log, err := runProbes(t.Context(), probeClient(), strings.Join([]string{good, gone.URL + "/x", bad, untrusted.URL}, ","))
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], gone.URL+"/x: dial tcp ") || lines[1] != bad+": status 404" ||
		!strings.Contains(lines[2], "certificate") {
		t.Errorf("got %q", lines)
	}
	if n := strings.Count(log, "\n"); n != 4 {
		t.Errorf("got %d log lines, want 4: %s", n, log)
	}
}

// The user info is for the server that it names, and the query likewise.
func TestProbeCredentials(t *testing.T) {
	told := make(chan string, 2)
	tell := func(req *http.Request) {
		name, password, _ := req.BasicAuth()
		told <- fmt.Sprintf("%s %s %s %s", name, password, req.URL.RawQuery, req.Header.Get("Referer"))
	}
	second := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { tell(req) }))
	defer second.Close()
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		tell(req)
		http.Redirect(w, req, second.URL, http.StatusFound)
	}))
	defer first.Close()
	_, err := runProbes(t.Context(), probeClient(), strings.Replace(first.URL, "//", "//ada:hunter2@", 1)+"/?token=sesame")
	must(t, err)
	for i, want := range []string{"ada hunter2 token=sesame ", "   "} {
		if got := <-told; got != want {
			t.Errorf("server %d: got %q, want %q", i+1, got, want)
		}
	}
}

func TestProbeURLs(t *testing.T) {
	const scheme, host = "PROBE_URLS, entry %d: want a URL that begins with http:// or https://", "PROBE_URLS, entry %d: the URL has no host"
	for list, want := range map[string]string{ // the URLs, quoted, or the error
		"http://a,https://b:8443/c?d=e": `"http://a" "https://b:8443/c?d=e"`,
		" http://a ,\n\thttps://b,, ":   `"http://a" "https://b"`,
		"HTTP://a http://[::1]:80/":     `"http://a" "http://[::1]:80/"`,
		" ,\n":                          "PROBE_URLS holds no URL: want at least one",
		"ftp://ada:hunter2@a":           fmt.Sprintf(scheme, 1),
		"http://a,http://a b@c":         fmt.Sprintf(scheme, 3),
		"http://ada:hunter/2@b":         "PROBE_URLS, entry 1: not a valid URL",
		"http:///token":                 fmt.Sprintf(host, 1),
		"http://ada:hunter2@:80/":       fmt.Sprintf(host, 1),
		"x://token http://a https://":   fmt.Sprintf(scheme+"\n"+host, 1, 3),
	} {
		urls, err := probeURLs(list)
		got := strings.Trim(fmt.Sprintf("%q", urls), "[]")
		if err != nil {
			got = err.Error()
			wantNoSecret(t, got, "token")
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", list, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for setting, test := range map[string]struct {
		parse   func(string) (time.Duration, error)
		means   map[string]time.Duration
		refused []string
	}{
		"PROBE_TIMEOUT": {probeTimeout, map[string]time.Duration{"": 10 * time.Second, "250ms": 250 * time.Millisecond, "30s": 30 * time.Second},
			[]string{"30001ms", "0", "0s", "-1s", "10", "soon"}},
		"PRUNE_KEEP": {pruneKeep, map[string]time.Duration{
			"": 30 * pruneDay, "30d": 30 * pruneDay, "1d12h": 36 * time.Hour, "36h30m": 36*time.Hour + 30*time.Minute, "65535d": 65535 * pruneDay},
			[]string{"65536d", "0", "0s", "0d", "-1h", "-1d", "+1d", "30", "d", "1.5d", " 30d", "30D", "a month"}},
	} {
		for text, want := range test.means {
			if got, err := test.parse(text); got != want || err != nil {
				t.Errorf("%s=%q: got %v, %v, want %v", setting, text, got, err, want)
			}
		}
		for _, text := range test.refused {
			if _, err := test.parse(text); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("%s is %q: want ", setting, text)) {
				t.Errorf("%s=%q: got %v", setting, text, err)
			}
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
		_, err := runProbes(t.Context(), client, strings.Repeat("http://a ", 20))
		must(t, err)
		if took := time.Since(began); took != 3*time.Second || most.Load() != 8 {
			t.Errorf("20 requests of 1 s took %v, %d at once, want 3 s and 8", took, most.Load())
		}
	})
}

// A server that accepts and says nothing, or a status and then nothing, and a run that is stopped.
func TestProbeTimeLimit(t *testing.T) {
	stuck := func(req *http.Request) (*http.Response, error) {
		body, end := io.Pipe()
		context.AfterFunc(req.Context(), func() { end.CloseWithError(req.Context().Err()) })
		return answer(body), nil
	}
	cause := errors.New("the lease was lost")
	for _, test := range []struct {
		server roundTrip
		status int
		stop   time.Duration
		says   string
		takes  time.Duration
	}{
		{silent, 0, time.Hour, "http://a/b: no complete answer within 10s", 10 * time.Second},
		{stuck, 200, time.Hour, "http://a/b: no complete answer within 10s", 10 * time.Second},
		{silent, 0, 4 * time.Second, "http://a/b: the lease was lost", 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(test.stop, func() { cancel(cause) })
			began := time.Now()
			log, err := runProbes(ctx, fakeClient(test.server), "http://a/b")
			if took := time.Since(began); took != test.takes || err == nil || err.Error() != test.says {
				t.Errorf("got %v after %v, want %s after %v", err, took, test.says, test.takes)
			}
			if want := fmt.Sprintf("status=%d latency_ms=%d", test.status, test.takes.Milliseconds()); !strings.Contains(log, want) {
				t.Errorf("got log %q, want it to hold %q", log, want)
			}
		})
	}
}

// A body without end is left after 64 KiB.
func TestProbeBodyLimit(t *testing.T) {
	var body endless
	client := fakeClient(func(*http.Request) (*http.Response, error) { return answer(&body), nil })
	_, err := runProbes(t.Context(), client, "http://a")
	must(t, err)
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

// must ends a test that cannot go on.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
