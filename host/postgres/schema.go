package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// tables are the names of the tables, quoted.
type tables struct {
	schema, version, entry, document, log, chunk string
}

func tablesOf(schema, prefix string) tables {
	in := func(table string) string { return pgx.Identifier{schema, prefix + table}.Sanitize() }
	return tables{pgx.Identifier{schema}.Sanitize(), in("version"), in("entry"), in("document"), in("log"), in("chunk")}
}

// mostName is how long a name can be in bytes: the server would cut a longer one.
const mostName = 63

func checkNames(schema, prefix string) error {
	type rule struct{ what, text, longest string }
	for _, name := range []rule{{"schema", schema, schema}, {"prefix", prefix, prefix + "document"}} {
		if !utf8.ValidString(name.text) || strings.ContainsRune(name.text, 0) || len(name.longest) > mostName {
			return fmt.Errorf("postgres: the %s is %.80q: want UTF-8 without a zero byte, at most %d bytes",
				name.what, name.text, mostName-len(name.longest)+len(name.text))
		}
	}
	return nil
}

// A migration makes the next version of the schema. One that has been published is never changed.
type migration struct {
	sql    string
	serves int // the oldest version whose programs can use the schema after it, so that a deployment can be rolled back
}

// migrations make the schema.
//
// Indexes have no column that changes, and each page keeps room, so an update finds it on the page of the row and
// leaves the indexes alone (https://www.postgresql.org/docs/current/storage-hot.html). The short vacuum thresholds are
// for tables of few rows that change often. A record stays in its row, as it is written each time; the checkpoint does
// not, so a write leaves it where it is. The collation C orders names by their bytes.
var migrations = []migration{{serves: 1, sql: `
CREATE TABLE {entry} (
	name text COLLATE "C" PRIMARY KEY,
	etag uuid NOT NULL DEFAULT gen_random_uuid(),
	record text NOT NULL,
	checkpoint bytea NOT NULL DEFAULT '',
	id uuid,
	length interval,
	ends timestamptz NOT NULL DEFAULT '-infinity',
	broken boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.05,
	toast.autovacuum_vacuum_threshold = 200, toast.autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE {entry} ALTER record SET STORAGE MAIN;
CREATE TABLE {document} (
	name text COLLATE "C" PRIMARY KEY,
	etag uuid NOT NULL DEFAULT gen_random_uuid(),
	body bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.05,
	toast.autovacuum_vacuum_threshold = 200, toast.autovacuum_vacuum_scale_factor = 0.05);
CREATE TABLE {log} (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name text COLLATE "C" NOT NULL UNIQUE,
	size bigint NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE TABLE {chunk} (
	log bigint NOT NULL REFERENCES {log} ON DELETE CASCADE,
	start bigint NOT NULL,
	bytes bytea NOT NULL,
	PRIMARY KEY (log, start)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
`}}

// versionTable is made with the first migration.
const versionTable = `
CREATE TABLE IF NOT EXISTS {version} (
	version integer PRIMARY KEY,
	serves integer NOT NULL,
	since timestamptz NOT NULL DEFAULT now()
);
`

// SQL returns the statements that make the schema, for an owner to run where the program's role may not create it. That
// role gets what it needs.
func (s *Store) SQL(role string) string {
	var text strings.Builder
	text.WriteString("CREATE SCHEMA IF NOT EXISTS {schema};" + versionTable)
	for i, m := range migrations {
		fmt.Fprintf(&text, "%sINSERT INTO {version} (version, serves) VALUES (%d, %d);\n", m.sql, i+1, m.serves)
	}
	text.WriteString(`GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {version}, {entry}, {document}, {log}, {chunk} TO {role};
`)
	return tablesOf(s.schema, s.prefix).fill(text.String(), "{role}", pgx.Identifier{role}.Sanitize())
}

// fill puts the names of the tables into a text, and more.
func (t tables) fill(text string, more ...string) string {
	return strings.NewReplacer(append(more, "{schema}", t.schema, "{version}", t.version, "{entry}", t.entry,
		"{document}", t.document, "{log}", t.log, "{chunk}", t.chunk)...).Replace(text)
}

// oldest is the first major version of PostgreSQL that this package knows.
const oldest = 14

// prepare makes the schema if it is missing or old. It asks once in a process.
func (s *Store) prepare(ctx context.Context, o op, name string) error {
	if s.ready.Load() {
		return nil
	}
	err := s.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return s.migrate(ctx, c.Conn()) })
	if err != nil {
		return s.translate(o, name, err)
	}
	s.ready.Store(true)
	return nil
}

