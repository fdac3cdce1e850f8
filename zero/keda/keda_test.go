package keda_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/zero/keda"
	"github.com/soloist-go/soloist/zero/platform"
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

// many adds messages, a few at a time.
func (w *world) many(n int, hidden int32) {
	w.Helper()
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			w.put(fmt.Sprint(i), hidden)
			<-slots
		})
	}
	all.Wait()
}

// want looks once.
func (w *world) want(messages float64) {
	w.Helper()
	got, err := w.Look(w.Context())
	if want := (platform.Reading{Active: messages > 0, Messages: messages, Each: 1}); err != nil || got != want {
		w.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestInvisibleMessagesDoNotCount(t *testing.T) {
	w := open(t).create()
	w.want(0)
	w.put("in an hour", 3600)
	w.want(0)
	w.put("now", 0)
	w.want(1)
	hide := int32(60)
	if _, err := w.queue.DequeueMessage(t.Context(), &azqueue.DequeueMessageOptions{VisibilityTimeout: &hide}); err != nil {
		t.Fatal(err)
	}
	w.want(0) // one that a replica has received
}

func TestMessageCountsFromItsTimeOn(t *testing.T) {
	w := open(t).create()
	w.put("soon", 2)
	w.want(0)
	begun := time.Now()
	for got, err := w.Look(t.Context()); !got.Active; got, err = w.Look(t.Context()) {
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
	for i, text := range poison {
		w.put(text, 0)
		w.want(float64(i + 1))
	}
	if since, err := w.Visible(t.Context()); err != nil || !since.IsZero() {
		t.Errorf("got %s, %v; want that none of them is an alarm", since, err)
	}
}

// From 32 visible messages on, the scaler counts invisible ones, too.
func TestManyMessagesCountWithInvisibleOnes(t *testing.T) {
	w := open(t).create()
	w.many(9_969, 3600)
	w.many(31, 0)
	w.want(31)
	w.many(1, 0)
	w.want(10_001)
}

func TestMissingQueueIsAnError(t *testing.T) {
	w := open(t)
	if got, err := w.Look(t.Context()); err == nil || got.Active || !strings.Contains(err.Error(), "QueueNotFound") {
		t.Errorf("got %+v, %v", got, err)
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
		got, err := w.Look(t.Context())
		return err == nil && got.Messages == 3
	})
	want("01:00") // that one may have been visible at any time
}
