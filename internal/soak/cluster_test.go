package soak_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
)

// A cluster is some places for replicas of one program around one service.
type cluster struct {
	script  *sim.Script
	ledger  *ledger
	bad     func(format string, args ...any)
	zone    *time.Location
	written map[string]calendar // by schedule
	slots   []*slot
	lines   sync.WaitGroup // of slots

	mu       sync.Mutex
	networks map[string]network             // by replica; of "", all others'
	programs map[string]map[string]calendar // by replica and job: what its program says
	asked    map[string]map[string]int      // what the service was asked for, by job and operation
	program  []task
	led      bool // the program has the singleton
	troubles map[string]int
	said     map[string]int // what replicas have warned of
	seats    map[string]*seat
	saved    map[string]progress // by job: what the service has of its checkpoint
	resumed  int                 // runs that went on from there
	here     int                 // runs of the job that runs everywhere
	office   office
	well     bool      // some replica is up, and reaches the service
	wellAt   time.Time // since then
}

func newCluster(over stretch, zone *time.Location, replicas int, bad func(format string, args ...any)) *cluster {
	l := &ledger{over: over, accounts: map[string]*account{}, bad: bad}
	c := &cluster{script: sim.NewScript(), ledger: l, bad: bad, zone: zone,
		networks: map[string]network{}, programs: map[string]map[string]calendar{}, asked: map[string]map[string]int{},
		written: map[string]calendar{}, troubles: map[string]int{}, said: map[string]int{}, seats: map[string]*seat{},
		saved: map[string]progress{}}
	c.script.Direct = c.carry
	c.script.Watch(c.watch)
	const room = 48 * time.Hour // ticks before and after the time that counts have outcomes too
	for _, r := range rules {
		c.written[r.text] = r.write(stretch{over.from.Add(-room), over.to.Add(room)}, zone)
	}
	for i := range replicas {
		s := &slot{cluster: c, name: string(rune('a' + i)), orders: make(chan func(), 1000)}
		c.slots = append(c.slots, s)
		c.lines.Go(s.serve)
	}
	return c
}

// end stops all replicas and waits for whatever they have started.
func (c *cluster) end() {
	for _, s := range c.slots {
		s.order(s.down)
		close(s.orders)
	}
	c.lines.Wait()
	c.script.End()
}

// A slot is the place of one replica after the other. What it is ordered to do,
// it does in turn.
type slot struct {
	*cluster
	name   string
	orders chan func()
	n      int
	closed bool // scaled down

	mu  sync.Mutex
	now *replica
}

func (s *slot) serve() {
	for order := range s.orders {
		order()
	}
}

func (s *slot) order(f func()) { s.orders <- f }

// current is its replica, nil if it has none that lives.
func (s *slot) current() *replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || s.now.crashed {
		return nil
	}
	return s.now
}

func (s *slot) set(r *replica) {
	s.mu.Lock()
	s.now = r
	s.mu.Unlock()
	s.look()
}

// up brings a replica up, if there is none.
func (s *slot) up() {
	s.closed = false
	if s.current() == nil {
		s.n++
		s.set(s.start(fmt.Sprintf("%s%d", s.name, s.n)))
	}
}

// down stops the replica, as SIGTERM does.
func (s *slot) down() {
	s.closed = true
	s.stop()
}

func (s *slot) stop() {
	if r := s.current(); r != nil {
		r.Stop()
		s.set(nil)
	}
}

// restart has the next replica come with the program of now.
func (s *slot) restart() {
	if s.closed {
		return
	}
	s.stop()
	time.Sleep(5 * time.Second)
	s.up()
}

// revive brings up another replica some time after a crash.
func (s *slot) revive() {
	if !s.closed && s.current() == nil {
		time.Sleep(s.now.away)
		s.up()
	}
}

// deploy restarts one replica after the other.
func (c *cluster) deploy(next *change) {
	c.count("deploy")
	c.change(next)
	for _, s := range c.slots {
		s.order(s.restart)
		time.Sleep(40 * time.Second)
	}
	if next != nil && next.name == removal { // the last replica that has it is gone by now
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ledger.accounts["legacy"].gone = time.Now()
	}
}

// change makes the next version of the program, nil for none.
func (c *cluster) change(next *change) {
	if next == nil {
		return
	}
	c.count("change of the program")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.program = next.apply(slices.Clone(c.program))
}

// lead has the next version have the singleton.
func (c *cluster) lead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.led = true
}

// heal ends all troubles that last, and has all replicas up.
func (c *cluster) heal() {
	c.meet(nil)
	for _, s := range c.slots {
		s.order(s.up)
	}
}

func (c *cluster) count(trouble string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.troubles[trouble]++
}

// look finds out whether somebody could work.
func (c *cluster) look() {
	well := slices.ContainsFunc(c.slots, func(s *slot) bool {
		r := s.current()
		return r != nil && c.reaches(r.name)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if well && !c.well {
		c.wellAt = time.Now()
	}
	c.well = well
}
