package lease

import (
	"crypto/sha256"
	"math/rand/v2"
	"sync"
	"time"
)

// A Jitter spreads in time what several replicas would do at once. It is seeded, so that
// what a replica does depends only on what it sees, and a simulation can be repeated.
type Jitter struct {
	mu   sync.Mutex
	seed string
	r    *rand.Rand // made by the first use: an idle job has none
}

// NewJitter returns the random sequence of the seed.
func NewJitter(seed string) *Jitter { return &Jitter{seed: seed} }

// UpTo returns a duration from zero to most.
func (j *Jitter) UpTo(most time.Duration) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.r == nil {
		j.r = rand.New(rand.NewChaCha8(sha256.Sum256([]byte(j.seed))))
	}
	return time.Duration(j.r.Int64N(int64(most) + 1))
}

// Half returns a duration from half of whole to whole.
func (j *Jitter) Half(whole time.Duration) time.Duration { return whole/2 + j.UpTo(whole/2) }

// maxPause is the longest pause between calls to a store that does not answer. It bounds
// how long a replica notices nothing after the store has come back.
const maxPause = 10 * time.Second

// A Backoff returns pauses that double up to the longest, with jitter.
type Backoff struct {
	First, Longest time.Duration
	Jitter         *Jitter

	pause time.Duration // the next one; zero: First
}

// Backoff returns the pauses between calls to the store. Where runs beat they are no longer than half a beat's length: a
// follower reads each third of it when all is well, and after an outage it has to see the last beat for the whole of it.
func (c *Client) Backoff(first time.Duration) *Backoff {
	b := &Backoff{First: first, Longest: maxPause, Jitter: c.Jitter}
	if c.Beat > 0 {
		b.Longest = min(maxPause, c.Beat/2)
	}
	return b
}

// Next returns the next pause: between half of its length and all of it.
func (b *Backoff) Next() time.Duration {
	if b.pause == 0 {
		b.pause = b.First
	}
	pause := min(b.pause, b.Longest)
	b.pause = pause + min(pause, b.Longest-pause) // twice the pause could overflow
	return b.Jitter.Half(pause)
}

// Reset makes the next pause the first one again, after a success.
func (b *Backoff) Reset() { b.pause = 0 }
