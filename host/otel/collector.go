package otel

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/ontime"
)

// A collector takes metrics or traces by OTLP over HTTP
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp). The exporters of OpenTelemetry
// itself for that link gRPC anyway, which makes a program a tenth larger, and their errors
// have the URL in them, in which a key may be.
type collector struct {
	settings
	signal string
	log    *slog.Logger
	client http.Client

	ctx  context.Context // ends with close
	stop context.CancelFunc

	mu   sync.Mutex
	down bool // the last sending has failed
}

func newCollector(s settings, signal string, log *slog.Logger) *collector {
	c := &collector{settings: s, signal: signal, log: log}
	c.client.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.tls, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second}
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the headers have keys
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// close ends what is being sent, and has nothing sent any more.
func (c *collector) close() {
	c.stop()
	c.client.CloseIdleConnections()
}

// send sends a message, again if the collector asks for that, for as long as its time-out
// allows. It drops what could not be sent, and logs so once: an error that went
// back to the SDK would be logged for each batch.
func (c *collector) send(ctx context.Context, message []byte) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	err := c.try(ctx, message)
	for pause := time.Second; errors.Is(err, errAgain) && ontime.Sleep(ctx, pause); pause *= 2 {
		err = c.try(ctx, message)
	}
	c.tell(err)
}

// errAgain is the error of a message that may be sent again.
var errAgain = errors.New("the collector did not take it")

// try sends a message once.
func (c *collector) try(ctx context.Context, message []byte) error {
	r, err := c.request(ctx, message)
	if err != nil {
		return err
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return fmt.Errorf("%w: %w", errAgain, plainly(err))
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("%w: it answers %s", errAgain, answer.Status)
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", answer.Status)
	}
	return nil
}

// request is the message as a request.
func (c *collector) request(ctx context.Context, message []byte) (*http.Request, error) {
	body := message
	if c.gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(message) // a Buffer takes everything
		w.Close()
		body = b.Bytes()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, plainly(err)
	}
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	return r, nil
}

// plainly leaves out the URL, which may have a key in it.
func plainly(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// tell logs the first failure, and the end of failures.
func (c *collector) tell(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && !c.down && c.ctx.Err() == nil:
		c.log.Warn("the collector cannot be reached: what is measured meanwhile does not get there", "signal", c.signal, "error", err)
	case err == nil && c.down:
		c.log.Info("the collector is reached again", "signal", c.signal)
	}
	c.down = err != nil
}
