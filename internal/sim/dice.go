package sim

import (
	"math"
	"time"
)

// A roll is a series of random numbers that follow from a key alone. What
// becomes of one request then does not depend on what else goes on: goroutines
// of one instant may come in any order.
type roll uint64

// newRoll hashes a key, as FNV-1a does.
func newRoll(seed uint64, n int, parts ...string) *roll {
	h := uint64(14695981039346656037)
	add := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	for _, x := range []uint64{seed, uint64(n)} {
		for range 8 {
			add(byte(x))
			x >>= 8
		}
	}
	for _, p := range parts {
		for i := range len(p) {
			add(p[i])
		}
		add(0)
	}
	r := roll(h)
	r.next()
	return &r
}

// next is a step of splitmix64 (https://prng.di.unimi.it/splitmix64.c).
func (r *roll) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// share is from 0 up to 1.
func (r *roll) share() float64 { return float64(r.next()>>11) / (1 << 53) }

func (r *roll) chance(p float64) bool { return r.share() < p }

// below is from 0 to n-1.
func (r *roll) below(n int) int { return int(r.next() % uint64(n)) }

func (r *roll) between(least, most time.Duration) time.Duration {
	return least + time.Duration(r.next()%uint64(most-least+1))
}

// around is an exponential distribution: what comes at random has such gaps.
func (r *roll) around(mean time.Duration) time.Duration {
	return time.Duration(-math.Log(1-r.share()) * float64(mean))
}

// latency is one way through the network: mostly short, now and then not.
func (r *roll) latency() time.Duration {
	if r.chance(0.02) {
		return r.between(80*time.Millisecond, 900*time.Millisecond)
	}
	return r.between(2*time.Millisecond, 60*time.Millisecond)
}
