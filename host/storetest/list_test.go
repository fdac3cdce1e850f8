package storetest_test

import (
	"context"
	"errors"
	"sync"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// index is a Memory whose listing has a fault.
type index struct {
	*local.Memory
	list func(ctx context.Context, m *local.Memory, app string, f func(string, store.Entry) bool) error
}

func (s index) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	return s.list(ctx, s.Memory, app, f)
}

// indexes is a harness for a store with such a fault.
func indexes(list func(ctx context.Context, m *local.Memory, app string, f func(string, store.Entry) bool) error) storetest.Harness {
	return virtual(func() store.Store { return index{new(local.Memory), list} })
}

// similar lists all apps whose names begin like this one.
func similar(ctx context.Context, m *local.Memory, app string, f func(string, store.Entry) bool) error {
	return errors.Join(m.List(ctx, app, f), m.List(ctx, app+"-2", f))
}

// noneIsAnError has no listing of an app without entries.
func noneIsAnError(ctx context.Context, m *local.Memory, app string, f func(string, store.Entry) bool) error {
	n := 0
	err := m.List(ctx, app, func(name string, e store.Entry) bool { n++; return f(name, e) })
	if err == nil && n == 0 {
		err = errors.New("no such app")
	}
	return err
}

// unheededList lists whatever the context says.
func unheededList(ctx context.Context, m *local.Memory, app string, f func(string, store.Entry) bool) error {
	return m.List(context.WithoutCancel(ctx), app, f)
}

// rememberedList is the first listing, again and again.
func rememberedList() func(context.Context, *local.Memory, string, func(string, store.Entry) bool) error {
	var first sync.Map // by app
	return func(ctx context.Context, m *local.Memory, app string, f func(string, store.Entry) bool) error {
		names, all := []string{}, map[string]store.Entry{}
		err := m.List(ctx, app, func(name string, e store.Entry) bool {
			names, all[name] = append(names, name), e
			return true
		})
		old, seen := first.LoadOrStore(app, all)
		for _, name := range names {
			if e, ok := old.(map[string]store.Entry)[name]; seen && ok {
				e.Checkpoint = all[name].Checkpoint
				all[name] = e
			}
			if !f(name, all[name]) {
				break
			}
		}
		return err
	}
}

var listSuites = map[string]suite{
	"a listing has other apps": {harness: indexes(similar),
		fails: "List/apart", passes: "List/order"},
	"no entries are an error": {harness: indexes(noneIsAnError),
		fails: "List/none", passes: "List/order"},
	"a listing ignores its context": {harness: indexes(unheededList),
		fails: "List/context", passes: "List/order"},
	"an instance remembers a listing": {harness: twoOf(func(m *local.Memory) store.Store { return index{m, rememberedList()} }),
		fails: "List/twins", passes: "List/order"},
}
