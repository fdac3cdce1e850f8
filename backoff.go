package soloist

import (
	"math/rand/v2"
	"time"
)

// jitter returns between d/2 and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// maxPause bounds how long an outage goes on for us after it is over.
const maxPause = 10 * time.Second

// A backoff doubles its pauses up to the longest, with jitter.
type backoff struct{ first, pause, longest time.Duration }

// newBackoff is for calls to the store.
func newBackoff(first time.Duration) *backoff {
	return &backoff{first: first, pause: first, longest: maxPause}
}

func (b *backoff) next() time.Duration {
	d := jitter(min(b.pause, b.longest))
	b.pause = min(2*b.pause, b.longest)
	return d
}

func (b *backoff) reset() { b.pause = b.first }
