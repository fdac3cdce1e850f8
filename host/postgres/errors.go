package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// An op is a call, as errors name it.
type op string

const (
	create        op = "create"
	read          op = "read"
	acquire       op = "acquire"
	renew         op = "renew"
	write         op = "write"
	save          op = "save"
	acquireWrite  op = "acquire and write"
	writeRelease  op = "write and release"
	load          op = "load"
	transact      op = "transaction of"
	commit        op = "commit"
	release       op = "release"
	breaks        op = "break"
	remove        op = "remove"
	list          op = "list"
	readDocument  op = "read document"
	writeDocument op = "write document"
	appendLog     op = "append to log"
	readLog       op = "read log"
	listLogs      op = "list logs of"
	removeLog     op = "remove log"
)

// refuse is a sentinel with what it is about.
func refuse(o op, name string, sentinel error) error {
	return fmt.Errorf("postgres: %s %s: %w", o, name, sentinel)
}

// translate returns the error of a call that is no answer of a statement. Of these only a refusal of permission is a
// sentinel; any other is unclear to the caller, who looks again. It shows no secrets: pgx puts none into its errors
// but those of a URL that it cannot parse.
func (s *Store) translate(o op, name string, err error) error {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if isMissing(err) {
		s.ready.Store(false) // somebody has dropped a table: the next call makes it again
	}
	return &failure{op: o, name: name, err: err, means: meaningOf(err)}
}

// A failure is a call without an answer, or with one that is an error of the server.
type failure struct {
	op    op
	name  string
	err   error
	means meaning
}

func (f *failure) Error() string {
	text := fmt.Sprintf("postgres: %s %s: %s", f.op, f.name, short(f.err))
	if f.means.text != "" {
		text += ": " + f.means.text
	}
	return text
}

// Unwrap shows what callers of a store ask for, and nothing else: the socket of a server that is down is a file that does
// not exist, which says nothing of an entry.
func (f *failure) Unwrap() (all []error) {
	for _, shown := range []error{f.means.sentinel, context.Canceled, context.DeadlineExceeded} {
		if shown != nil && (shown == f.means.sentinel || errors.Is(f.err, shown)) {
			all = append(all, shown)
		}
	}
	return all
}

// As finds errors of pgx.
func (f *failure) As(target any) bool { return errors.As(f.err, target) }

// A meaning is what an error comes to.
type meaning struct {
	sentinel error
	text     string // what to do, in a few words
}

// meaningOf is where the codes of the server become what they mean
// (https://www.postgresql.org/docs/current/errcodes-appendix.html). Those that are not named are unclear.
func meaningOf(err error) meaning {
	code := codeOf(err)
	switch {
	case errors.As(err, new(*passwordError)):
		return meaning{text: "no connection is possible without it"}
	case errors.Is(err, pgx.ErrTxClosed):
		return meaning{text: errEnded.Error()}
	case code == "25P02":
		return meaning{text: "an earlier statement of the transaction has failed"}
	case code == "42501":
		return meaning{fs.ErrPermission, "the role lacks a right"}
	case strings.HasPrefix(code, "28"):
		return meaning{fs.ErrPermission, "the server does not admit this role, password or address"}
	case code == "3D000":
		return meaning{text: "there is no such database"}
	case isReadOnly(err):
		return meaning{text: "the server is read-only, as a standby is: connect to the primary"}
	case code == "55P03":
		return meaning{text: "another session has locked the row; nothing was changed"}
	case code == "57014":
		return meaning{text: "the server has cancelled the statement, which took too long"}
	case code == "40001", code == "40P01":
		return meaning{text: "the server asks for another try; nothing was changed"}
	case code == "57P05":
		return meaning{text: "the server has ended a session that was idle: the next call connects again; " +
			"idle_session_timeout = 0 for this role keeps notifications"}
	case code == "25P03":
		return meaning{text: "the server has ended a transaction in which nothing happened for too long, and nothing of it is kept: " +
			"do what takes long before it, or raise idle_in_transaction_session_timeout"}
	case strings.HasPrefix(code, "57P"):
		return meaning{text: "the server stops or starts"}
	case code == "53100":
		return meaning{text: "the server's disk is full"}
	case code == "53300":
		return meaning{text: "the server has no connection left: raise max_connections, or have smaller pools (pool_max_conns)"}
	case strings.HasPrefix(code, "53"):
		return meaning{text: "the server is out of room"}
	case code == "08P01" && strings.Contains(err.Error(), "startup parameter"):
		return meaning{text: "a pooler in between takes no such parameter: add it to ignore_startup_parameters of PgBouncer"}
	}
	return meaning{}
}

func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// isReadOnly reports whether the server takes no writes.
func isReadOnly(err error) bool {
	if f, ok := errors.AsType[*failure](err); ok {
		err = f.err
	}
	return codeOf(err) == "25006" || errors.Is(err, pgconn.ErrReadOnlyConnection)
}

// isMissing reports whether a table or the schema is missing.
func isMissing(err error) bool { return codeOf(err) == "42P01" || codeOf(err) == "3F000" }

// short is an error in one line, without what is said elsewhere.
func short(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fmt.Sprintf("%s (SQLSTATE %s)", oneLine(e.Message), e.Code)
	}
	return oneLine(err.Error())
}

func oneLine(text string) string {
	const most = 400
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// why is the part of an error about a URL that cannot have a part of the URL in it. pgx masks the password where it finds
// it; in a URL with a mistake it may be anywhere.
func why(err error) string {
	var parse *pgconn.ParseConfigError
	if errors.As(err, new(*url.Error)) || errors.As(err, new(*net.AddrError)) || !errors.As(err, &parse) {
		return ""
	}
	_, text, _ := strings.Cut(parse.Error(), "`: ")
	if text, _, _ = strings.Cut(text, " ("); text == "" {
		return ""
	}
	return ": " + oneLine(text)
}

// A passwordError is why there is no password.
type passwordError struct{ err error }

func (e *passwordError) Error() string { return "no password or token: " + oneLine(e.err.Error()) }
func (e *passwordError) Unwrap() error { return e.err }

// Explain says what an error of this store is about and what to do about it.
func (s *Store) Explain(err error) (text, advice string) {
	text = strings.TrimPrefix(err.Error(), "postgres: ")
	code := codeOf(err)
	if m, ok := errors.AsType[*migrationError](err); ok && (code == "42501" || code == "25006") {
		return text, "have a role that may create it run: " + s.SQL(m.role)
	}
	switch {
	case code == "42501":
		return text, "have the owner of the schema run: " + s.grants()
	case isReadOnly(err):
		return text, "name all servers in the URL, with target_session_attrs=read-write"
	case code == "28P01" || code == "28000":
		return text, "check user and password of the URL, and pg_hba.conf of the server; an identity needs a role of its name"
	case errors.Is(err, context.DeadlineExceeded):
		return text, "look for what drops packets on the way, and for a server that is busy"
	}
	return text, connectAdvice(err)
}
