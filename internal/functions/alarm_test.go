//go:build unix

package functions_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/functions"
	"github.com/soloist-go/soloist/internal/proctest"
)

// The program with alarms, as the command functions writes it, on a platform that starts an instance when a message is visible,
// and takes it away without notice when none is: between two ticks no instance is up, and ticks are run all the same, each once.
func TestAlarmStartsAnInstanceForEachTick(t *testing.T) {
	t.Parallel()
	storage, dir := proctest.Azurite(t), filepath.Join(t.TempDir(), "app")
	name := storage.Container // of the queue too
	env := append(storage.Env(), "SOLOIST_APP=test", "SOLOIST_ALARM=queue", "SOLOIST_ALARM_QUEUE="+name, "SOLOIST_ALARM_LEAD=4s", "SOLOIST_STAY=6s",
		scheduleEnv+"=*/20 * * * * *", takesEnv+"=0s", proctest.As("program"))
	writer, err := proctest.Command{Program: proctest.Self(), Args: []string{"functions", dir}, Env: env}.Start()
	if err != nil || writer.Code() != 0 {
		t.Fatalf("the command functions: %v", err)
	}
	h := loaded(t, dir, env...)
	b := h.Functions["alarm"].Bindings
	if len(h.Functions) != 2 || len(b) != 1 || b[0].Type != "queueTrigger" || b[0].QueueName != name || b[0].Connection == "" {
		t.Fatalf("got %+v", h.Functions)
	}
	queue, err := azure.OpenQueue(azure.Config{ConnectionString: storage.Setting}, name)
	if err != nil {
		t.Fatal(err)
	}
	start(t, h)
	if _, err := h.Invoke(t.Context(), "tick", noTick); err != nil { // the first call after a deployment
		t.Fatal(err)
	}
	h.Kill()
	ran := func() []event.Outcome {
		if _, err := storage.Store.Read(t.Context(), "test/work"); err != nil {
			return nil // the first call has not made it
		}
		return slices.DeleteFunc(storage.Record(t, "test/work").History, func(o event.Outcome) bool { return o.Start.IsZero() })
	}
	proctest.Poll(t, "the third run", patience, func() bool {
		n, err := queue.Visible(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			start(t, h)
			drain(t, h, queue)
			h.Kill()
		}
		time.Sleep(200 * time.Millisecond)
		return len(ran()) >= 3
	})
	seen := map[time.Time]bool{}
	for _, o := range ran() {
		if o.Status != event.Succeeded || seen[o.Tick] {
			t.Errorf("got the outcome %+v, want one success for each tick", o)
		}
		seen[o.Tick] = true
	}
}

// drain makes a call for each message that is visible. The message of a call that fails becomes visible again after a minute, as
// host.json says.
func drain(t *testing.T, h *functions.Host, queue *azure.Queue) {
	t.Helper()
	for {
		all, err := queue.Receive(t.Context(), 1, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			return
		}
		text, _ := json.Marshal(string(all[0].Body)) // of a text
		if _, err := h.Invoke(t.Context(), "alarm", fmt.Sprintf(`{"Data":{"alarm":%q},"Metadata":{}}`, text)); err != nil {
			t.Log(err)
		} else if err := queue.Delete(t.Context(), all[0].Receipt); err != nil {
			t.Fatal(err)
		}
	}
}
