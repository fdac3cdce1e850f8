package storetest

// A property is one test.
type property struct {
	name  string
	needs need
	body  func(c *check)
}

// need is a set of powers.
type need int

const (
	nothing need = 0
	breaker need = 1 << (iota - 1)
	conditional
	deleter
	remover
	keeper
	documenter
	lister
	appender
	twins   // of the harness
	lengths // of leases: two that can be told apart
)
