package storetest

import "context"

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
	lengths // of leases: two different ones
)

// Deleter is the power to remove an entry whose lease is free: otherwise
// store.ErrLost, and fs.ErrNotExist. Like [store.LeaseBreaker], [store.ConditionalBreaker], [store.Documenter],
// [store.Lister], [store.Appender], [store.Remover], and [store.Checkpointer] of its leases, it is tested in a store
// that has it; otherwise the tests that need it are logged as not covered. A [store.ConditionalBreaker] that is no
// [store.LeaseBreaker] fails.
type Deleter interface {
	Delete(ctx context.Context, name string) error
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}
