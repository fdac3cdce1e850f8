package keda_test

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/proof/zero/keda"
)

// A world is a queue of Azurite and KEDA's scaler over it.
type world struct {
	*testing.T
	*keda.Scaler
	queue *azqueue.QueueClient
}

func open(t *testing.T) *world {
	t.Helper()
	connection, name := azurite.Shared(t).ConnectionString(), strings.ToLower(t.Name())
	s, err := keda.Open(keda.Rule{Connection: connection, Queue: name})
	if err != nil {
		t.Fatal(err)
	}
	queue, err := azqueue.NewQueueClientFromConnectionString(connection, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, s, queue}
}

func (w *world) create() *world {
	w.Helper()
	if _, err := w.queue.Create(w.Context(), nil); err != nil {
		w.Fatal(err)
	}
	return w
}

// put adds a message that is hidden for so many seconds.
func (w *world) put(text string, hidden int32) {
	w.Helper()
	if _, err := w.queue.EnqueueMessage(w.Context(), text, &azqueue.EnqueueMessageOptions{VisibilityTimeout: &hidden}); err != nil {
		w.Error(err)
	}
}

// want looks once.
func (w *world) want(active bool) {
	w.Helper()
	if got, err := w.Look(w.Context()); err != nil || got != active {
		w.Errorf("got %t, %v; want %t", got, err, active)
	}
}

func TestInvisibleMessagesDoNotCount(t *testing.T) {
	w := open(t).create()
	w.want(false)
	w.put("in an hour", 3600)
	w.want(false)
	w.put("now", 0)
	w.want(true)
	hide := int32(60)
	if _, err := w.queue.DequeueMessage(t.Context(), &azqueue.DequeueMessageOptions{VisibilityTimeout: &hide}); err != nil {
		t.Fatal(err)
	}
	w.want(false) // one that a replica has received
}

func TestMessageCountsFromItsTimeOn(t *testing.T) {
	w := open(t).create()
	w.put("soon", 2)
	w.want(false)
	begun := time.Now()
	for got, err := w.Look(t.Context()); !got; got, err = w.Look(t.Context()) {
		if err != nil || time.Since(begun) > 10*time.Second {
			t.Fatalf("not visible after %s: %v", time.Since(begun), err)
		}
	}
	if after := time.Since(begun); after < time.Second {
		t.Errorf("visible after %s, want 2 s", after)
	}
}

// The scaler does not read messages: whatever they say, somebody has to look at them.
func TestPoisonCounts(t *testing.T) {
	w := open(t).create()
	poison := []string{"", "no base64", "eyJub25l", "<QueueMessage/>", strings.Repeat("x", 60_000)}
	for _, text := range poison {
		w.put(text, 0)
		w.want(true)
	}
	if since, err := w.Visible(t.Context()); err != nil || !since.IsZero() {
		t.Errorf("got %s, %v; want that none of them is an alarm", since, err)
	}
}

func TestMissingQueueIsAnError(t *testing.T) {
	w := open(t)
	if got, err := w.Look(t.Context()); err == nil || got || !strings.Contains(err.Error(), "QueueNotFound") {
		t.Errorf("got %t, %v", got, err)
	}
}

func TestVisibleIsTheFirstAlarm(t *testing.T) {
	w := open(t).create()
	want := func(want string) {
		t.Helper()
		since, err := w.Visible(t.Context())
		if got := since.UTC().Format("15:04"); err != nil || got != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	w.put("eyJhdCI6IjIwMjYtMTEtMjRUMDA6MzA6MDBaIn0=", 0) // {"at":"2026-11-24T00:30:00Z"}
	hide := int32(1)
	if _, err := w.queue.DequeueMessage(t.Context(), &azqueue.DequeueMessageOptions{VisibilityTimeout: &hide}); err != nil {
		t.Fatal(err)
	}
	w.put("eyJhdCI6IjIwMjYtMTEtMjRUMDI6MDA6MDBaIn0=", 0) // {"at":"2026-11-24T02:00:00Z"}
	want("02:00")
	w.put("eyJhdCI6IjIwMjYtMTEtMjRUMDE6MDA6MDBaIn0=", 0) // {"at":"2026-11-24T01:00:00Z"}
	want("01:00")
	proctest.Poll(t, "the message that was received", 10*time.Second, func() bool {
		peeked, err := w.queue.PeekMessages(t.Context(), &azqueue.PeekMessagesOptions{NumberOfMessages: new(int32(32))})
		return err == nil && len(peeked.Messages) == 3
	})
	want("01:00") // that one may have been visible at any time
}
