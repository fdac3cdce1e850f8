package postgres_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist/host/postgres"
	server "github.com/soloist-go/soloist/internal/postgres"
	"github.com/soloist-go/soloist/store"
)

// Whatever is wrong with a URL, its password is not shown.
func TestWrongURLs(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u:s3cretly@h:x/db":                                         "invalid port",
		"postgres://u:s3cr/etly@h/db":                                          "cannot be used",
		"postgres://u:s3cret%ly@h/db":                                          "failed to parse as URL",
		"postgres://u:s3cretly@h/db?sslmode=maybe":                             "failed to configure TLS",
		"host=h password=s3cretly port=s3cretly":                               "cannot be used",
		"host=h password='s3cretly":                                            "cannot be used",
		"postgres://u:s3cretly@h/db?soloist_schema=%FF":                        "the schema is",
		"postgres://u:s3cretly@h/db?soloist_prefix=" + strings.Repeat("x", 56): "at most 55 bytes",
		"": "want a URL or a pool",
	} {
		_, err := postgres.OpenURL(url)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", url, err, want)
		} else if strings.Contains(err.Error(), "s3cr") || strings.Contains(err.Error(), "tly@") {
			t.Errorf("%q: %v shows the password", url, err)
		}
	}
}

// An error of the way to the server, or of the server, is none of the answers of a store, but for a right that is missing.
func TestTroubleIsUnclear(t *testing.T) {
	url := server.Start(t)
	life(t, open(t, postgres.Config{URL: url}))
	for _, test := range []struct {
		name, url, text, advice string
		want                    error // nil: none
		password                func(context.Context) (string, error)
	}{
		{name: "no server", url: "host=/nowhere user=u password=s3cretly", text: "no such file", advice: "check host and port"},
		{name: "nobody listens", url: "host=127.0.0.1 port=1 user=u password=s3cretly sslmode=disable", text: "connection refused", advice: "check host and port"},
		{name: "no such role", url: strings.Replace(url, "user=soloist", "user=nobody password=s3cretly", 1), text: "the server does not admit this role", advice: "pg_hba.conf", want: fs.ErrPermission},
		{name: "no such database", url: strings.Replace(url, "dbname=postgres", "dbname=nowhere", 1), text: "there is no such database"},
		{name: "read-only", url: url + " default_transaction_read_only=on", text: "the server is read-only, as a standby is"},
		{name: "read-only, wanted", url: url + " default_transaction_read_only=on target_session_attrs=read-only", text: "the server is read-only, as a standby is"},
		{name: "no token", url: url, text: "no password or token: s0mething", password: func(context.Context) (string, error) { return "", errors.New("s0mething") }},
		{name: "a token that is no file", url: url, text: "no password or token", password: func(context.Context) (string, error) { return "", fs.ErrNotExist }},
		{name: "slow", url: url + " statement_timeout=1", text: "the server has cancelled the statement"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, postgres.Config{URL: test.url, Password: test.password})
			var err error
			for err == nil { // a statement may be fast enough
				_, err = s.WriteDocument(t.Context(), "app/.trouble", "", make([]byte, store.MaxDocument))
				if errors.Is(err, store.ErrChanged) {
					_, err = s.ReadDocument(t.Context(), "app/.trouble", "")
				}
			}
			text, advice := s.Explain(err)
			if !strings.Contains(text, test.text) || !strings.Contains(advice, test.advice) {
				t.Errorf("got %s, advice %s, want %s, advice %s", text, advice, test.text, test.advice)
			}
			for _, sentinel := range []error{fs.ErrPermission, fs.ErrNotExist, fs.ErrExist, store.ErrChanged, store.ErrHeld, store.ErrLost} {
				if got := errors.Is(err, sentinel); got != (sentinel == test.want) {
					t.Errorf("%v is %v: %t", err, sentinel, got)
				}
			}
			if strings.Contains(err.Error()+text+advice, "s3cretly") {
				t.Errorf("%v shows the password", err)
			}
		})
	}
}

