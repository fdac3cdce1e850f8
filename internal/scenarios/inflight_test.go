package scenarios_test

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
)

// An inflight is a request that the story waits for, or the reply to one: the
// network keeps it until the story says what becomes of it.
type inflight struct {
	s           *story
	what        string // as the story describes it
	replica, op string
	number      int  // so many that fit go before
	all         bool // those that follow are the story's too, and share the outcome of the first
	reply       bool

	caught  bool
	here    chan struct{} // closed: the network has it
	decided bool
	outcome chan struct{} // closed: it is decided
	arrives bool
}

var address = regexp.MustCompile(`^(the reply to |the replies to )?(all )?(\w+)'s (?:(second|third) )?(\w+(?: back)?)$`)

// hold keeps the next request that is described so: "a's claim", "the reply to
// a's second renew", "all a's renew".
func (s *story) hold(what string) *inflight {
	s.Helper()
	m := address.FindStringSubmatch(what)
	if m == nil {
		s.Fatalf("nobody knows what %q is", what)
	}
	l := &inflight{s: s, what: what, replica: m[3], op: m[5], all: m[2] != "", reply: m[1] != "", here: make(chan struct{}), outcome: make(chan struct{}),
		number: map[string]int{"second": 1, "third": 2}[m[4]]}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inflight = append(s.inflight, l)
	return l
}

// lose has it lost: whoever sent it waits until its time is up.
func (s *story) lose(what string) *inflight {
	s.Helper()
	l := s.hold(what)
	l.settle(false)
	return l
}

// wait waits until the network has it.
func (l *inflight) wait() *inflight {
	l.s.Helper()
	select {
	case <-l.here:
	case <-time.After(3 * time.Hour):
		l.s.Fatalf("there was nothing like %s for hours", l.what)
	}
	return l
}

// deliver lets it arrive now, whether anybody still waits or not.
func (l *inflight) deliver() { l.settle(true) }

// over has those that follow arrive again.
func (s *story) over(l *inflight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inflight = slices.DeleteFunc(s.inflight, func(o *inflight) bool { return o == l })
}

func (l *inflight) settle(arrives bool) {
	if !l.decided {
		l.decided, l.arrives = true, arrives
		close(l.outcome)
	}
}

// expected is the inflight that a request is, nil if none.
func (s *story) expected(p *sim.RPC) *inflight {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.inflight {
		if l.replica != p.Replica() || l.op != p.Op() || l.caught && !l.all {
			continue
		}
		if l.number > 0 {
			l.number--
			continue
		}
		if !l.caught {
			l.caught = true
			close(l.here)
		}
		return l
	}
	return nil
}

// carry is the network of a story.
func (s *story) carry(ctx context.Context, p *sim.RPC) (*http.Response, error) {
	s.mu.Lock()
	direct := s.networks[p.Replica()]
	if direct == nil {
		direct = s.networks[""]
	}
	s.mu.Unlock()
	if direct != nil {
		return direct(ctx, p)
	}
	l := s.expected(p)
	switch {
	case l == nil:
		return p.Go(ctx)
	case l.reply:
		resp, err := p.There(ctx)
		if err != nil || !l.comes(ctx) {
			return nil, ctx.Err()
		}
		return p.Back(ctx, resp)
	}
	applied := make(chan *http.Response, 1)
	s.late.Go(func() {
		if <-l.outcome; l.arrives {
			applied <- p.Apply()
		}
	})
	select {
	case resp := <-applied:
		return p.Back(ctx, resp)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// comes waits for a request that may never come.
func (l *inflight) comes(ctx context.Context) bool {
	select {
	case <-l.outcome:
	case <-ctx.Done():
		return false
	}
	if !l.arrives {
		<-ctx.Done()
	}
	return l.arrives
}
