package queue_test

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/queue"
)

// A sink takes numbers, each once it gets a value from gate; nil: at once. What says that
// numbers were dropped is their count, negative.
type sink struct {
	got  []int
	gate chan struct{}
}

// queue returns a queue of at most three items that wait.
func (s *sink) queue() *queue.Queue[int] {
	return &queue.Queue[int]{Most: 3, Lost: func(n int) int { return -n }, Take: func(i int) {
		if s.gate != nil {
			<-s.gate
		}
		s.got = append(s.got, i)
	}}
}

func TestItemsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		q := s.queue()
		var want []int
		for i := range 100 {
			q.Add(i)
			synctest.Wait()
			want = append(want, i)
		}
		if !slices.Equal(s.got, want) {
			t.Errorf("got %d", s.got)
		}
	})
}

func TestDroppedItemsAreCountedAtTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{gate: make(chan struct{})}
		q := s.queue()
		q.Add(0)
		synctest.Wait() // it is being taken, and needs no room
		for i := range 5 {
			q.Add(i + 1)
		}
		s.gate <- struct{}{} // 0 is taken, and leaves room
		synctest.Wait()
		q.Add(6)
		for i := range 3 {
			q.Add(i + 7)
		}
		close(s.gate)
		synctest.Wait()
		if want := []int{0, 1, 2, 3, -2, 6, -3}; !slices.Equal(s.got, want) {
			t.Errorf("got %d, want %d", s.got, want)
		}
	})
}

// A receiver that ends its goroutine gets the next item all the same.
func TestGoexitStopsNoItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int
		q := &queue.Queue[int]{Most: 9, Lost: func(n int) int { return -n }, Take: func(i int) {
			got = append(got, i)
			runtime.Goexit()
		}}
		for i := range 3 {
			q.Add(i)
		}
		q.Wait(time.Minute)
		if want := []int{0, 1, 2}; !slices.Equal(got, want) {
			t.Errorf("got %d, want %d", got, want)
		}
	})
}

// The patience of Wait and the three minutes of Blocked count from when the item was begun
// that blocks.
func TestItemThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{gate: make(chan struct{})}
		q := s.queue()
		begin := time.Now()
		q.Wait(time.Hour) // for nothing
		q.Add(0)
		q.Add(1)
		for range 2 {
			if q.Wait(5 * time.Second); time.Since(begin) != 5*time.Second {
				t.Errorf("it has waited for %s", time.Since(begin))
			}
		}
		time.Sleep(2 * time.Minute)
		if s.gate <- struct{}{}; !q.Blocked().IsZero() {
			t.Error("blocked, after two minutes")
		}
		synctest.Wait()
		begun := time.Now()
		time.Sleep(3 * time.Minute)
		if got := q.Blocked(); !got.Equal(begun) {
			t.Errorf("blocked since %s, want %s", got, begun)
		}
		close(s.gate)
		if q.Wait(time.Hour); !q.Blocked().IsZero() || len(s.got) != 2 {
			t.Errorf("blocked since %s with no item left, and %d of 2 taken", q.Blocked(), len(s.got))
		}
	})
}
