package lease

import (
	"crypto/sha256"
	"math/rand/v2"
	"sync"
	"time"
)

// Jitter spreads what replicas do at the same time. They are seeded, so that what
// a replica does follows from what it sees: a simulation can be repeated.
type Jitter struct {
	mu sync.Mutex
	r  *rand.Rand
}

// NewJitter returns what follows from the seed.
func NewJitter(seed string) *Jitter {
	return &Jitter{r: rand.New(rand.NewChaCha8(sha256.Sum256([]byte(seed))))}
}

// UpTo returns between zero and d.
func (j *Jitter) UpTo(most time.Duration) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Duration(j.r.Int64N(int64(most) + 1))
}

// Half returns between half of whole and whole.
func (j *Jitter) Half(whole time.Duration) time.Duration { return whole/2 + j.UpTo(whole/2) }

// maxPause bounds how long an outage goes on for us after it is over.
const maxPause = 10 * time.Second

// A Backoff doubles its pauses up to the longest, with jitter.
type Backoff struct {
	First, Longest time.Duration
	Jitter         *Jitter

	pause time.Duration // the next one; zero: First
}

// Backoff is for calls to the store.
func (c *Client) Backoff(first time.Duration) *Backoff {
	return &Backoff{First: first, Longest: maxPause, Jitter: c.Jitter}
}

// Next returns how long to wait now.
func (b *Backoff) Next() time.Duration {
	if b.pause == 0 {
		b.pause = b.First
	}
	pause := min(b.pause, b.Longest)
	b.pause = pause + min(pause, b.Longest-pause) // twice the pause could overflow
	return b.Jitter.Half(pause)
}

// Reset starts again with the first pause.
func (b *Backoff) Reset() { b.pause = 0 }
