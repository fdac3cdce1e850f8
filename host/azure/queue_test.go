package azure_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// What the service would refuse is not sent.
func TestQueueRefusesWrongCalls(t *testing.T) {
	t.Parallel()
	q := queued(t, azure.Config{ConnectionString: keyed, Transport: transport(func(r *http.Request) (*http.Response, error) {
		t.Errorf("sent %s", r.URL)
		return nil, errors.New("no network")
	})})
	for what, err := range map[string]error{
		"hidden for -1s": second(q.Put(t.Context(), nil, -time.Second)),
		"0 to 168h":      second(q.Put(t.Context(), nil, 8*24*time.Hour)),
		"1 to 32":        second(q.Receive(t.Context(), 33, time.Second)),
		"1s to 168h":     second(q.Receive(t.Context(), 1, time.Millisecond)),
		"is empty":       q.Delete(t.Context(), alarm.Receipt{ID: "a"}),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// queueCalls are all methods that talk to the service.
var queueCalls = map[string]func(context.Context, *azure.Queue) error{
	"put message":      func(ctx context.Context, q *azure.Queue) error { return second(q.Put(ctx, []byte("x"), 0)) },
	"receive messages": func(ctx context.Context, q *azure.Queue) error { return second(q.Receive(ctx, 1, time.Second)) },
	"delete message": func(ctx context.Context, q *azure.Queue) error {
		return q.Delete(ctx, alarm.Receipt{ID: "a", Pop: "p"})
	},
	"read queue": func(ctx context.Context, q *azure.Queue) error { return second(q.Visible(ctx)) },
}

// The same code means the same to each call, but that what is gone already is no error.
func TestQueueCodes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		calls  string // those of which this holds; empty: all
		status int
		code   string
		want   error
		says   string // empty: no error
	}{
		{"", 403, "AuthorizationPermissionMismatch", fs.ErrPermission, `grant the identity the role "Storage Queue Data Contributor" on the queue`},
		{"", 403, "AuthenticationFailed", fs.ErrPermission, "this machine's clock is more than 15 minutes off"},
		{"", 403, "AuthorizationFailure", fs.ErrPermission, "the network rules"},
		{"", 403, "KeyBasedAuthenticationNotPermitted", fs.ErrPermission, "use an identity"},
		{"", 401, "", fs.ErrPermission, "not from the Queue service"},
		{"", 503, "ServerBusy", nil, "503 ServerBusy"},
		{"", 404, "", nil, "404 Not Found, not from the Queue service"}, // of a proxy
		{"delete message", 404, "MessageNotFound", nil, ""},
		{"delete message", 400, "PopReceiptMismatch", nil, ""},
		{"delete message", 404, "QueueNotFound", nil, ""},
		{"receive messages", 404, "QueueNotFound", nil, ""},
	} {
		for call, do := range queueCalls {
			if test.calls != "" && test.calls != call {
				continue
			}
			q := queued(t, azure.Config{ConnectionString: keyed, Transport: transport(func(r *http.Request) (*http.Response, error) { return refusal(r, test.status, test.code), nil })})
			err := do(t.Context(), q)
			switch {
			case test.says == "" && err != nil, test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
				t.Errorf("%s, %d %s: got %v, want %q", call, test.status, test.code, err, test.says)
			case err != nil && (errors.Is(err, fs.ErrPermission) != (test.want == fs.ErrPermission) || !strings.HasPrefix(err.Error(), "azure: "+call+" "+queueName+": ")):
				t.Errorf("%s, %d %s: got %v", call, test.status, test.code, err)
			}
		}
	}
}

// A missing queue is created, by us or by another replica meanwhile; where we may not, the error says what to do.
func TestPutCreatesQueue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		code   string
		says   string
	}{
		{http.StatusCreated, "", ""},
		{http.StatusConflict, "QueueAlreadyExists", ""},
		{http.StatusForbidden, "AuthorizationPermissionMismatch", `azure: create queue shop-alarm: permission denied (403 AuthorizationPermissionMismatch, request`},
		{http.StatusConflict, "QueueBeingDeleted", "409 QueueBeingDeleted"},
	} {
		there, puts := false, 0
		q := queued(t, azure.Config{ConnectionString: keyed, Transport: transport(func(r *http.Request) (*http.Response, error) {
			switch {
			case r.Method == http.MethodPut:
				there = test.status == http.StatusCreated || test.code == "QueueAlreadyExists"
				if test.code == "" {
					return answered(r, test.status, ""), nil
				}
				return refusal(r, test.status, test.code), nil
			case !there:
				puts++
				return refusal(r, http.StatusNotFound, "QueueNotFound"), nil
			}
			puts++
			return answered(r, http.StatusCreated, putAnswer), nil
		})})
		_, err := q.Put(t.Context(), []byte("x"), 0)
		if test.says == "" && (err != nil || puts != 2) || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says) || puts != 1) {
			t.Errorf("%d %s: got %v after %d requests to put", test.status, test.code, err, puts)
		}
		if test.status == http.StatusForbidden && !strings.Contains(err.Error(), `create the queue "shop-alarm" beforehand, or grant`) {
			t.Errorf("got %v", err)
		}
	}
}

