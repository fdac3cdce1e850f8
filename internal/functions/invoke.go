package functions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// A Result is what an invocation has returned.
type Result struct {
	ID          string `json:"-"` // of the invocation
	Outputs     map[string]json.RawMessage
	Logs        []string
	ReturnValue json.RawMessage
}

// Why an invocation failed.
var (
	ErrTimeout   = errors.New("timeout value was exceeded by function") // and the handler was restarted
	ErrMediaType = errors.New("unsupported media type")
	ErrInvalid   = errors.New("invalid HttpResponseMessage")
	ErrStatus    = errors.New("response status code does not indicate success")
)

// Invoke calls a function and returns when the host has done with it. The
// handler is not notified of a time-out: it is killed.
func (h *Host) Invoke(ctx context.Context, function string, payload []byte) (Result, error) {
	res := Result{ID: guid()}
	// It waits while the handler is started again. A handler that has ended refuses the connection.
	w, err := h.await(ctx, func(w *worker) bool { return w.isReady() || w.isOver() })
	if err != nil {
		return res, err
	}
	done := make(chan error, 1)
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { done <- h.post(call, w, function, payload, &res) }()
	var late <-chan time.Time
	if h.Timeout > 0 {
		t := time.NewTimer(h.Timeout)
		defer t.Stop()
		late = t.C
	}
	select {
	case err = <-done:
	case <-late:
		h.restart(w)
		cancel()
		<-done
		return Result{ID: res.ID}, fmt.Errorf("%w %s: %s", ErrTimeout, function, h.Timeout)
	}
	if err != nil {
		return Result{ID: res.ID}, err
	}
	for _, text := range res.Logs {
		h.tell(Info, Line{function, text})
	}
	return res, nil
}

// A stream hides its length, so that it is sent in chunks.
type stream struct{ io.Reader }

func (h *Host) post(ctx context.Context, w *worker, function string, payload []byte, res *Result) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+function, stream{bytes.NewReader(payload)})
	if err != nil {
		return err
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(payload)), nil }
	req.Header.Set("X-Azure-Functions-InvocationId", res.ID)
	req.Header.Set("X-Azure-Functions-HostVersion", Version)
	req.Header.Set("User-Agent", "Azure-Functions-Host/"+Version)
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	client := &http.Client{} // which follows redirects, as the host's does; it keeps no cookies
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("%w: %d", ErrStatus, resp.StatusCode) // the body is not looked at
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	answered, err := read(resp, body, res)
	if err == nil && !answered {
		<-ctx.Done() // the host waits for a result that never comes
		return ctx.Err()
	}
	return err
}

// read takes the answer apart as the host does. It returns false where the host
// would have no result, and wait on.
func read(resp *http.Response, body []byte, res *Result) (answered bool, err error) {
	if resp.ContentLength == 0 {
		return false, nil
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "application/json" && media != "text/json" {
		return false, fmt.Errorf("%w: %q", ErrMediaType, resp.Header.Get("Content-Type"))
	}
	text := strings.TrimSpace(string(body))
	if text == "" || text == "null" {
		return false, nil
	}
	if err := json.Unmarshal(body, res); err != nil {
		return false, fmt.Errorf("%w: status code %d, %.200q: %w", ErrInvalid, resp.StatusCode, text, err)
	}
	return true, nil
}
