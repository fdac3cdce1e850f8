package supervise

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// An Info says which run this is.
type Info struct {
	Tick    time.Time
	Request string
	Attempt int
	Token   int64
	Log     *slog.Logger // the user's: it writes directly
}

// A Lease is what a run needs of the session that it runs under.
type Lease interface {
	Context() context.Context // ends with the trust in the lease
	Left() time.Duration      // until then, if no renewal succeeds
	Expired() bool
	Lose(cause error)
	GiveUp()
	Renew(ctx context.Context) error
	Checkpoints() bool
	Load(ctx context.Context) ([]byte, error)
}

// A Record tells others how a run goes. All but Save are tried once.
type Record interface {
	Stopping(yes bool) error // the run is about to be handed over, or is not after all
	Progress(beat time.Time, note string) error
	Stalled(reason string) error
	Save(ctx context.Context, note string, checkpoint []byte) error
}

// Conditions are what a run goes on under.
type Conditions struct {
	Stop   context.Context // ends when the run is to stop, which it has to within Grace
	Grace  time.Duration
	Lease  Lease  // nil: the job runs on each replica
	Record Record // nil if Lease is

	Length   time.Duration // of the lease
	Approach time.Duration // how long it takes until the other replicas have seen that a run is to be handed over
	Elapsed  func() time.Duration

	announced atomic.Bool // the record says that the run is about to be handed over
}

// callTimeout is how long one call to the store may take.
func (c *Conditions) callTimeout() time.Duration { return c.Length / 6 }

// held ends with the trust in the lease, and never without one.
func (c *Conditions) held() context.Context {
	if c.Lease == nil {
		return context.WithoutCancel(c.Stop)
	}
	return c.Lease.Context()
}