// A success that something else has sent, or that lacks what was asked for, is none.
func TestForeignQueueAnswers(t *testing.T) {
	t.Parallel()
	for what, send := range map[string]transport{
		"not from the Queue service: a sign-in page": func(r *http.Request) (*http.Response, error) {
			resp := answered(r, http.StatusCreated, putAnswer)
			resp.Header.Del("x-ms-version")
			return resp, nil
		},
		"has no receipt": func(r *http.Request) (*http.Response, error) {
			return answered(r, http.StatusCreated, "<QueueMessagesList></QueueMessagesList>"), nil
		},
		"no network": func(*http.Request) (*http.Response, error) { return nil, errors.New("no network") },
	} {
		_, err := queued(t, azure.Config{ConnectionString: keyed, Transport: send}).Put(t.Context(), []byte("x"), 0)
		if err == nil || !strings.Contains(err.Error(), what) || !strings.HasPrefix(err.Error(), "azure: put message shop-alarm: ") {
			t.Errorf("got %v, want %q", err, what)
		}
	}
}

// Nothing that talks of a queue tells the signature.
func TestQueueErrorsDoNotTellSignature(t *testing.T) {
	t.Parallel()
	const hidden = "aGlkZGVu"
	for _, send := range []transport{
		func(r *http.Request) (*http.Response, error) { return refusal(r, 403, "AuthorizationFailure"), nil },
		func(r *http.Request) (*http.Response, error) { return nil, fmt.Errorf("no route") },
		func(r *http.Request) (*http.Response, error) { return answered(r, 200, "<html>"), nil },
	} {
		q := queued(t, azure.Config{ServiceURL: "https://sim.blob.core.windows.net/?ss=bq&srt=sco&sig=" + hidden, Transport: send})
		for call, do := range queueCalls {
			err := do(t.Context(), q)
			if err == nil {
				if call == "delete message" || call == "receive messages" || call == "read queue" {
					continue
				}
				t.Errorf("%s: no error", call)
				continue
			}
			text, advice := q.Explain(err)
			if all := err.Error() + text + advice + q.String(); strings.Contains(all, hidden) || strings.Contains(all, "sig=") {
				t.Errorf("%s tells the signature: %s", call, all)
			}
		}
	}
}

