package postgres_test

import (
	"testing"

	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

func open(t testing.TB, c postgres.Config) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return planted(t, s)
}

// The two instances share nothing but the server. The second one prepares no statements, as a pooler may demand.
func TestStore(t *testing.T) {
	url := start(t)
	one := open(t, postgres.Config{URL: url})
	other := open(t, postgres.Config{URL: url + " default_query_exec_mode=exec pool_max_conns=1"})
	storetest.Test(t, storetest.Harness{
		New: func(*testing.T) store.Store { return one },
		Two: func(*testing.T) (store.Store, store.Store) { return one, other },
	})
}
