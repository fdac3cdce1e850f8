package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/internal/azurite"
	server "github.com/soloist-go/soloist/internal/postgres"
	"github.com/soloist-go/soloist/store"
)

// A server that is in trouble loses nothing, says clearly what is wrong, and is used again once it is well.
func TestTrouble(t *testing.T) {
	const most = 8
	var all []*pgx.Conn // of the test that opens too many
	for _, test := range []struct {
		name  string
		want  string // of the error
		harm  func(*testing.T, *server.Server)
		heal  func(*testing.T, *server.Server)
		reads bool // what only reads goes on
	}{
		{"killed", "failed to connect", func(_ *testing.T, at *server.Server) { at.Kill() },
			func(t *testing.T, at *server.Server) { must(t, at.Start()) }, false},
		{"hangs", "deadline exceeded", func(_ *testing.T, at *server.Server) { at.Signal("STOP") },
			func(_ *testing.T, at *server.Server) { at.Signal("CONT") }, false},
		{"takes no more connections", "the server has no connection left", func(t *testing.T, at *server.Server) {
			for len(all) < most { // a session of the store may not have ended yet
				c, err := pgx.Connect(t.Context(), at.Local())
				if err == nil {
					all = append(all, c)
				} else if !strings.Contains(err.Error(), "53300") {
					t.Fatal(err)
				}
			}
		}, func(t *testing.T, _ *server.Server) {
			for _, c := range all[1:] {
				must(t, c.Close(t.Context()))
			}
			until(t, all[0], "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'")
			must(t, all[0].Close(t.Context()))
		}, false},
		{"is read-only", "the server is read-only", func(t *testing.T, at *server.Server) { set(t, at, "default_transaction_read_only", "on") },
			func(t *testing.T, at *server.Server) { set(t, at, "default_transaction_read_only", "off") }, true},
		{"is full", "the server's disk is full", fill, empty, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			at := server.New(t, fmt.Sprint("max_connections=", most), "superuser_reserved_connections=0", "max_wal_senders=0")
			s := open(t, postgres.Config{URL: at.URL("")})
			long := make([]byte, store.MaxRecord)
			for i := range long {
				long[i] = byte('a' + rand.N(26)) // it does not compress well
			}
			e, err := s.Create(t.Context(), e1, []byte("first"))
			must(t, err)
			must(t, acquire(s, e, ours, time.Minute))
			if !test.reads {
				s.Reset() // for a new connection
			}
			test.harm(t, at)
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				_, err := s.Lease(e1, ours).Write(ctx, e.ETag, long)
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				for _, answer := range []error{fs.ErrPermission, fs.ErrNotExist, store.ErrChanged, store.ErrHeld, store.ErrLost} {
					if errors.Is(err, answer) {
						t.Errorf("%v is %v", err, answer)
					}
				}
				if _, err := s.Read(ctx, e1); test.reads && err != nil {
					t.Errorf("read: got %v", err)
				}
				cancel()
			}
			test.heal(t, at)
			recovers(t, func() error { _, err := s.Read(t.Context(), e1); return err })
			r, err := s.Lease(e1, ours).Write(t.Context(), e.ETag, []byte("second"))
			must(t, err)
			if got, err := s.Read(t.Context(), e1); err != nil || got.ETag != r.ETag || got.State != store.Leased {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// recovers makes a call until it succeeds: each connection that was lost costs one.
func recovers(t *testing.T, call func() error) {
	t.Helper()
	var err error
	for range 20 {
		if err = call(); err == nil {
			return
		}
	}
	t.Fatal("no recovery: ", err)
}

func set(t *testing.T, at *server.Server, name, value string) {
	t.Helper()
	query(t, at, "ALTER SYSTEM SET "+name+" = '"+value+"'")
	query(t, at, "SELECT pg_reload_conf()")
	c := session(t, at.Local())
	until(t, c, "SELECT setting = '"+value+"' FROM pg_settings WHERE name = '"+name+"'")
	must(t, c.Close(t.Context()))
}

func query(t *testing.T, at *server.Server, statement string) {
	t.Helper()
	if _, err := at.Query(statement); err != nil {
		t.Fatal(err)
	}
}

// fill moves the entries to a file system that is full, where the test may mount one. Else a trigger answers as the server
// does then.
func fill(t *testing.T, at *server.Server) {
	disk := at.Put(t, "disk", nil)
	must(t, os.Remove(disk))
	must(t, os.Mkdir(disk, 0o777))
	if exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk).Run() != nil {
		t.Log("no disk can be mounted: a trigger fails")
		query(t, at, `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$`)
		query(t, at, "CREATE TRIGGER full_disk BEFORE UPDATE ON soloist.entry EXECUTE FUNCTION full_disk()")
		return
	}
	must(t, exec.Command("chown", "--reference", at.Dir, disk).Run())
	query(t, at, "CREATE TABLESPACE small LOCATION '"+disk+"'")
	query(t, at, "ALTER TABLE soloist.entry SET TABLESPACE small")
	query(t, at, "CREATE TABLE filler (t text) TABLESPACE small")
	query(t, at, "ALTER TABLE filler ALTER t SET STORAGE PLAIN")
	if _, err := at.Query("INSERT INTO filler SELECT repeat('x', 7000) FROM generate_series(1, 1000)"); err == nil {
		t.Fatal("the disk is not full")
	}
	t.Cleanup(func() {
		_, err := at.Query("ALTER TABLE soloist.entry SET TABLESPACE pg_default")
		if err == nil {
			_, err = at.Query("DROP TABLESPACE small")
		}
		// Lazily: before version 15 a server keeps files of a dropped table open for a while.
		if err = errors.Join(err, exec.Command("umount", "-l", disk).Run()); err != nil {
			t.Error(err)
		}
	})
}

func empty(t *testing.T, at *server.Server) {
	query(t, at, "DROP TABLE IF EXISTS filler")
	query(t, at, "DROP TRIGGER IF EXISTS full_disk ON soloist.entry")
}

// The certificate of the server is checked, and its password never shown.
func TestSecureConnection(t *testing.T) {
	cert, key := azurite.Certificate(t, time.Now().Add(time.Hour), "127.0.0.1")
	other, _ := azurite.Certificate(t, time.Now().Add(time.Hour), "127.0.0.1")
	elsewhere, elsewhereKey := azurite.Certificate(t, time.Now().Add(time.Hour), "elsewhere.example")
	at := server.New(t)
	query(t, at, "CREATE ROLE app LOGIN PASSWORD 's3cretly'")
	query(t, at, "GRANT CREATE ON DATABASE postgres TO app")
	files := func(cert, key string) (settings []string) {
		for setting, file := range map[string]string{"ssl_cert_file": cert, "ssl_key_file": key} {
			b, err := os.ReadFile(file)
			must(t, err)
			settings = append(settings, setting+"="+at.Put(t, setting, b))
		}
		return append(settings, "ssl=on")
	}
	hba := at.Put(t, "hba", []byte("local all soloist trust\nhostssl all app 127.0.0.1/32 scram-sha-256\n"))
	at.Kill()
	must(t, at.Start(append(files(cert, key), "hba_file="+hba)...))
	url := strings.Replace(at.URL(""), "soloist@", "app:s3cretly@", 1)
	secure := strings.Replace(url, "disable", "verify-full", 1)
	life(t, open(t, postgres.Config{URL: secure + "&sslrootcert=" + cert}))
	for _, test := range []struct {
		name, url, text, advice string
		want                    error // nil: none
	}{
		{"another authority", secure + "&sslrootcert=" + other, "certificate signed by unknown authority", "sslrootcert=FILE", nil},
		{"no authority", secure, "certificate signed by unknown authority", "sslrootcert=FILE", nil},
		{"another password", strings.Replace(secure, "s3cretly", "s3cretly0", 1) + "&sslrootcert=" + cert, "password authentication failed", "check user and password", fs.ErrPermission},
		{"no password", strings.Replace(secure, ":s3cretly", "", 1) + "&sslrootcert=" + cert, "password authentication failed", "check user and password", fs.ErrPermission},
		{"not encrypted", url, "does not admit this role, password or address", "pg_hba.conf", fs.ErrPermission},
	} {
		refuses(t, test.name, test.url, test.text, test.advice, test.want)
	}
	at.Kill()
	must(t, at.Start(files(elsewhere, elsewhereKey)...))
	refuses(t, "the server of another name", secure+"&sslrootcert="+elsewhere, "certificate", "sslrootcert=FILE", nil)
}

// refuses checks the error of a call over a connection that is refused.
func refuses(t *testing.T, name, url, text, advice string, want error) {
	t.Helper()
	s := open(t, postgres.Config{URL: url})
	_, err := s.Read(t.Context(), e1)
	gotText, gotAdvice := s.Explain(err)
	if !strings.Contains(gotText, text) || !strings.Contains(gotAdvice, advice) || errors.Is(err, fs.ErrPermission) != (want != nil) {
		t.Errorf("%s: got %s, advice %s, want %s, advice %s", name, gotText, gotAdvice, text, advice)
	}
	if strings.Contains(err.Error()+gotText+gotAdvice, "s3cretly") {
		t.Errorf("%s: %v shows the password", name, err)
	}
}

// The server dies in the commit of an outcome, after it has written it or before. The answer is unclear; the replica reads
// what became of it, and the tick has one outcome.
func TestKilledInCommit(t *testing.T) {
	for _, written := range []bool{true, false} {
		t.Run(map[bool]string{true: "after the write", false: "before the write"}[written], func(t *testing.T) {
			t.Parallel()
			at := server.New(t)
			s := open(t, postgres.Config{URL: at.URL("")})
			began, harmed := make(chan struct{}), make(chan struct{})
			starts := 0
			job := soloist.Job{Name: "report", Schedule: "@every 1s", Do: func(ctx context.Context, _ *soloist.Run) error {
				starts++
				close(began)
				select {
				case <-harmed:
				case <-ctx.Done(): // of a test that has failed
				}
				return nil
			}}
			scheduler := &soloist.Scheduler{Store: s, App: "app", Replica: "r1", Jobs: []soloist.Job{job}, Logger: slog.New(slog.DiscardHandler)}
			ended := make(chan error, 1)
			go func() {
				_, err := scheduler.RunDue(t.Context(), soloist.Wake{Tick: time.Now().Truncate(time.Second)})
				ended <- err
			}()
			select {
			case <-began:
			case err := <-ended:
				t.Fatal("nothing has run: ", err)
			}
			if written { // no standby has this name: commits wait, with all that they have written
				set(t, at, "synchronous_standby_names", "nobody")
			} else {
				lockRow(t, at)
			}
			close(harmed)
			waits(t, session(t, at.Local()), ended)
			at.Kill()
			must(t, at.Start("synchronous_standby_names="))
			must(t, <-ended)
			counts := run(t, session(t, at.Local()), "SELECT ((record::jsonb->'counts') - '{missed,skipped}'::text[])::text FROM soloist.entry WHERE name = 'app/report'")
			if counts != `{"succeeded": 1}` || starts != 1 { // ticks came due meanwhile
				t.Errorf("outcomes %s of %d starts, want one that succeeded", counts, starts)
			}
		})
	}
}

// lockRow has all writes of entries wait.
func lockRow(t *testing.T, at *server.Server) {
	tx, err := session(t, at.Local()).Begin(t.Context())
	must(t, err)
	run(t, tx, "SELECT name FROM soloist.entry FOR UPDATE")
}
