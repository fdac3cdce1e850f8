package soloist

import (
	"crypto/sha256"
	"math/rand/v2"
	"sync"
	"time"
)

// dice spread what replicas do at the same time. They are seeded, so that what
// a replica does follows from what it sees: a simulation can be repeated.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed string) *dice {
	return &dice{r: rand.New(rand.NewChaCha8(sha256.Sum256([]byte(seed))))}
}

// upTo returns between zero and d.
func (d *dice) upTo(most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.r.Int64N(int64(most) + 1))
}

// jitter returns between half of d and d.
func (d *dice) jitter(whole time.Duration) time.Duration { return whole/2 + d.upTo(whole/2) }

// maxPause bounds how long an outage goes on for us after it is over.
const maxPause = 10 * time.Second

// A backoff doubles its pauses up to the longest, with jitter.
type backoff struct {
	first, pause, longest time.Duration
	dice                  *dice
}

// backoff is for calls to the store.
func (c *cell) backoff(first time.Duration) *backoff {
	return &backoff{first, first, maxPause, c.dice}
}

func (b *backoff) next() time.Duration {
	b.pause = min(b.pause, b.longest) // before it is doubled, which could overflow
	d := b.dice.jitter(b.pause)
	b.pause = min(2*b.pause, b.longest)
	return d
}

func (b *backoff) reset() { b.pause = b.first }
