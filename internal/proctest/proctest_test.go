//go:build unix

package proctest_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
)

func TestMain(m *testing.M) {
	order, ok := proctest.Order()
	if !ok {
		proctest.Main(m, 4)
	}
	replica(order)
}

// replica prints and does what its order says.
func replica(order string) {
	if order == "starter" { // of a replica that outlives nobody
		p, err := proctest.Command{Program: proctest.Self(), Env: []string{proctest.As("waits")}, Stdout: func(line string) { fmt.Println(line) }}.Start()
		fmt.Println(err)
		<-p.Gone()
	}
	proctest.Tell(proctest.Event{What: "start", Token: int64(os.Getpid())})
	fmt.Println(`{"msg":"hello","job":"work","token":7,"replica":"unknown"}`)
	fmt.Println("not JSON", os.Getenv("SOLOIST_APP"), os.Getenv("EXTRA"))
	if order == "ends" {
		fmt.Print("no end of a line")
		os.Exit(5)
	}
	select {}
}

func told(what string) func(proctest.Event) bool {
	return func(e proctest.Event) bool { return e.What == what }
}

func TestFleetTellsWhatItsReplicasPrint(t *testing.T) {
	t.Setenv("SOLOIST_APP", "of the machine")
	f := proctest.Fleet{Env: []string{"EXTRA=extra"}}
	t.Cleanup(f.Close)
	if err := f.Start("a", proctest.As("ends")); err != nil {
		t.Fatal(err)
	}
	if code := f.Replica("a").Code(); code != 5 {
		t.Errorf("got code %d, want 5", code)
	}
	events := f.Events()
	if len(events) != 5 || events[4].Text != "no end of a line" || events[0].What != proctest.Begins || events[1].What != "start" || events[1].At.IsZero() {
		t.Fatalf("got %+v", events)
	}
	if e := events[2]; e.Replica != "a" || e.What != proctest.Log || e.Msg != "hello" || e.Job != "work" || e.Token != 7 {
		t.Errorf("got %+v of a log", e)
	}
	if e := events[3]; e.Text != "not JSON  extra" || e.Replica != "a" {
		t.Errorf("got %+v, want a line without what the machine has set", e)
	}
	if _, err := f.Await("a start", time.Second, told("start")); err != nil {
		t.Error(err)
	}
	if _, err := f.Await("another", time.Millisecond, told("start")); err == nil || !strings.Contains(err.Error(), "another did not come within 1ms") {
		t.Errorf("got %v of an event that did not come again", err)
	}
	if e, err := f.Have("the start of before", time.Millisecond, told("start")); err != nil || e.Replica != "a" {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestFrozenProcessIsKilled(t *testing.T) {
	t.Parallel()
	f := proctest.Fleet{}
	t.Cleanup(f.Close)
	for _, frozen := range []bool{false, true} {
		if err := f.Start("a", proctest.As("waits")); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Await("its start", time.Minute, told("start")); err != nil {
			t.Fatal(err)
		}
		patience, want := time.Minute, "stopped with code -1" // it does not handle SIGTERM
		if frozen {
			patience, want = 10*time.Millisecond, "did not stop within 10ms"
			f.Replica("a").Signal(syscall.SIGSTOP)
		}
		err := f.Stop(patience)
		if code := f.Replica("a").Code(); err == nil || !strings.Contains(err.Error(), want) || code != -1 {
			t.Errorf("got code %d, %v; want %q", code, err, want)
		}
	}
}

// A replica whose starter is killed ends by itself.
func TestReplicaEndsWithItsStarter(t *testing.T) {
	t.Parallel()
	f := proctest.Fleet{}
	t.Cleanup(f.Close)
	if err := f.Start("starter", proctest.As("starter")); err != nil {
		t.Fatal(err)
	}
	e, err := f.Await("the start of its replica", time.Minute, told("start"))
	if err != nil {
		t.Fatal(err)
	}
	f.Replica("starter").Kill()
	proctest.Poll(t, "the end of its replica", time.Minute, func() bool {
		return errors.Is(syscall.Kill(int(e.Token), 0), syscall.ESRCH)
	})
}
