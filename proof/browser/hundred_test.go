package browser

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
)

// A counter forwards the requests of one program to Azurite, and counts those that read.
type counter struct {
	*httptest.Server
	reads atomic.Int64
}

func newCounter(t *testing.T, server *azurite.Server) *counter {
	t.Helper()
	proxy, err := azurite.Forward(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			c.reads.Add(1)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// setting is SOLOIST_STORAGE of a program that is counted.
func (c *counter) setting() string {
	return "SOLOIST_STORAGE=" + (&azurite.Server{URL: c.URL + "/" + azurite.Account}).ConnectionString()
}

// A page is a client that has loaded the page and follows its stream, as a browser does.
type page struct {
	news  atomic.Int64 // messages with something new
	close func() error
}

// openPage returns when the first news is there. The stream is that of the list, or of a job.
func openPage(t *testing.T, url, query string) *page {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}} // with connections of its own
	document, err := client.Get(url)
	if err == nil {
		_, err = io.Copy(io.Discard, document.Body)
		document.Body.Close()
	}
	if err != nil || document.StatusCode != http.StatusOK {
		t.Fatalf("%s: %+v, %v", url, document, err)
	}
	stream, err := client.Get(url + "api/v1/stream" + query)
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatalf("the stream: %+v, %v", stream, err)
	}
	p := &page{close: stream.Body.Close}
	go p.follow(stream.Body)
	return p
}

func (p *page) follow(body io.Reader) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: news") {
			p.news.Add(1)
		}
	}
}

// A hundred open pages cost the storage no more reads than one. Three programs are counted
// at the same time: the first has no page open, the second has one, the third has a hundred.
func TestHundredPagesReadLikeOne(t *testing.T) {
	t.Parallel()
	storage := proctest.Azurite(t)
	var all sync.WaitGroup
	reads := map[int]int64{}
	var mu sync.Mutex
	for _, n := range []int{0, 1, 100} {
		c := newCounter(t, storage.Server)
		f := fleetWith(t, asUsual, append(storage.Env(), c.setting(), fmt.Sprintf("SOLOIST_APP=pages-%d", n)))
		url := f.start("a")
		f.told("end") // it has all it needs from the start
		var pages []*page
		for i := range n {
			pages = append(pages, openPage(t, url, []string{"", "?job=pulse"}[i%2]))
		}
		all.Go(func() {
			before := c.reads.Load()
			proctest.Pause(t.Context(), time.Minute)
			count := c.reads.Load() - before
			mu.Lock()
			defer mu.Unlock()
			reads[n] = count
			wantNews(t, pages)
		})
	}
	all.Wait()
	t.Logf("reads in a minute by open pages: %v", reads)
	one, hundred := reads[1]-reads[0], reads[100]-reads[0]
	if one < 60 || hundred > one*3/2 {
		t.Errorf("one page costs %d reads a minute, a hundred cost %d", one, hundred)
	}
}

// wantNews wants that each page has followed what has happened: pulse has run 15 times.
func wantNews(t *testing.T, pages []*page) {
	for _, p := range pages {
		if n := p.news.Load(); n < 10 {
			t.Errorf("a page got %d messages in a minute", n)
		}
		p.close()
	}
}
