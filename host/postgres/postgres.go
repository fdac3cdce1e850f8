// Package postgres keeps entries in a PostgreSQL database, version 14 or later.
//
//	program := host.Program{Work: work, OpenStore: postgres.OpenURL} // SOLOIST_STORAGE=postgres://...
//
// An entry, a document and a log are a row each, in a schema of their own, which the first call makes if it is
// missing. Each call is one statement in a transaction of its own, so one round trip, and repeats nothing; calls of one
// kind that have to wait for a connection share a statement. The first calls of a process also ask for the version of
// the schema, and a new connection prepares each statement once.
//
// A statement that changes an entry locks its row first, then reads the server's clock, then judges, and then writes.
// In this order it judges by what is true at the moment of the write, however long it had to wait for the row.
//
// # What is not promised
//
//   - The right length of a lease while the server's clock is being set.
//   - That a row outlasts what the server does not, such as a fail-over to a standby that has not got the last
//     writes, a crash with synchronous_commit off, or a restored backup. A record that went back in time can start a tick twice.
package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist/store"
)

// Config says where the entries are. One of URL and Pool is required.
type Config struct {
	// URL is postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full, or anything else that
	// pgxpool.ParseConfig takes. Unless it says otherwise, statements end after five seconds
	// (statement_timeout), and a server that is read-only is passed over (target_session_attrs), as a
	// standby's records are old.
	URL string

	// Pool is used in place of URL. Its owner closes it. A pool of one connection is enough. Stores may share it. The first
	// call fails if its sessions have another default_transaction_isolation than read committed.
	Pool *pgxpool.Pool

	// Schema has the tables. Empty: soloist. Apps may share it.
	Schema string

	// Prefix begins the name of each table. Empty: none.
	Prefix string

	// Password is asked for a password before each new connection, such as the token of an identity.
	// Nil: URL has it, or nobody needs one. It is not used with Pool.
	Password func(ctx context.Context) (string, error)
}

// A Store is a schema of a database. [Open] makes one.
type Store struct {
	pool   *pgxpool.Pool
	owned  bool // Close closes the pool
	schema string
	prefix string
	sql    statements
	ready  atomic.Bool // the schema is there, in our version

	gathering gathering
	begin     string        // of a transaction, with %s for its nonce
	room      chan struct{} // has a place for each transaction that may be open

	news news
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Remover = (*Store)(nil)
)

// OpenURL opens the store of a URL, in the schema soloist, as OpenStore of a [github.com/soloist-go/soloist/host.Program].
// The parameters soloist_schema and soloist_prefix of the URL name another schema and a prefix.
func OpenURL(url string) (store.Store, error) { return Open(Config{URL: url}) }

// Open checks the configuration and returns the store. It does not connect.
func Open(c Config) (*Store, error) {
	s := &Store{pool: c.Pool, schema: c.Schema, prefix: c.Prefix}
	if (c.URL == "") == (c.Pool == nil) {
		return nil, errors.New("postgres: want a URL or a pool, and not both")
	}
	s.begin = begin
	if c.Pool == nil {
		settings, limited, err := c.parse()
		if err != nil {
			return nil, err
		}
		take := func(parameter string, field *string) {
			if value, ok := settings.ConnConfig.RuntimeParams[parameter]; ok {
				*field = value
				delete(settings.ConnConfig.RuntimeParams, parameter)
			}
		}
		take("soloist_schema", &s.schema)
		take("soloist_prefix", &s.prefix)
		if s.pool, err = pgxpool.NewWithConfig(context.Background(), settings); err != nil {
			return nil, fmt.Errorf("postgres: %w", err)
		}
		s.owned = true
		if limited {
			s.begin += unlimited
		}
	}
	if s.schema == "" {
		s.schema = "soloist"
	}
	if err := checkNames(s.schema, s.prefix); err != nil {
		s.Close()
		return nil, err
	}
	s.news = newsOf(s.schema, s.prefix)
	s.sql = statementsOf(tablesOf(s.schema, s.prefix), s.news.tells())
	s.room = roomOf(s.pool)
	return s, nil
}

// What a connection has if its URL does not say otherwise.
const (
	connectTime   = 5 * time.Second
	statementTime = 5 * time.Second // a sixth of the default lease
)

