package host

import (
	"log/slog"
	"runtime"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/logging"
)

// What an overrun may still say. By then a hundredth of the lease is left, and
// the shortest on Azure has 15 s; a log without a reader must not delay it.
// It goes past the queue of the log, so that what is said is written.
const (
	lastWords = 100 * time.Millisecond
	maxDump   = 64 << 10 // bytes of goroutines
)

// An overrun ends the process under a run that goes on without its lease, so
// that it is gone before another replica has it.
type overrun struct {
	log  *slog.Logger // without a queue
	exit func(code int)
}

func (o overrun) end(job string, cause error) {
	code := exitOverrun
	if app.InFunctions() {
		code = exitRestart
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		o.log.Error("the process exits, so that the lease cannot be held by two: a run goes on though its context has ended",
			"job", job, "cause", cause, "code", code, "goroutines", logging.Dump(goroutines()))
	}()
	select {
	case <-said:
	case <-time.After(lastWords):
	}
	o.exit(code)
}

func goroutines() string {
	b := make([]byte, maxDump)
	return string(b[:runtime.Stack(b, true)])
}
