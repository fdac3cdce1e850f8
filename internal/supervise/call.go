package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

var errGoexit = errors.New("the job ended its goroutine (runtime.Goexit)")

// call runs f in a goroutine of its own and waits for it, so that a panic or a
// runtime.Goexit in one job does not end the loop of this job or the process. Both
// become an error: a function that ended in an unknown state has failed.
func call(log *slog.Logger, f func() error) error {
	// Goexit runs the deferred calls and nothing else, so this value is left only
	// if f neither returned nor panicked.
	err := errGoexit
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				log.Error("panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		err = fixed(f())
	}()
	<-done
	return err
}
