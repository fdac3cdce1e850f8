package lease

import (
	"sync"
	"time"
)

// A chore is done again and again, each time after a pause that it names itself. While it waits
// it has a timer and no goroutine: a replica may hold a thousand leases, and each garbage
// collection goes through the stacks of all goroutines.
type chore struct {
	do    func() (pause time.Duration, again bool)
	timer *time.Timer

	mu   sync.Mutex
	over bool           // stop was called
	busy sync.WaitGroup // Add only while over is false, so that Wait is safe
}

// newChore returns a chore that is done for the first time after pause.
func newChore(pause time.Duration, do func() (pause time.Duration, again bool)) *chore {
	c := &chore{do: do}
	c.mu.Lock() // the timer may fire at once
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(pause, c.run)
	return c
}

func (c *chore) run() {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.busy.Add(1)
	c.mu.Unlock()
	defer c.busy.Done()
	pause, again := c.do()
	c.mu.Lock()
	defer c.mu.Unlock()
	if again {
		c.timer.Reset(pause)
	}
}

// hasten has the chore done now. It may then be done twice at once.
func (c *chore) hasten() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.timer.Reset(0)
	}
}

// stop waits for a call of do that is under way. None begins after it.
func (c *chore) stop() {
	c.mu.Lock()
	c.over = true
	c.timer.Stop()
	c.mu.Unlock()
	c.busy.Wait()
}
