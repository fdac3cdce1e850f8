// Package draw is what a simulation draws from its seed before it begins: the program and its later
// versions, and the plan of what goes wrong. All of it is a function of the seed.
package draw

import (
	"math"
	"time"
)

// A Roll is a series of random numbers that follow from a key alone. What
// becomes of one request then does not depend on what else goes on: goroutines
// of one instant may come in any order.
type Roll uint64

// New hashes a key, as FNV-1a does.
func New(seed uint64, n int, parts ...string) *Roll {
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
	r := Roll(h)
	r.Next()
	return &r
}

// Next is a step of splitmix64 (https://prng.di.unimi.it/splitmix64.c).
func (r *Roll) Next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// share is from 0 up to 1.
func (r *Roll) share() float64 { return float64(r.Next()>>11) / (1 << 53) }

func (r *Roll) Chance(p float64) bool { return r.share() < p }

// Below is from 0 to n-1.
func (r *Roll) Below(n int) int { return int(r.Next() % uint64(n)) }

func (r *Roll) Between(least, most time.Duration) time.Duration {
	return least + time.Duration(r.Next()%uint64(most-least+1))
}

// Around is an exponential distribution: what comes at random has such gaps.
func (r *Roll) Around(mean time.Duration) time.Duration {
	return time.Duration(-math.Log(1-r.share()) * float64(mean))
}

// Usual is the longest usual latency.
const Usual = 60 * time.Millisecond

// Latency is one way through the network: mostly short, now and then not.
func (r *Roll) Latency() time.Duration {
	if r.Chance(0.02) {
		return r.Between(80*time.Millisecond, 900*time.Millisecond)
	}
	return r.Between(2*time.Millisecond, Usual)
}

// Odd keeps the ends of two times apart: two timers for one instant have no defined order.
const Odd = 137 * time.Microsecond

// Pick draws one of some values.
func Pick[T any](r *Roll, values ...T) T { return values[r.Below(len(values))] }