// parse returns the settings of the pool, and whether the limit of its statements is ours. Its errors do not show the URL,
// which has a password.
func (c Config) parse() (p *pgxpool.Config, limited bool, err error) {
	p, err = pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, false, errors.New("postgres: the URL (not shown) cannot be used" + why(err) +
			": want postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full, in which a special character of the password is %XX")
	}
	if p.ConnConfig.ConnectTimeout == 0 {
		p.ConnConfig.ConnectTimeout = connectTime
	}
	if p.ConnConfig.ValidateConnect == nil { // a standby would show records of before
		p.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	preset := map[string]string{
		"application_name":              "soloist",
		"statement_timeout":             strconv.FormatInt(statementTime.Milliseconds(), 10),
		"default_transaction_isolation": "read committed",
	}
	_, given := p.ConnConfig.RuntimeParams["statement_timeout"]
	for name, value := range preset {
		if _, given := p.ConnConfig.RuntimeParams[name]; !given {
			p.ConnConfig.RuntimeParams[name] = value
		}
	}
	// A ping would be a second round trip of each call after a second without one. A look whether the server has closed
	// the connection costs none.
	p.ShouldPing = func(_ context.Context, c pgxpool.ShouldPingParams) bool {
		return c.IdleDuration > time.Second && c.Conn.PgConn().CheckConn() != nil //nolint:staticcheck // Ping is a round trip
	}
	if c.Password != nil {
		p.BeforeConnect = func(ctx context.Context, conn *pgx.ConnConfig) error {
			password, err := c.Password(ctx)
			if err != nil {
				return &passwordError{err}
			}
			conn.Password = password
			return nil
		}
	}
	return p, !given, nil
}

// Close closes the connections, unless the pool was given.
func (s *Store) Close() {
	if s.owned {
		s.pool.Close()
	}
}

// String says which database and schema it is, for logs. It has no secrets.
func (s *Store) String() string {
	c := s.pool.Config().ConnConfig
	at := c.Host
	if !strings.HasPrefix(c.Host, "/") { // not a directory with a socket
		at = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	}
	return fmt.Sprintf("PostgreSQL at %s, database %s, schema %s", at, c.Database, s.place())
}

// place is the schema, with the prefix if there is one.
func (s *Store) place() string {
	if s.prefix == "" {
		return s.schema
	}
	return s.schema + ", tables " + s.prefix + "*"
}

// Limits returns 1 and 60 seconds: a renewal is one small write.
func (s *Store) Limits() (shortest, longest time.Duration) { return time.Second, time.Minute }

// Create implements [store.Store].
func (s *Store) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	if err := checkRecord(create, name, record); err != nil {
		return store.Entry{}, err
	}
	e := store.Entry{Record: append([]byte(nil), record...), State: store.Available}
	err := s.row(ctx, create, name, s.sql.create, []any{name, string(record)}, &e.ETag, &e.Date)
	if errors.Is(err, pgx.ErrNoRows) {
		err = refuse(create, name, fs.ErrExist)
	}
	if err != nil {
		return store.Entry{}, err
	}
	s.news.tell(name)
	return e, nil
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, name string) (store.Entry, error) {
	var e store.Entry
	var etag, record, state *string
	var checkpoint *int64
	if err := s.row(ctx, read, name, s.sql.read, []any{name}, &e.Date, &etag, &record, &state, &checkpoint); err != nil {
		return store.Entry{}, err
	}
	if etag == nil {
		return e, refuse(read, name, fs.ErrNotExist)
	}
	e.ETag, e.Record, e.State, e.Checkpoint = *etag, []byte(*record), store.LeaseState(*state), *checkpoint
	return e, nil
}

// Remove implements [store.Remover].
func (s *Store) Remove(ctx context.Context, name, etag string) error {
	_, err := s.change(ctx, remove, name, s.sql.remove, etag)
	return err
}

// Delete removes an entry that no replica holds, whatever its ETag; otherwise store.ErrLost. It is for entries of no
// job, such as that of doctor.
func (s *Store) Delete(ctx context.Context, name string) error {
	_, err := s.change(ctx, remove, name, s.sql.delete)
	return err
}

// row runs a statement that returns at most one row: pgx.ErrNoRows.
func (s *Store) row(ctx context.Context, o op, name, statement string, args []any, dest ...any) error {
	if err := s.prepare(ctx, o, name); err != nil {
		return err
	}
	return s.translate(o, name, s.pool.QueryRow(ctx, statement, args...).Scan(dest...))
}

func checkRecord(o op, name string, record []byte) error {
	if len(record) > store.MaxRecord {
		return tooLong(o, name, "record", len(record), store.MaxRecord)
	}
	if bytes.IndexByte(record, 0) >= 0 { // in the simple protocol the server's answer would look like one of unclear outcome
		return fmt.Errorf("postgres: %s %s: a record with a zero byte, which no text of PostgreSQL has", o, name)
	}
	return nil
}

func checkSaved(o op, name string, record, checkpoint []byte) error {
	if n := len(checkpoint); n > store.MaxCheckpoint {
		return tooLong(o, name, "checkpoint", n, store.MaxCheckpoint)
	}
	return checkRecord(o, name, record)
}

func tooLong(o op, name, what string, n, most int) error {
	return fmt.Errorf("postgres: %s %s: a %s of %d bytes: at most %d are allowed", o, name, what, n, most)
}
