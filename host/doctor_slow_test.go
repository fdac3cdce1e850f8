package host_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// slow takes its time for everything, and hears of no end of a context.
type slow struct {
	store.Store
	takes time.Duration
}

func (s slow) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	time.Sleep(s.takes)
	return s.Store.Create(ctx, name, record)
}

func (s slow) Read(ctx context.Context, name string) (store.Entry, error) {
	time.Sleep(s.takes)
	return s.Store.Read(ctx, name)
}

func (s slow) Examine(string, func() time.Time) (all []azure.Check) {
	for range 3 {
		all = append(all, azure.Check{Name: "check", Do: func(context.Context) azure.Finding {
			time.Sleep(min(s.takes, 4900*time.Millisecond))
			return azure.Finding{Text: "slow"}
		}})
	}
	return all
}

func (s slow) Delete(ctx context.Context, name string) error {
	time.Sleep(s.takes)
	return s.Store.(*local.Memory).Delete(ctx, name)
}

func (s slow) Lease(name, id string) store.Lease {
	return slowLease{s.Store.Lease(name, id), s.takes}
}

type slowLease struct {
	store.Lease
	takes time.Duration
}

func (l slowLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	time.Sleep(l.takes)
	return l.Lease.Acquire(ctx, d, etag)
}

func (l slowLease) Renew(ctx context.Context) (store.Revision, error) {
	time.Sleep(l.takes)
	return l.Lease.Renew(ctx)
}

func (l slowLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	time.Sleep(l.takes)
	return l.Lease.Write(ctx, etag, record)
}

func (l slowLease) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	time.Sleep(l.takes)
	return l.Lease.(store.Checkpointer).Save(ctx, etag, record, checkpoint)
}

func (l slowLease) Load(ctx context.Context, etag string) ([]byte, error) {
	time.Sleep(l.takes)
	return l.Lease.(store.Checkpointer).Load(ctx, etag)
}

func (l slowLease) Release(ctx context.Context) error {
	time.Sleep(l.takes)
	return l.Lease.Release(ctx)
}

// Whatever hangs, and however slowly all else goes, it takes less than a minute.
func TestDoctorIsBounded(t *testing.T) {
	environment(t)
	for takes, want := range map[time.Duration]string{
		time.Hour:               "FAIL  create       no answer within 5s",
		4900 * time.Millisecond: "warn  create",
		2 * time.Second:         "ok    create",
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			got := run(t.Context(), host.Program{Work: work(), Store: slow{&local.Memory{}, takes}}, "doctor")
			if took := time.Since(begin); took > time.Minute || !strings.Contains(got.out, want) {
				t.Errorf("%s: took %s, want %q:\n%s", takes, took, want, got.out)
			}
			time.Sleep(4 * time.Hour) // what was left behind ends
		})
	}
}

// A stop ends it at once, and the scratch entry goes away all the same.
func TestDoctorIsStopped(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		backend := &local.Memory{}
		ctx, cancel := context.WithTimeout(t.Context(), 7500*time.Millisecond) // in the checkpoint
		defer cancel()
		names := &namer{Store: slow{backend, time.Second}}
		got := run(ctx, host.Program{Work: work(), Store: names}, "doctor")
		if got.code != 1 || names.name == "" {
			t.Errorf("got %+v", got)
		}
		time.Sleep(time.Minute)
		if _, err := backend.Read(t.Context(), names.name); err == nil {
			t.Errorf("%s is left", names.name)
		}
	})
}

// namer tells the name of what was created last.
type namer struct {
	store.Store
	name string
}

func (n *namer) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	n.name = name
	return n.Store.Create(ctx, name, record)
}

func (n *namer) Delete(ctx context.Context, name string) error {
	return n.Store.(slow).Delete(ctx, name)
}

// hanging is a store whose check of credentials waits for a token that never
// comes.
type hanging struct{ *local.Memory }

func (hanging) Examine(string, func() time.Time) []azure.Check {
	return []azure.Check{{Name: "credentials", Do: func(ctx context.Context) azure.Finding {
		<-ctx.Done()
		return azure.Finding{Fails: true, Text: ctx.Err().Error()}
	}}}
}

// A cold token takes longer than an answer.
func TestDoctorGivesATokenItsTime(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		got := run(t.Context(), host.Program{Work: work(), Store: hanging{&local.Memory{}}}, "doctor")
		if took := time.Since(begin); took != 10*time.Second || !strings.Contains(got.out, "FAIL  credentials  no answer within 10s") {
			t.Errorf("after %s: got %+v", took, got)
		}
	})
}
