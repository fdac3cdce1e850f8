package fencing_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist/examples/fencing"
)

func ExampleFence() {
	server := httptest.NewServer(fencing.Fence(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("token %s: %s\n", r.Header.Get(fencing.Header), body)
	})))
	defer server.Close()
	post := func(token int64, text string) {
		req, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(text))
		if err != nil {
			fmt.Println(err)
			return
		}
		resp, err := fencing.Send(server.Client(), req, token) // in a job: run.Token
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	post(7, "the first run")
	post(8, "the next one")
	post(7, "the first run, back from a long pause")
	post(8, "the next one goes on")
	// Output:
	// token 7: the first run
	// token 8: the next one
	// stale token: a newer run has written
	// token 8: the next one goes on
}

// httpResource is a service that notes each effect.
type httpResource struct {
	server *httptest.Server
	mu     sync.Mutex
	tokens []int64
}

// openHTTP starts it behind middleware.
func openHTTP(t *testing.T, middleware func(http.Handler) http.Handler) *httpResource {
	r := new(httpResource)
	r.server = httptest.NewServer(middleware(r))
	r.server.Client().Timeout = time.Minute
	t.Cleanup(r.server.Close)
	return r
}

func (r *httpResource) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	token, err := strconv.ParseInt(req.Header.Get(fencing.Header), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for range 20 { // room for another request between check and effect
		runtime.Gosched()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens = append(r.tokens, token)
}

func (r *httpResource) write(token int64) error {
	req, err := http.NewRequest(http.MethodPost, r.server.URL, strings.NewReader("effect"))
	if err != nil {
		return err
	}
	resp, err := fencing.Send(r.server.Client(), req, token)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

func (r *httpResource) resource() resource { return resource{r.write, r.effects} }

func (r *httpResource) effects(*testing.T) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tokens
}

func TestFenceRace(t *testing.T) { checkRace(t, 500, openHTTP(t, fencing.Fence).resource()) }

func TestFenceStatus(t *testing.T) {
	r := openHTTP(t, fencing.Fence)
	for _, test := range []struct {
		token, body string
		want        int
	}{
		{"", "", http.StatusBadRequest},
		{"x", "", http.StatusBadRequest},
		{"0", "", http.StatusBadRequest}, // the token of EveryReplica
		{"-1", "", http.StatusBadRequest},
		{"9223372036854775808", "", http.StatusBadRequest},
		{"1795000000000000", "", http.StatusOK},
		{"1795000000000000", "", http.StatusOK},
		{"1794999999999999", "", http.StatusPreconditionFailed},
		{"1795000000000001", strings.Repeat("x", 1<<20+1), http.StatusRequestEntityTooLarge},
		{"1795000000000000", strings.Repeat("x", 1<<20), http.StatusOK},
		{"1795000000000001", "", http.StatusOK},
		{"1795000000000000", "", http.StatusPreconditionFailed},
	} {
		req, err := http.NewRequest(http.MethodPost, r.server.URL, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		if test.token != "" {
			req.Header.Set(fencing.Header, test.token)
		}
		resp, err := r.server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != test.want {
			t.Errorf("token %q, %d bytes: got %d, want %d", test.token, len(test.body), resp.StatusCode, test.want)
		}
	}
}

// The 412 of the handler itself says nothing about tokens.
func TestSendLeavesOtherRefusals(t *testing.T) {
	server := httptest.NewServer(fencing.Fence(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusPreconditionFailed)
	})))
	defer server.Close()
	req, err := http.NewRequest(http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := fencing.Send(server.Client(), req, 1)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// A runner that is cut off in the middle of a request keeps nobody out.
func TestFenceHalfRequest(t *testing.T) {
	reading := make(chan struct{})
	r := openHTTP(t, func(next http.Handler) http.Handler {
		fence := fencing.Fence(next)
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			req.Body = &notify{ReadCloser: req.Body, reading: reading}
			fence.ServeHTTP(w, req)
		})
	})
	u, err := url.Parse(r.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 9\r\n%s: 1\r\n\r\nhalf", u.Host, fencing.Header)
	<-reading
	if err := r.write(2); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, " more")
	answer := make([]byte, len("HTTP/1.1 412"))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	if got := string(answer); got != "HTTP/1.1 412" {
		t.Errorf("got %q for the request that took long", got)
	}
}

// notify tells, once, that the body is being read.
type notify struct {
	io.ReadCloser
	reading chan struct{}
}

func (n *notify) Read(p []byte) (int, error) {
	select {
	case <-n.reading:
	default:
		close(n.reading)
	}
	return n.ReadCloser.Read(p)
}