// What the server has ended because it was idle for too long is said with the setting and what to do.
func TestIdleForTooLong(t *testing.T) {
	at := server.New(t)
	life(t, open(t, postgres.Config{URL: at.Local()})) // the schema
	for name, test := range map[string]struct {
		settings, want string
		f              func(t *testing.T, s *postgres.Store, idle func()) error
	}{
		"session": {"&idle_session_timeout=10", "the server has ended a session that was idle: the next call connects again; idle_session_timeout",
			func(t *testing.T, s *postgres.Store, idle func()) error {
				_, err := s.Read(t.Context(), e1)
				if errors.Is(err, fs.ErrNotExist) { // else it was idle already, on a busy machine
					idle()
					_, err = s.Read(t.Context(), e1)
				}
				return err
			}},
		"transaction": {"&idle_in_transaction_session_timeout=10", "nothing of it is kept: do what takes long before it, or raise idle_in_transaction_session_timeout",
			func(t *testing.T, s *postgres.Store, idle func()) error {
				_, err := s.Lease(e1, ours).(store.Transactor).Transact(t.Context(), func(_ any, write store.TransactionWrite) error {
					idle()
					return write(t.Context(), "", []byte("second"), nil)
				})
				return err
			}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := pgxpool.ParseConfig(at.URL("") + test.settings)
			must(t, err)
			c.ConnConfig.RuntimeParams["application_name"] = name
			c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
			pool, err := pgxpool.NewWithConfig(t.Context(), c)
			must(t, err)
			defer pool.Close()
			err = test.f(t, open(t, postgres.Config{Pool: pool}), func() {
				until(t, session(t, at.Local()), "NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = $1)", name)
			})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// After the server has ended all connections, a store goes on by itself.
func TestRecovers(t *testing.T) {
	url := server.Start(t)
	s, c := open(t, postgres.Config{URL: url + " pool_max_conns=2"}), session(t, url)
	e, err := s.Create(t.Context(), e1, []byte("first"))
	must(t, err)
	for range 3 {
		run(t, c, "SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
		failed := 0
		for errors.Is(err, nil) || failed < 3 {
			if _, err = s.Read(t.Context(), e1); err == nil {
				break
			}
			failed++
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		must(t, err)
		must(t, acquire(s, e, ours, time.Minute))
	}
}

// The password is asked for before each connection, so that a token can expire.
func TestPasswordIsAskedForAgain(t *testing.T) {
	url := server.Start(t)
	asked := 0
	s := open(t, postgres.Config{URL: url + " pool_max_conns=1", Password: func(context.Context) (string, error) { asked++; return "token", nil }})
	for range 2 {
		_, err := s.Read(t.Context(), e1)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		s.Reset()
	}
	if asked != 2 {
		t.Errorf("asked %d times for two connections", asked)
	}
}

func TestDoctorFinds(t *testing.T) {
	url := server.Start(t)
	for _, test := range []struct{ name, url, want, advice string }{
		{"all is well", url, "connection: as soloist to database postgres at", ""},
		{"version", url, "server: PostgreSQL ", ""},
		{"clock", url, "clock: within a second of the server's", ""},
		{"schema", url + " soloist_schema=made", "schema: made, version 1", ""},
		{"durable", url + " fsync=on", "durability: synchronous_commit is on, fsync off; standbys: 0", "after a crash of the machine the database may be damaged"},
		{"a server to read from", url + " default_transaction_read_only=on", "FAIL connection: ", "name all servers in the URL"},
		{"a server to read from, wanted", url + " default_transaction_read_only=on target_session_attrs=read-only", "FAIL server: PostgreSQL", "see default_transaction_read_only"},
		{"nobody", "host=127.0.0.1 port=1 sslmode=disable", "FAIL connection: ", "check host and port"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, postgres.Config{URL: strings.Replace(test.url, " fsync=on", "", 1)})
			var found []string
			for _, c := range s.Examine("app/.doctor", time.Now) {
				f := c.Do(t.Context())
				mark := ""
				if f.Fails {
					mark = "FAIL "
				}
				found = append(found, mark+c.Name+": "+f.Text+" | "+f.Advice)
				if f.Fails {
					break
				}
			}
			for _, line := range found {
				if strings.HasPrefix(line, test.want) && strings.Contains(line, test.advice) {
					return
				}
			}
			t.Errorf("want %q, advice %q in\n%s", test.want, test.advice, strings.Join(found, "\n"))
		})
	}
	late := func() time.Time { return time.Now().Add(time.Hour) }
	if f := open(t, postgres.Config{URL: url}).Examine("", late)[2].Do(t.Context()); !strings.Contains(f.Text, "ahead of the server") || f.Advice == "" || f.Fails {
		t.Errorf("an hour ahead: got %+v", f)
	}
}
