package azure_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/azurite"
)

const queueName = "shop-alarm"

func queued(t *testing.T, c azure.Config) *azure.Queue {
	t.Helper()
	q, err := azure.OpenQueue(c, queueName)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// answered is an answer of the Queue service.
func answered(r *http.Request, status int, body string) *http.Response {
	resp := refusal(r, status, "x")
	resp.Header.Del("x-ms-error-code")
	resp.Header.Set("Content-Type", "application/xml")
	resp.Body = io.NopCloser(strings.NewReader(body))
	return resp
}

const putAnswer = `<?xml version="1.0" encoding="utf-8"?><QueueMessagesList><QueueMessage><MessageId>id-1</MessageId><PopReceipt>pop-1</PopReceipt></QueueMessage></QueueMessagesList>`

// Each call is one request, which says how long the message is hidden, that it never expires, and holds the body in base64.
func TestQueueRequests(t *testing.T) {
	t.Parallel()
	var got []string
	q := queued(t, azure.Config{ConnectionString: keyed, Transport: transport(func(r *http.Request) (*http.Response, error) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "SharedKey sim:") {
			t.Errorf("got %q for the authorization", r.Header.Get("Authorization"))
		}
		text := ""
		if r.Body != nil {
			b, _ := io.ReadAll(r.Body)
			text = " " + string(b)
		}
		got = append(got, r.Method+" "+r.URL.String()+text)
		switch r.Method {
		case http.MethodPost:
			return answered(r, http.StatusCreated, putAnswer), nil
		case http.MethodDelete:
			return answered(r, http.StatusNoContent, ""), nil
		}
		return answered(r, http.StatusOK, `<QueueMessagesList><QueueMessage><MessageId>a</MessageId><PopReceipt>p</PopReceipt><InsertionTime>Fri, 09 Oct 2026 21:04:30 GMT</InsertionTime>`+
			`<DequeueCount>3</DequeueCount><MessageText>`+base64.StdEncoding.EncodeToString([]byte("body"))+`</MessageText></QueueMessage>`+
			`<QueueMessage><MessageId>b</MessageId><PopReceipt>p</PopReceipt><MessageText>no &lt;base64&gt;</MessageText></QueueMessage></QueueMessagesList>`), nil
	})})
	receipt, err := q.Put(t.Context(), []byte("body"), 90*time.Second+900*time.Millisecond)
	if err != nil || receipt != (alarm.Receipt{ID: "id-1", Pop: "pop-1"}) {
		t.Errorf("put: got %+v, %v", receipt, err)
	}
	all, err := q.Receive(t.Context(), 32, 30*time.Second)
	if err != nil || len(all) != 2 {
		t.Fatalf("receive: got %+v, %v", all, err)
	}
	if m := all[0]; string(m.Body) != "body" || m.Dequeued != 3 || m.Inserted.Hour() != 21 || m.ID != "a" {
		t.Errorf("got %+v", m)
	}
	if m := all[1]; string(m.Body) != "no <base64>" || !m.Inserted.IsZero() {
		t.Errorf("got %+v of a stranger's message", m)
	}
	if err := q.Delete(t.Context(), alarm.Receipt{ID: "a", Pop: "p+/="}); err != nil {
		t.Error(err)
	}
	const base = " https://sim.queue.core.windows.net/shop-alarm/messages"
	want := []string{
		"POST" + base + "?messagettl=-1&visibilitytimeout=90 " + `<?xml version="1.0" encoding="UTF-8"?>` + "\n<QueueMessage><MessageText>Ym9keQ==</MessageText></QueueMessage>",
		"GET" + base + "?numofmessages=32&visibilitytimeout=30",
		"DELETE" + base + "/a?popreceipt=p%2B%2F%3D",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// What is gone already is no error.
func TestGoneMessages(t *testing.T) {
	for _, test := range []struct {
		call, code string
		status     int
	}{
		{"delete message", "MessageNotFound", 404}, {"delete message", "PopReceiptMismatch", 400}, {"delete message", "QueueNotFound", 404},
		{"receive messages", "QueueNotFound", 404},
	} {
		gone := func(r *http.Request) (*http.Response, error) { return refusal(r, test.status, test.code), nil }
		if err := calls[test.call](t.Context(), over(gone)); err != nil {
			t.Errorf("%s: %s: got %v", test.call, test.code, err)
		}
	}
}

// A success that lacks the receipt is none.
func TestPutWithoutReceipt(t *testing.T) {
	err := calls["put message"](t.Context(), over(func(r *http.Request) (*http.Response, error) {
		return answered(r, http.StatusCreated, "<QueueMessagesList></QueueMessagesList>"), nil
	}))
	unclear(t, err, "azure: put message shop-alarm: ", "has no receipt")
}

// Over the emulator: a message is hidden for its time, received, hidden again, and deleted by the newest receipt alone.
func TestQueueOverAzurite(t *testing.T) {
	t.Parallel()
	q, err := azure.OpenQueue(azure.Config{ConnectionString: azurite.Shared(t).ConnectionString()}, fmt.Sprintf("queue-%d", time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	receive := func(hide time.Duration, want int) []alarm.Message {
		t.Helper()
		all, err := q.Receive(t.Context(), 32, hide)
		n, err2 := q.Visible(t.Context())
		if errors.Join(err, err2) != nil || len(all) > want || n != 0 {
			t.Fatalf("got %+v, want %d, and then %d are visible; %v, %v", all, want, n, err, err2)
		}
		return all
	}
	receive(time.Second, 0) // there is no queue
	later, err := q.Put(t.Context(), []byte("later"), 6*24*time.Hour)
	first, err2 := q.Put(t.Context(), []byte(`{"now":"\u00e9 <&>"}`), 0)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	all := receive(time.Second, 1)
	if len(all) != 1 || string(all[0].Body) != `{"now":"\u00e9 <&>"}` || all[0].Dequeued != 1 || time.Since(all[0].Inserted).Abs() > time.Minute {
		t.Fatalf("got %+v", all)
	}
	if err := q.Delete(t.Context(), first); err != nil { // its receipt is old
		t.Error(err)
	}
	all = nil
	for begin := time.Now(); len(all) == 0; time.Sleep(200 * time.Millisecond) { // until it comes back
		if all, err = q.Receive(t.Context(), 32, time.Minute); err != nil || time.Since(begin) > time.Minute {
			t.Fatalf("it did not come back: %v", err)
		}
	}
	for _, r := range []alarm.Receipt{all[0].Receipt, later, all[0].Receipt} {
		if err := q.Delete(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	receive(time.Second, 0)
}
