package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
)

const (
	ingestLimit = 10 * time.Second // of a request, from its start to the end of the body; of a save
	ingestBody  = 8 << 20          // bytes of a page
	ingestWait  = 10 * time.Minute // the longest Retry-After that is honoured
)

// ingest carries numbered pages from a source to a sink, in their order. None
// is lost and none is applied twice, whichever replica dies, and whenever.
//
//	INGEST_SOURCE  http or https URL; unset: the run is skipped. Page N, from 1
//	               on, is GET INGEST_SOURCE/pages/N; 404 or 204: not there yet. A
//	               page has a Content-Length or comes in chunks: otherwise
//	               half a page would look like a whole one
//	INGEST_SINK    http or https URL. Page N goes to PUT INGEST_SINK/pages/N
//
// A URL may carry secrets in its user info and query, which go along with each
// request; neither is ever logged. Its path is.
//
// The position, the number of the next page, is the job's checkpoint: give the
// job another Name before you give it another source. It is saved after the
// page is in the sink, or a runner that dies between the two would lose the
// page. So the sink may get a page again, and even from a runner that is long
// dead, when a request was slow on its way. It is the sink that then applies
// nothing twice, by doing three things in one transaction for each PUT:
//
//	UPDATE fence SET token = $token WHERE token <= $token  -- no row: 412
//	INSERT INTO pages (number) VALUES ($n) ON CONFLICT DO NOTHING
//	...apply the page if that made a row                   -- 200 either way
//
// $token is the header Soloist-Token, which grows with each run.
func ingest() soloist.Job {
	client := ingestClient()
	return soloist.Job{
		Name:     "ingest",
		Schedule: "* * * * *",
		// A backlog may take hours. What is bounded is how long it takes to get
		// on: a page needs three calls, each with its limit.
		HeartbeatTimeout: 6 * ingestLimit,
		Retry:            soloist.Retry{MaxTries: 3, Backoff: 5 * time.Second},
		// A second start does no harm, since it goes on where the first has
		// died, and it need not wait for the next tick.
		Interrupted: soloist.Rerun,
		Do: func(ctx context.Context, run *soloist.Run) error {
			return runIngest(ctx, os.Getenv, client, run, run.Token, run.Log)
		},
	}
}

// ingestRun is what the work needs of its [soloist.Run].
type ingestRun interface {
	Load(ctx context.Context, v any) error
	Save(ctx context.Context, v any) error
	Heartbeat(note string) error
}

type ingestPosition struct {
	Next int64 `json:"next"` // the number of the first page that is not known to be in the sink
}

func runIngest(ctx context.Context, env func(string) string, client *http.Client, run ingestRun, token int64, log *slog.Logger) error {
	if env("INGEST_SOURCE") == "" {
		return soloist.Skip("INGEST_SOURCE is not set")
	}
	source, sourceErr := ingestURL("INGEST_SOURCE", env)
	sink, sinkErr := ingestURL("INGEST_SINK", env)
	if err := errors.Join(sourceErr, sinkErr); err != nil {
		return soloist.Permanent(err)
	}
	at := ingestPosition{Next: 1}
	if err := run.Load(ctx, &at); err != nil {
		return fmt.Errorf("load the position: %w", err)
	}
	first := at.Next
	in := ingester{client: client, source: source, sink: sink, run: run, token: token}
	err := in.pages(ctx, &at)
	log.Info("ingested", "pages", at.Next-first, "next", at.Next)
	return err
}

// ingestURL reads a setting. Its errors leave out the value and what url.Parse
// says of it: either could show a secret.
func ingestURL(name string, env func(string) string) (*url.URL, error) {
	u, err := url.Parse(env(name))
	switch {
	case env(name) == "":
		return nil, fmt.Errorf("%s is not set: want a URL that begins with http:// or https://", name)
	case err != nil:
		return nil, fmt.Errorf("%s: not a valid URL", name)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%s: want a URL that begins with http:// or https://", name)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s: the URL has no host", name)
	}
	return u, nil
}

// ingestClient follows no redirect: it would make a GET of a PUT, and the 200
// that answers that would look like a page applied.
func ingestClient() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// An ingester is one try of one run.
type ingester struct {
	client       *http.Client
	source, sink *url.URL
	run          ingestRun
	token        int64
}

// pages carries pages until the source has no more for now, or ctx ends.
func (in *ingester) pages(ctx context.Context, at *ingestPosition) error {
	for ctx.Err() == nil {
		page, err := in.get(ctx, at.Next)
		if err != nil || page == nil {
			return err
		}
		// Right before the effect, since it fails once the lease cannot be
		// trusted: after a suspension ctx may not have ended yet.
		if err := in.run.Heartbeat(fmt.Sprintf("page %d", at.Next)); err != nil {
			return err
		}
		if err := in.put(ctx, at.Next, page); err != nil {
			return err
		}
		at.Next++
		if err := in.save(ctx, at); err != nil {
			return fmt.Errorf("save the position: %w", err)
		}
	}
	return context.Cause(ctx)
}