// Where the queues are follows from where the blobs are, or a setting of its own says it. A queue has one address,
// whichever settings lead to it.
func TestOpenQueue(t *testing.T) {
	for _, test := range []struct {
		config azure.Config
		want   string
	}{
		{azure.Config{ConnectionString: keyed}, "https://sim.queue.core.windows.net/shop-alarm"},
		{azure.Config{ConnectionString: "EndpointSuffix=core.chinacloudapi.cn;" + keyed}, "https://sim.queue.core.chinacloudapi.cn/shop-alarm"},
		{azure.Config{ConnectionString: "UseDevelopmentStorage=true"}, "http://127.0.0.1:10001/devstoreaccount1/shop-alarm"},
		{azure.Config{ConnectionString: "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://azurite-host"}, "http://azurite-host:10001/devstoreaccount1/shop-alarm"},
		{azure.Config{ConnectionString: "BlobEndpoint=http://store:1/dev;QueueEndpoint=http://store:2/dev;" + keyed}, "http://store:2/dev/shop-alarm"},
		{azure.Config{ConnectionString: "BlobEndpoint=https://sim.blob.core.windows.net;SharedAccessSignature=?ss=bq&sig=x"}, "https://sim.queue.core.windows.net/shop-alarm"},
		{azure.Config{ConnectionString: "DefaultEndpointsProtocol=https;" + keyed + ";EndpointSuffix=core.windows.net"}, "https://sim.queue.core.windows.net/shop-alarm"},
		{azure.Config{ServiceURL: "https://sim.blob.core.windows.net"}, "https://sim.queue.core.windows.net/shop-alarm"},
		{azure.Config{ServiceURL: "https://Sim.blob.core.windows.net/"}, "https://sim.queue.core.windows.net/shop-alarm"},
		{azure.Config{ServiceURL: "https://sim.blob.core.windows.net:443/"}, "https://sim.queue.core.windows.net/shop-alarm"},
		{azure.Config{ServiceURL: "https://sim.blob.core.windows.net?sv=2020-10-02&sig=secret"}, "https://sim.queue.core.windows.net/shop-alarm"},
		{azure.Config{ServiceURL: "https://blobs.contoso.com", QueueURL: "https://queues.contoso.com"}, "https://queues.contoso.com/shop-alarm"},
		{azure.Config{AccountName: "sim"}, "https://sim.queue.core.windows.net/shop-alarm"},
		{azure.Config{AccountName: "sim", QueueURL: "https://sim.queue.core.usgovcloudapi.net/"}, "https://sim.queue.core.usgovcloudapi.net/shop-alarm"},
	} {
		if got := queued(t, test.config).String(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func TestOpenQueueRefuses(t *testing.T) {
	const hidden = "c2hoaGhoIQ"
	for _, test := range []struct {
		config azure.Config
		name   string
		says   string
	}{
		{azure.Config{}, queueName, "no storage"},
		{azure.Config{ConnectionString: hidden}, queueName, "part 1 is not"},
		{azure.Config{ConnectionString: "BlobEndpoint=https://blobs.contoso.com;" + keyed}, queueName, `the host "blobs.contoso.com" of the blobs: set QueueEndpoint`},
		{azure.Config{ConnectionString: "QueueEndpoint=" + hidden + ";" + keyed}, queueName, "QueueEndpoint is not a queue service URL"},
		{azure.Config{ConnectionString: "BlobEndpoint=https://sim.blob.core.windows.net;SharedAccessSignature=sr=c&sig=" + hidden}, queueName, "its shared access signature is not for queues"},
		{azure.Config{ServiceURL: "https://sim.blob.core.windows.net/?ss=b&sig=" + hidden}, queueName, "want one of the account for blobs and queues (ss=bq)"},
		{azure.Config{ServiceURL: "https://blobs.contoso.com"}, queueName, "set AzureWebJobsStorage__queueServiceUri"},
		{azure.Config{AccountName: "sim", QueueURL: "http://sim.queue.core.windows.net"}, queueName, "AzureWebJobsStorage__queueServiceUri): an identity needs https"},
		{azure.Config{AccountName: "sim", QueueURL: hidden}, queueName, "not an http or https URL"},
		{azure.Config{AccountName: "No"}, queueName, "__accountName"},
		{azure.Config{ConnectionString: keyed}, "a--b", "SOLOIST_ALARM_QUEUE"},
		{azure.Config{ConnectionString: keyed}, "ab", "SOLOIST_ALARM_QUEUE"},
		{azure.Config{ConnectionString: keyed}, hidden, "SOLOIST_ALARM_QUEUE"},
	} {
		_, err := azure.OpenQueue(test.config, test.name)
		if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: got %v", test.says, err)
		}
	}
}

// Over the emulator: a message is hidden for its time, received, hidden again, and deleted by the newest receipt alone.
func TestQueueOverAzurite(t *testing.T) {
	t.Parallel()
	q, err := azure.OpenQueue(azure.Config{ConnectionString: azurite.Shared(t).ConnectionString()}, fmt.Sprintf("queue-%d", time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	if all, err := q.Receive(t.Context(), 32, time.Second); err != nil || len(all) != 0 {
		t.Errorf("of a missing queue got %v, %v", all, err)
	}
	later, err := q.Put(t.Context(), []byte("later"), 6*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	first, err := q.Put(t.Context(), []byte(`{"now":"\u00e9 <&>"}`), 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := q.Visible(t.Context()); err != nil || n != 1 {
		t.Errorf("%d are visible, %v", n, err)
	}
	all, err := q.Receive(t.Context(), 32, time.Second)
	if err != nil || len(all) != 1 || string(all[0].Body) != `{"now":"\u00e9 <&>"}` || all[0].Dequeued != 1 || time.Since(all[0].Inserted).Abs() > time.Minute {
		t.Fatalf("got %+v, %v", all, err)
	}
	if err := q.Delete(t.Context(), first); err != nil { // its receipt is old
		t.Error(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		again, err := q.Receive(t.Context(), 32, time.Minute)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("it did not come back: %v", err)
		}
		if len(again) == 1 {
			all = again
			break
		}
	}
	for _, r := range []alarm.Receipt{all[0].Receipt, later, all[0].Receipt} {
		if err := q.Delete(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	if n, err := q.Visible(t.Context()); err != nil || n != 0 {
		t.Errorf("%d are visible, %v", n, err)
	}
}

// The emulator refuses a wrong key, and the error says what it is about without telling the key.
func TestQueueOverAzuriteRefused(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(azurite.Shared(t).ConnectionString(), azurite.Key, secret)
	q := queued(t, azure.Config{ConnectionString: text})
	_, err := q.Put(t.Context(), []byte("x"), 0)
	if !errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
	if _, advice := q.Explain(err); advice == "" {
		t.Errorf("there is no advice for %v", err)
	}
}
