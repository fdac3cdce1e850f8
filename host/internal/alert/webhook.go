package alert

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// sendTime is how long a receiver may take for one message.
const sendTime = 10 * time.Second

// A Webhook is where messages go.
type Webhook struct {
	URL    string // with http or https; parts of it may be secret
	Secret string // signs the messages; empty: they are not signed
	Client *http.Client
}

// errNoURL does not show the URL, which may be secret. The settings were checked before.
var errNoURL = errors.New("the URL (not shown) is malformed")

// NewClient returns a client that follows no redirect: one could lead elsewhere.
func NewClient() *http.Client {
	return &http.Client{Timeout: sendTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// A Message is the body that the receiver gets; docs/alerts.md explains the fields.
type Message struct {
	Version  int       `json:"version"`
	ID       string    `json:"id"`
	Incident string    `json:"incident"`
	Event    string    `json:"event"`
	Kind     Kind      `json:"kind"`
	App      string    `json:"app"`
	Job      string    `json:"job,omitzero"`
	Since    time.Time `json:"since"`
	Over     time.Time `json:"over,omitzero"`
	Tick     time.Time `json:"tick,omitzero"`
	Token    int64     `json:"token,omitzero"`
	Failures int64     `json:"failures,omitzero"`
	Replica  string    `json:"replica,omitzero"`
	Error    string    `json:"error,omitzero"`
	Text     string    `json:"text"`
}

// messageOf returns the next message about an incident.
func messageOf(app string, i *incident) Message {
	m := Message{Version: 1, ID: i.message(), Incident: i.ID, Event: i.event(), Kind: i.Kind, App: app, Job: i.Job, Since: i.Since,
		Tick: i.Tick, Token: i.Token, Failures: i.Failures, Replica: i.Replica, Error: i.Error}
	m.Text = app + ": "
	if i.Job != "" {
		m.Text += i.Job + " "
	}
	m.Text += i.Text
	if m.Event == recovered {
		m.Over = i.Over
		m.Text = "Recovered after " + i.Over.Sub(i.Since).Round(time.Second).String() + ": " + m.Text
	} else if i.Error != "" {
		m.Text += ": " + i.Error
	}
	m.Text = plain.Replace(m.Text)
	return m
}

// plain takes the meaning from what chats take for markup: text of a job must not call
// everybody of a channel (https://api.slack.com/reference/surfaces/formatting#escaping).
var plain = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// send sends one message, once. Nil: the receiver has confirmed it.
func (w *Webhook) send(ctx context.Context, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return errNoURL
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", m.ID)
	if w.Secret != "" {
		r.Header.Set("Soloist-Signature", Signature(w.Secret, time.Now().Unix(), body))
	}
	return do(w.Client, r)
}

// Signature is the value of the header that proves who sent a body and when.
func Signature(secret string, at int64, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.", at)
	mac.Write(body)
	return "t=" + strconv.FormatInt(at, 10) + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// do sends a request. Its error does not have the URL, which may have a secret in it.
func do(client *http.Client, r *http.Request) error {
	r.Header.Set("User-Agent", "soloist")
	answer, err := client.Do(r)
	if bad, ok := errors.AsType[*url.Error](err); ok {
		return bad.Err
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	switch {
	case answer.StatusCode/100 == 2:
		return nil
	case answer.StatusCode/100 == 3:
		return fmt.Errorf("the answer is %d, a redirect, which is not followed: set the URL that it leads to", answer.StatusCode)
	}
	err = fmt.Errorf("the answer is %d %s", answer.StatusCode, cmp.Or(http.StatusText(answer.StatusCode), "of its own"))
	if answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusMethodNotAllowed {
		err = errNoSuch{err}
	}
	return err
}

// errNoSuchCall: the receiver has no such path or method.
var errNoSuchCall = errors.New("no such call")

type errNoSuch struct{ error }

func (e errNoSuch) Is(target error) bool { return target == errNoSuchCall }
