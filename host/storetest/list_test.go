package storetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
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

// told is a harness for a store that lists entries which a function changes.
func told(change func(e *store.Entry)) storetest.Harness {
	return indexes(func(ctx context.Context, m *local.Memory, app string, f func(string, store.Entry) bool) error {
		return m.List(ctx, app, func(name string, e store.Entry) bool { change(&e); return f(name, e) })
	})
}

// backward lists the last entry first.
func backward(ctx context.Context, m *local.Memory, app string, f func(string, store.Entry) bool) error {
	var names []string
	var all []store.Entry
	err := m.List(ctx, app, func(name string, e store.Entry) bool {
		names, all = append(names, name), append(all, e)
		return true
	})
	for i := range slices.Backward(names) {
		if !f(names[i], all[i]) {
			break
		}
	}
	return err
}

// onwards does not stop.
func onwards(ctx context.Context, m *local.Memory, app string, f func(string, store.Entry) bool) error {
	return m.List(ctx, app, func(name string, e store.Entry) bool { f(name, e); return true })
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

// dotted lists the documents, too.
func dotted(ctx context.Context, m *local.Memory, app string, f func(string, store.Entry) bool) error {
	if e, err := m.Read(ctx, app+"/.document"); err == nil {
		f(app+"/.document", e)
	}
	return m.List(ctx, app, f)
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
	"a listing is backward": {harness: indexes(backward),
		fails: "List/order List/states", passes: "List/none"},
	"a listing does not stop": {harness: indexes(onwards),
		fails: "List/order", passes: "List/states List/apart"},
	"a listing has other apps": {harness: indexes(similar),
		fails: "List/apart", passes: "List/order"},
	"no entries are an error": {harness: indexes(noneIsAnError),
		fails: "List/none", passes: "List/order"},
	"a listing has documents": {harness: indexes(dotted),
		fails: "List/hidden", passes: "List/order"},
	"a listing ignores its context": {harness: indexes(unheededList),
		fails: "List/context", passes: "List/order"},
	"a listing knows no expiry": {harness: told(func(e *store.Entry) {
		if e.State == store.Expired {
			e.State = store.Leased
		}
	}), fails: "List/states", passes: "List/order List/broken"},
	"a listing knows no breaks": {harness: told(func(e *store.Entry) {
		if e.State == store.Breaking {
			e.State = store.Leased
		}
	}), fails: "List/broken", passes: "List/states"},
	"a listing has ETags of its own": {harness: told(func(e *store.Entry) { e.ETag = strings.ToLower(e.ETag) }),
		fails: "List/order List/written", passes: "List/none"},
	"a listing has no checkpoints": {harness: told(func(e *store.Entry) { e.Checkpoint = 0 }),
		fails: "List/checkpoints", passes: "List/written"},
	"a listing alters records": {harness: told(func(e *store.Entry) {
		e.Record = []byte(strings.ReplaceAll(string(e.Record), "<", "&lt;"))
	}), fails: "List/records", passes: "List/written"},
	"a listing is an old one": {harness: indexes(rememberedList()),
		fails: "List/written List/states", passes: "List/order"},
	"a listing has what was deleted": {harness: indexes(undead()),
		fails: "List/deleted", passes: "List/order"},
	"an instance remembers a listing": {harness: twoOf(func(m *local.Memory) store.Store { return index{m, rememberedList()} }),
		fails: "List/twins", passes: "List/order"},
}

// undead lists also what was deleted before.
func undead() func(context.Context, *local.Memory, string, func(string, store.Entry) bool) error {
	return func(ctx context.Context, m *local.Memory, app string, f func(string, store.Entry) bool) error {
		before := ""
		return m.List(ctx, app, func(name string, e store.Entry) bool {
			if strings.HasSuffix(name, "-2") && strings.HasSuffix(before, "-0") {
				f(strings.TrimSuffix(name, "2")+"1", e)
			}
			before = name
			return f(name, e)
		})
	}
}
