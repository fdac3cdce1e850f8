package proctest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A Storage is where the replicas of one test meet.
type Storage struct {
	Setting   string          // SOLOIST_STORAGE
	Server    *azurite.Server // of a blob storage
	Container string          // of a blob storage, too
	Lease     time.Duration
	Store     interface {
		Read(context.Context, string) (store.Entry, error)
	}
}

// Directory is a storage in a directory.
func Directory(path string) Storage {
	return Storage{Setting: "dir:" + path, Lease: time.Second, Store: local.Dir{Path: path}}
}

// Azurite is a storage in an Azurite that some tests of this process share: in a
// container of its own, with the shortest lease that Azure gives. The test is
// skipped if there is none, or outside the nightly run.
func Azurite(t testing.TB) Storage {
	t.Helper()
	s := Storage{Server: azurite.Next(t), Container: fmt.Sprintf("fleet-%d", containers.Add(1)), Lease: 15 * time.Second}
	s.Setting = s.Server.ConnectionString()
	var err error
	if s.Store, err = azure.Open(azure.Config{ConnectionString: s.Setting, Container: s.Container}); err != nil {
		t.Fatal(err)
	}
	return s
}

// containers numbers them.
var containers atomic.Int64

// Env is what leads a program there.
func (s Storage) Env() []string {
	env := []string{"SOLOIST_STORAGE=" + s.Setting, "SOLOIST_LEASE=" + s.Lease.String()}
	if s.Container != "" {
		env = append(env, "SOLOIST_CONTAINER="+s.Container)
	}
	return env
}

// Record reads the record of a job, app/job.
func (s Storage) Record(t testing.TB, name string) (r record.Record) {
	t.Helper()
	e, err := s.Store.Read(t.Context(), name)
	if err == nil {
		err = json.Unmarshal(e.Record, &r)
	}
	if err != nil {
		t.Fatalf("the record of %s: %v", name, err)
	}
	return r
}
