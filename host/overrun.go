package host

import (
	"errors"
	"runtime"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// What an overrun may still say. By then a hundredth of the lease is left, and
// the shortest on Azure has 15 s; a log that nobody reads must not hold it up.
// It goes past the queue of the log, so that what is said is written.
const (
	lastWords = 100 * time.Millisecond
	maxDump   = 64 << 10 // bytes of goroutines
)

// overrun ends the process under a run that goes on without its lease, so that
// it is gone before another replica has it.
func (a *app) overrun(job string, cause error) {
	code := exitOverrun
	if inFunctions() {
		code = exitRestart
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		a.sched.Logger.Error("the process exits, so that the lease cannot be held by two: a run goes on though its context has ended",
			"job", job, "cause", cause, "code", code, "goroutines", dump(goroutines()))
	}()
	select {
	case <-said:
	case <-time.After(lastWords):
	}
	a.exit(code)
}

func goroutines() string {
	b := make([]byte, maxDump)
	return string(b[:runtime.Stack(b, true)])
}

// goesOn says what an overrun is, wherever it is told.
func goesOn(cause error) string {
	return "goes on though its context has ended (" + line(cause.Error()) + "): only a restart helps"
}

// sentinel tells a cause in the words of this module alone.
func sentinel(cause error) string {
	for _, err := range []error{store.ErrLost, soloist.ErrStalled, soloist.ErrTimeout, soloist.ErrStopped} {
		if errors.Is(cause, err) {
			return err.Error()
		}
	}
	return "ended"
}
