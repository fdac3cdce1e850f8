package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

var errGoexit = errors.New("the job ended its goroutine (runtime.Goexit)")

// call runs f in a goroutine of its own, so that neither a panic nor a Goexit
// of one job reaches another.
func call(log *slog.Logger, f func() error) error {
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
