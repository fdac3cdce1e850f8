package main

import (
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
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/soloist-go/soloist"
)

const (
	probeAtOnce    = 8
	probeRedirects = 3
	probeBody      = 64 << 10 // bytes
	probeLimit     = 30 * time.Second
)

// probe requests each of a list of URLs once a minute and fails if one of them
// does not answer, or answers with a status of 400 or above.
//
//	PROBE_URLS     http and https URLs, separated by commas or white space;
//	               unset: the run is skipped. Write a comma in a URL as %2C
//	PROBE_TIMEOUT  the time for one request: 10s (default), at most 30s
//
// A URL may carry secrets in its user info and query; neither is ever logged.
// Its path is, so write a / or @ in a password as %2F or %40: unescaped, it
// ends the user info early.
func probe() soloist.Job {
	client := probeClient()
	return soloist.Job{
		Name:     "probe",
		Schedule: "* * * * *",
		Timeout:  probeLimit,
		Do: func(ctx context.Context, run *soloist.Run) error {
			return runProbe(ctx, os.Getenv, client, run.Log)
		},
	}
}

func runProbe(ctx context.Context, env func(string) string, client *http.Client, log *slog.Logger) error {
	list := env("PROBE_URLS")
	if list == "" {
		return soloist.Skip("PROBE_URLS is not set")
	}
	urls, listErr := probeURLs(list)
	timeout, timeoutErr := probeTimeout(env("PROBE_TIMEOUT"))
	if err := errors.Join(listErr, timeoutErr); err != nil {
		return err
	}

	p := prober{client: client, timeout: timeout, log: log}
	errs := make([]error, len(urls))
	slots := make(chan struct{}, probeAtOnce)
	var requests sync.WaitGroup
	for i, u := range urls {
		slots <- struct{}{} // not for long: each request ends with its time limit
		requests.Go(func() {
			defer func() { <-slots }()
			errs[i] = p.check(ctx, u)
		})
	}
	requests.Wait()
	return errors.Join(errs...)
}

// probeURLs reads the list. Its errors name an entry by its position alone,
// and leave out what url.Parse says: either could show a secret.
func probeURLs(list string) ([]*url.URL, error) {
	var urls []*url.URL
	var errs []error
	entries := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for i, entry := range entries {
		u, err := url.Parse(entry)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("PROBE_URLS, entry %d: not a valid URL", i+1))
		case u.Scheme != "http" && u.Scheme != "https":
			errs = append(errs, fmt.Errorf("PROBE_URLS, entry %d: want a URL that begins with http:// or https://", i+1))
		case u.Hostname() == "":
			errs = append(errs, fmt.Errorf("PROBE_URLS, entry %d: the URL has no host", i+1))
		}
		urls = append(urls, u)
	}
	if len(entries) == 0 {
		errs = append(errs, errors.New("PROBE_URLS holds no URL: want at least one"))
	}
	return urls, errors.Join(errs...)
}

func probeTimeout(text string) (time.Duration, error) {
	if text == "" {
		return 10 * time.Second, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout <= 0 || timeout > probeLimit {
		return 0, fmt.Errorf("PROBE_TIMEOUT is %q: want a duration above 0 and at most %s, such as 10s", text, probeLimit)
	}
	return timeout, nil
}

var errProbeRedirects = fmt.Errorf("more than %d redirects", probeRedirects)

func probeClient() *http.Client {
	return &http.Client{
		// Each probe opens a new connection, as a new visitor does: an open connection
		// would hide a broken name, certificate or listener.
		Transport: &http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			DisableKeepAlives: true,
			ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > probeRedirects {
				return errProbeRedirects
			}
			req.Header.Del("Referer") // net/http puts the last URL there, with its query
			return nil
		},
	}
}

type prober struct {
	client  *http.Client
	timeout time.Duration // for one request, from its start to the end of the body
	log     *slog.Logger
}

// check requests u and logs how it went. Its error names u without secrets.
func (p prober) check(ctx context.Context, u *url.URL) error {
	name := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
	began := time.Now()
	status, err := p.get(ctx, u)
	latency := time.Since(began).Milliseconds()
	if err == nil && status >= 400 {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		p.log.Warn("probe failed", "url", name, "status", status, "latency_ms", latency, "error", err)
		return fmt.Errorf("%s: %w", name, err)
	}
	p.log.Info("probed", "url", name, "status", status, "latency_ms", latency)
	return nil
}

// get returns the status of the answer, 0 if there was none.
func (p prober) get(ctx context.Context, u *url.URL) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("no complete answer within %s", p.timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, probeError(ctx, err)
	}
	answer, err := p.client.Do(req)
	if err != nil {
		return 0, probeError(ctx, err)
	}
	defer answer.Body.Close()
	// The start of the body is read too: some servers send a status and then hang.
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, probeBody)); err != nil {
		return answer.StatusCode, probeError(ctx, err)
	}
	return answer.StatusCode, nil
}

// probeError makes an error fit to be logged. A *url.Error quotes the URL, and
// what it wraps may quote what the server sent, such as a Location with a
// token; so only kinds known to hold no more than a host or an address are logged.
func probeError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if wrapper, ok := errors.AsType[*url.Error](err); ok {
		err = wrapper.Err
	}
	_, network := errors.AsType[net.Error](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case network, certificate, err == errProbeRedirects, err == http.ErrSchemeMismatch,
		err == io.EOF, err == io.ErrUnexpectedEOF:
		return err
	}
	return errors.New("no valid answer")
}
