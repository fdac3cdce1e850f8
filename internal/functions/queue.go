package functions

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Queue is a queue of an account, as far as the trigger uses it.
type Queue struct {
	Account   string // URL of the account's queues
	Signature string // shared access signature of the account, as a query
	Name      string
}

// A Message is a received message.
type Message struct {
	ID       string `xml:"MessageId"`
	Pop      string `xml:"PopReceipt"`
	Text     string `xml:"MessageText"` // as it is in the queue: base64
	Dequeued int    `xml:"DequeueCount"`
}

// A Trigger is what host.json says of queues.
type Trigger struct {
	Visibility time.Duration // a message is hidden for so long after a call that failed
	Most       int           // after so many calls that failed it goes to the poison queue
}

// queueOptions are the same in host.json
// (https://learn.microsoft.com/azure/azure-functions/functions-bindings-storage-queue#host-json).
type queueOptions struct {
	VisibilityTimeout string
	MaxDequeueCount   *int
}

func (o queueOptions) trigger() (t Trigger, err error) {
	t.Most = 5
	if o.MaxDequeueCount != nil {
		t.Most = *o.MaxDequeueCount
	}
	if o.VisibilityTimeout != "" {
		t.Visibility, err = timeout(o.VisibilityTimeout)
	}
	return t, err
}

// lock is how long a message is hidden while its call lasts; the host would extend it
// (https://learn.microsoft.com/azure/azure-functions/functions-bindings-storage-queue-trigger#peek-lock).
const lock = 10 * time.Minute

// Poison is where the host puts messages whose calls have failed too often.
func (q Queue) Poison() Queue {
	q.Name += "-poison"
	return q
}

// Peek counts the visible messages, up to 32, as the platform does that starts instances.
func (q Queue) Peek(ctx context.Context) (int, error) {
	all, err := q.messages(ctx, url.Values{"peekonly": {"true"}, "numofmessages": {"32"}})
	return len(all), err
}

// Receive returns the first visible message and hides it; nil: there is none.
func (q Queue) Receive(ctx context.Context, hide time.Duration) (*Message, error) {
	all, err := q.messages(ctx, url.Values{"numofmessages": {"1"}, "visibilitytimeout": {fmt.Sprint(int(hide / time.Second))}})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// Put adds a message that is visible at once. It creates the queue.
func (q Queue) Put(ctx context.Context, text string) error {
	if _, err := q.call(ctx, http.MethodPut, "", nil, nil); err != nil {
		return err
	}
	_, err := q.call(ctx, http.MethodPost, "/messages", nil, bodyOf(text))
	return err
}

func (q Queue) messages(ctx context.Context, v url.Values) ([]Message, error) {
	text, err := q.call(ctx, http.MethodGet, "/messages", v, nil)
	if err != nil || text == nil {
		return nil, err
	}
	var list struct {
		Messages []Message `xml:"QueueMessage"`
	}
	err = xml.Unmarshal(text, &list)
	return list.Messages, err
}

// release makes a message visible again after a while.
func (q Queue) release(ctx context.Context, m *Message, after time.Duration) error {
	_, err := q.call(ctx, http.MethodPut, "/messages/"+m.ID, url.Values{"popreceipt": {m.Pop}, "visibilitytimeout": {fmt.Sprint(int(after / time.Second))}}, bodyOf(m.Text))
	return err
}

func (q Queue) remove(ctx context.Context, m *Message) error {
	_, err := q.call(ctx, http.MethodDelete, "/messages/"+m.ID, url.Values{"popreceipt": {m.Pop}}, nil)
	return err
}

func bodyOf(text string) []byte {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(text))
	return []byte("<QueueMessage><MessageText>" + b.String() + "</MessageText></QueueMessage>")
}

// call sends one request. nil: what it is about is not there.
func (q Queue) call(ctx context.Context, method, path string, v url.Values, body []byte) ([]byte, error) {
	u := q.Account + "/" + q.Name + path + "?" + q.Signature
	if v != nil {
		u += "&" + v.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, u, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("x-ms-version", "2020-12-06")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return nil, nil
	case resp.StatusCode > 299:
		return nil, fmt.Errorf("%s %s%s: %s: %s", method, q.Name, path, resp.Status, text)
	}
	return text, err
}

// Drain calls the function with one message after the other until none is visible, and returns how many calls there were.
// A message whose call succeeds is deleted. If the call fails, the message becomes visible again after a while, or goes to the
// poison queue when it was received too often
// (https://learn.microsoft.com/azure/azure-functions/functions-bindings-storage-queue-trigger#poison-messages).
func (a *App) Drain(ctx context.Context, function string, q Queue) (calls int, err error) {
	for {
		m, err := q.Receive(ctx, lock)
		if err != nil || m == nil {
			return calls, err
		}
		calls++
		if err := a.answer(ctx, function, q, m); err != nil {
			return calls, err
		}
	}
}

// answer makes the call for a message, and does with the message what follows from it.
func (a *App) answer(ctx context.Context, function string, q Queue, m *Message) error {
	text := m.Text
	if b, err := base64.StdEncoding.DecodeString(m.Text); err == nil { // else the host would not make the call at all
		text = string(b)
	}
	_, err := a.Host.Invoke(ctx, function, namedQueue(a.bindingOf(function), text))
	switch {
	case err == nil:
		return q.remove(ctx, m)
	case m.Dequeued < a.Trigger.Most:
		return q.release(ctx, m, a.Trigger.Visibility)
	}
	if err := q.Poison().Put(ctx, m.Text); err != nil {
		return err
	}
	return q.remove(ctx, m)
}

// bindingOf is the name of a function's queue trigger.
func (a *App) bindingOf(function string) string {
	for _, b := range a.Functions[function] {
		if strings.EqualFold(b.Type, "queueTrigger") {
			return b.Name
		}
	}
	return "myqueueItem"
}