// migrate brings the schema to this version. All that do so at the same time take turns.
func (s *Store) migrate(ctx context.Context, c *pgx.Conn) error {
	if err := checkVersion(c.PgConn().ParameterStatus("server_version")); err != nil {
		return err
	}
	if err := checkSession(ctx, c); err != nil {
		return err
	}
	t := tablesOf(s.schema, s.prefix)
	if v, err := s.version(ctx, c); err != nil || v >= len(migrations) {
		return err
	}
	tx, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // after Commit it does nothing
	// Two stores in one database may have equal hashes: they then wait for each other.
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "soloist "+t.version); err != nil {
		return err
	}
	v, err := s.version(ctx, tx) // as it is after the wait
	if err != nil {
		return err
	}
	if err := s.apply(ctx, tx, v); err != nil {
		return migrating(err, c.Config().User)
	}
	return migrating(tx.Commit(ctx), c.Config().User)
}

// apply runs the migrations after version v.
func (s *Store) apply(ctx context.Context, tx pgx.Tx, v int) error {
	t := tablesOf(s.schema, s.prefix)
	if v == 0 {
		var there bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", s.schema).Scan(&there); err != nil {
			return err
		}
		if !there { // IF NOT EXISTS would ask for the right to create it also if it is there
			if _, err := tx.Exec(ctx, "CREATE SCHEMA "+t.schema); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, t.fill(versionTable)); err != nil {
			return err
		}
	}
	for i, m := range migrations[min(v, len(migrations)):] {
		if _, err := tx.Exec(ctx, t.fill(m.sql)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, t.fill("INSERT INTO {version} (version, serves) VALUES ($1, $2)"), v+i+1, m.serves); err != nil {
			return err
		}
	}
	return nil
}

// version returns the version of the schema; zero: there is none.
func (s *Store) version(ctx context.Context, c querier) (v int, err error) {
	// This asks before it reads the table: a statement over a missing one cannot be prepared, and PgBouncer then refuses its name
	// for good. to_regclass may answer what was true before a wait.
	var there bool
	const exists = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = $2)"
	if err := c.QueryRow(ctx, exists, s.schema, s.prefix+"version").Scan(&there); err != nil || !there {
		return 0, err
	}
	var serves int
	newest := tablesOf(s.schema, s.prefix).fill("SELECT coalesce(max(version), 0), coalesce(max(serves), 0) FROM {version}")
	err = c.QueryRow(ctx, newest).Scan(&v, &serves)
	if err == nil && serves > len(migrations) {
		return v, &unfitError{fmt.Sprintf("the schema %s has version %d, of a newer program, and this program knows versions up to "+
			"%d: use that program's version of github.com/soloist-go/soloist/host/postgres, or another schema",
			s.place(), v, len(migrations))}
	}
	return v, err
}

// A querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// An unfitError is a server, a session or a schema that this package cannot use.
type unfitError struct{ text string }

func (e *unfitError) Error() string { return e.text }

// A migrationError is why the schema was not made or brought to this version.
type migrationError struct {
	error
	role string
}

func (e *migrationError) Unwrap() error { return e.error }

func migrating(err error, role string) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &migrationError{err, role}
}

// checkVersion returns an error if the server is too old. Its version may be any text, such as "15.14 (Debian)".
func checkVersion(server string) error {
	if major, err := strconv.Atoi(leadingDigits(server)); err == nil && major < oldest {
		return &unfitError{fmt.Sprintf("the server is PostgreSQL %.20s: want %d or later", server, oldest)}
	}
	return nil
}

// checkSession returns an error if calls would fail under the settings of a session. Those of a URL may not have arrived: a
// pooler in between ignores them.
func checkSession(ctx context.Context, c *pgx.Conn) error {
	var isolation, dates, bytes string
	err := c.QueryRow(ctx, `SELECT current_setting('default_transaction_isolation'), current_setting('DateStyle'),
	current_setting('bytea_output')`).Scan(&isolation, &dates, &bytes)
	if err == nil && isolation != "read committed" {
		return &unfitError{fmt.Sprintf("default_transaction_isolation is %s, under which calls that meet at a row fail: want "+
			"read committed, in the settings of the pool, or by ALTER ROLE %s SET default_transaction_isolation = 'read committed'",
			isolation, pgx.Identifier{c.Config().User}.Sanitize())}
	}
	mode := c.Config().DefaultQueryExecMode
	readsText := mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol
	if err == nil && readsText && (!strings.HasPrefix(dates, "ISO") || bytes != "hex") {
		return &unfitError{fmt.Sprintf("with default_query_exec_mode=%s results are text, which cannot be read with DateStyle %s and "+
			"bytea_output %s: want cache_describe, or ISO and hex", strings.ReplaceAll(mode.String(), " ", "_"), dates, bytes)}
	}
	return err
}

func leadingDigits(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
}

// grants are the rights that the program's role needs.
func (s *Store) grants() string {
	text := s.SQL(s.pool.Config().ConnConfig.User)
	return text[strings.Index(text, "GRANT"):]
}