// save keeps the position after each page. Where a write costs money or time,
// every tenth would do: what is put again, the sink knows. It does so after the
// end of ctx too, for the page just put, and for a bounded time always.
func (in *ingester) save(ctx context.Context, at *ingestPosition) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), ingestLimit, fmt.Errorf("not done within %s", ingestLimit))
	defer cancel()
	return in.run.Save(ctx, at)
}

// get returns page n, nil if the source does not have it yet.
func (in *ingester) get(ctx context.Context, n int64) (*ingestPage, error) {
	a, err := in.send(ctx, http.MethodGet, in.source, n, ingestPage{})
	switch {
	case err != nil:
		return nil, err
	case a.status == http.StatusNotFound, a.status == http.StatusNoContent:
		return nil, nil
	case a.status != http.StatusOK:
		return nil, a.refusal()
	case a.open:
		return nil, soloist.Permanent(fmt.Errorf("%s: the answer has neither a Content-Length nor chunks, so half a page looks like a whole one: let the source send one of them", a.name))
	case len(a.body) > ingestBody:
		return nil, soloist.Permanent(fmt.Errorf("%s: more than %d bytes", a.name, ingestBody))
	}
	return &a.ingestPage, nil
}

// put hands page n to the sink.
func (in *ingester) put(ctx context.Context, n int64, page *ingestPage) error {
	a, err := in.send(ctx, http.MethodPut, in.sink, n, *page)
	switch {
	case err != nil:
		return err
	case a.status == http.StatusOK, a.status == http.StatusCreated, a.status == http.StatusNoContent:
		return nil // applied, now or before
	case a.status == http.StatusConflict, a.status == http.StatusPreconditionFailed:
		return soloist.Permanent(fmt.Errorf("%s: status %d: the sink has seen a larger token than %d, so a later run has taken over", a.name, a.status, in.token))
	}
	return a.refusal()
}

type ingestPage struct {
	kind   string // its Content-Type
	coding string // its Content-Encoding, which the body still has
	body   []byte
}

type ingestAnswer struct {
	name   string // of the request, without secrets
	status int
	header http.Header
	open   bool // only the end of the connection ended the body
	ingestPage
}

// send sends one request and reads its whole answer. The token goes to the
// source too, so that its log distinguishes the runs.
func (in *ingester) send(ctx context.Context, method string, base *url.URL, n int64, page ingestPage) (*ingestAnswer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, ingestLimit, fmt.Errorf("no complete answer within %s", ingestLimit))
	defer cancel()
	u := base.JoinPath("pages", strconv.FormatInt(n, 10))
	name := method + " " + (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(page.body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, ingestError(ctx, err))
	}
	req.Header.Set("Soloist-Token", strconv.FormatInt(in.token, 10))
	if page.kind != "" {
		req.Header.Set("Content-Type", page.kind)
	}
	if page.coding != "" {
		req.Header.Set("Content-Encoding", page.coding)
	}
	resp, err := in.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, ingestError(ctx, err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, ingestBody+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, ingestError(ctx, err))
	}
	got := ingestPage{resp.Header.Get("Content-Type"), strings.Join(resp.Header.Values("Content-Encoding"), ", "), body}
	return &ingestAnswer{name, resp.StatusCode, resp.Header, openEnded(resp), got}, nil
}

// openEnded reports whether nothing but the end of the connection ends the body.
// HTTP/2 frames and compressed pages mark their own end.
func openEnded(resp *http.Response) bool {
	return resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && !resp.Uncompressed
}

// refusal is the error of a status that means neither success nor the end.
// What a server cannot do now is worth another try, what it will not do is not.
func (a *ingestAnswer) refusal() error {
	err := fmt.Errorf("%s: status %d", a.name, a.status)
	if a.status >= 500 || a.status == http.StatusTooManyRequests || a.status == http.StatusRequestTimeout {
		return soloist.RetryAfter(err, ingestRetryAfter(a.header))
	}
	return soloist.Permanent(err)
}

// ingestRetryAfter is how long the server asks clients to wait: a number of
// seconds, or a date, which counts from the server's own. The job keeps its
// lease meanwhile, so what is long beyond reason is cut.
func ingestRetryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	seconds, err := strconv.ParseUint(text, 10, 31) // of what is too large it returns the largest
	wait := time.Duration(seconds) * time.Second
	if until, dateErr := http.ParseTime(text); err != nil && dateErr == nil {
		if now, err := http.ParseTime(h.Get("Date")); err == nil {
			wait = until.Sub(now)
		}
	}
	return min(max(wait, 0), ingestWait)
}

// ingestError makes an error fit to be logged. A *url.Error quotes the URL, and
// what it wraps may quote what a server or a setting says; so only kinds known
// to hold no more than a host or an address are logged.
func ingestError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if wrapper, ok := errors.AsType[*url.Error](err); ok {
		err = wrapper.Err
	}
	_, network := errors.AsType[net.Error](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	if network || certificate || err == io.EOF || err == io.ErrUnexpectedEOF || err == http.ErrSchemeMismatch {
		return err
	}
	return errors.New("no valid answer")
}
