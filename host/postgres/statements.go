package postgres

import (
	"fmt"
	"strings"

	"github.com/soloist-go/soloist/store"
)

// statements are those of a store, with the names of its tables.
type statements struct {
	create, read                                     string
	acquire, renew, write, save, release, load       string
	writeIn, saveIn                                  string
	acquireWrite, writeRelease                       string
	breaks, breakUnchanged, remove, delete           string
	readDocument, createDocument, writeDocument      string
	list, apps                                       string
	createLog, appendLog, readLog, listLogs, dropLog string
}

// The verdicts of a statement, as text that it returns.
const (
	done = "done"

	held    = "held"
	changed = "changed"
	lost    = "lost"
	ended   = "ended"
)

var verdicts = map[string]error{done: nil, held: store.ErrHeld, changed: store.ErrChanged, lost: store.ErrLost, ended: errEnded}

// change is a statement that changes entries, each of which it asks for by its name, or says why not. asks has the columns of
// what is asked, besides the name, with their types; verdict the WHEN clauses of the reasons; action the statement without
// its conditions. Parameters: $1 the names, $2 how long to wait for a row in milliseconds, from $3 on the columns. They are
// arrays with a value for each entry. No name may be there twice.
//
// The order matters. "locked" waits for the row and returns its newest version, in READ COMMITTED. Only then is
// the clock read, in a query of its own: a clock in "locked" would be read before the wait. MATERIALIZED keeps each
// query apart from the next. The action finds the row by its name, in the version that is locked.
//
// The array of the names is a query, so that the server cannot see its length. Else it would make a new plan for each call of
// one entry, which takes longer than the call.
//
// clock_timestamp goes on within a statement; now() would be the time at which it arrived.
func change(entry, asks, verdict, action string) string {
	columns, arrays := "", ""
	for i, column := range strings.Split(asks, ", ") {
		name, kind, ok := strings.Cut(column, " ")
		if !ok {
			continue // nothing is asked but the name
		}
		columns += ", " + name
		arrays += fmt.Sprintf(", $%d::%s[]", i+3, kind)
	}
	return fmt.Sprintf(`WITH locked AS MATERIALIZED (
	SELECT asked.*, e.etag, e.id, e.ends, e.broken
	FROM (SELECT set_config('lock_timeout', $2, true) AS wait) AS bound, unnest((SELECT $1::text[])%s) AS asked (name%s),
		LATERAL (SELECT * FROM %s AS e WHERE e.name = asked.name AND bound.wait IS NOT NULL `+forUpdate+`) AS e
), timed AS MATERIALIZED (
	SELECT *, clock_timestamp() AS clock FROM locked
), judged AS MATERIALIZED (
	SELECT *, CASE %s ELSE 'done' END AS verdict
	FROM (SELECT *, clock < ends AS live FROM timed) AS seen
), acted AS (
	%s e.name = j.name AND j.verdict = 'done' RETURNING e.name, e.etag
)
SELECT j.name, j.verdict, j.clock, coalesce(a.etag, j.etag)::text FROM judged AS j LEFT JOIN acted AS a ON a.name = j.name`,
		arrays, columns, entry, verdict, action)
}

// How a change locks a row, and how it does so if it is not to wait: it then says nothing of the row.
const (
	forUpdate     = "FOR UPDATE OF e"
	forUpdateFree = forUpdate + " SKIP LOCKED"
)

// The reasons against a change. lease is the id of the lease that asks, was the ETag that it knows.
const (
	whenHeld    = `WHEN live AND (broken OR id <> lease::uuid) THEN 'held' `
	whenLost    = `WHEN id IS DISTINCT FROM lease::uuid THEN 'lost' `
	whenBroken  = `WHEN broken THEN 'lost' `
	whenOver    = `WHEN NOT live THEN 'lost' `
	whenLive    = `WHEN live THEN 'lost' `
	whenFree    = `WHEN id IS NULL THEN 'lost' `
	whenEnded   = `WHEN current_setting('soloist.transaction', true) IS DISTINCT FROM nonce THEN 'ended' `
	whenChanged = `WHEN etag::text <> was THEN 'changed' `
)

// state is the state of a lease. now() is when the statement arrived, which is before its view of the rows: by a later
// clock a lease that was renewed meanwhile would seem to have expired. All that only reads is judged by it.
const state = `CASE WHEN e.id IS NULL THEN 'available'
	WHEN e.broken THEN CASE WHEN now() < e.ends THEN 'breaking' ELSE 'broken' END
	WHEN now() < e.ends THEN 'leased' ELSE 'expired' END`

func statementsOf(t tables, tells string) statements {
	set := func(asks, verdict, columns string) string {
		return change(t.entry, asks, verdict, "UPDATE "+t.entry+" AS e SET "+columns+" FROM judged AS j WHERE")
	}
	drop := func(asks, verdict string) string {
		return change(t.entry, asks, verdict, "DELETE FROM "+t.entry+" AS e USING judged AS j WHERE")
	}
	in := func(asks, columns string) string { // a transaction of the caller's: one that stops before COMMIT must not keep the row
		const bound = `set_config('lock_timeout', $2, true)`
		return strings.Replace(set("lease text, was text, record text, nonce text"+asks, whenEnded+whenLost+whenOver+whenChanged, columns),
			bound, bound+` || set_config('idle_in_transaction_session_timeout', '5s', true)`, 1)
	}
	with := func(text string) string { return t.fill(text, "{state}", state, "{tells}", tells) }
	const (
		length  = `j.span * interval '1 microsecond'`
		taken   = `id = j.lease::uuid, length = ` + length + `, ends = j.clock + ` + length + `, broken = false`
		written = `etag = gen_random_uuid(), record = j.record`
		saved   = written + `, checkpoint = j.checkpoint`
		free    = `id = NULL, ends = '-infinity', broken = false`
		ending  = `broken = true, ends = least(e.ends, j.clock + ` + length + `)` // least ignores a null
	)
	return statements{
		create: with(`INSERT INTO {entry} (name, record) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING
RETURNING etag::text, clock_timestamp()`),
		read: with(`SELECT now(), e.etag::text, e.record, {state}, octet_length(e.checkpoint)
FROM (SELECT) AS always LEFT JOIN {entry} AS e ON e.name = $1`),

		acquire: set("lease text, span bigint, was text", whenHeld+whenChanged, taken),
		renew:   set("lease text", whenLost+whenBroken, `ends = j.clock + e.length`),
		write:   set("lease text, was text, record text", whenLost+whenOver+whenChanged, written),
		save:    set("lease text, was text, record text, checkpoint bytea", whenLost+whenOver+whenChanged, saved),
		release: set("lease text", whenLost, free),
		writeIn: in("", written),
		saveIn:  in(", checkpoint bytea", saved),

		acquireWrite: set("lease text, span bigint, was text, record text", whenHeld+whenChanged, taken+", "+written),
		writeRelease: set("lease text, was text, record text", whenLost+whenOver+whenChanged, written+", "+free),

		load: with(`SELECT CASE WHEN e.id IS DISTINCT FROM $2::uuid OR now() >= e.ends THEN 'lost'
	WHEN e.etag::text <> $3 THEN 'changed' ELSE 'done' END,
	octet_length(e.checkpoint), CASE WHEN octet_length(e.checkpoint) <= $4::bigint THEN e.checkpoint END
FROM {entry} AS e WHERE e.name = $1`),
		breaks:         strings.Replace(set("span bigint", whenFree, ending), "RETURNING e.name,", "RETURNING "+strings.Replace(tells, "$1::text", "e.name", 1)+", e.name,", 1),
		breakUnchanged: set("span bigint, was text", whenChanged+whenFree, ending),
		remove:         drop("was text", whenLive+whenChanged),
		delete:         drop("", whenLive),

		readDocument: with(`SELECT now(), d.etag::text, octet_length(d.body),
	CASE WHEN d.etag::text <> $2 AND octet_length(d.body) <= $3::bigint THEN d.body END
FROM (SELECT) AS always LEFT JOIN {document} AS d ON d.name = $1`),
		createDocument: with(`INSERT INTO {document} (name, body) VALUES ($1, $2::bytea) ON CONFLICT (name) DO NOTHING
RETURNING etag::text || {tells}, clock_timestamp()`),
		writeDocument: with(`UPDATE {document} SET etag = gen_random_uuid(), body = $2::bytea WHERE name = $1 AND etag::text = $3
RETURNING etag::text || {tells}, clock_timestamp()`),

		list: with(`(SELECT e.name, now(), e.etag::text, e.record, {state}, octet_length(e.checkpoint)
FROM {entry} AS e WHERE e.name > $1 AND e.name < $2 ORDER BY e.name LIMIT $5::bigint)
UNION ALL
(SELECT e.name, now(), e.etag::text, e.record, {state}, octet_length(e.checkpoint)
FROM {entry} AS e WHERE e.name > $1 AND e.name > $3 AND e.name < $4 ORDER BY e.name LIMIT $5::bigint)
ORDER BY 1 LIMIT $5::bigint`),
		// '0' is the character after '/'.
		apps: with(`WITH RECURSIVE a AS (
	(SELECT split_part(name, '/', 1) AS app FROM {entry} ORDER BY name LIMIT 1)
	UNION ALL
	SELECT (SELECT split_part(name, '/', 1) FROM {entry} WHERE name >= a.app || '0' ORDER BY name LIMIT 1)
	FROM a WHERE a.app IS NOT NULL
) SELECT app FROM a WHERE app IS NOT NULL LIMIT $1::bigint`),

		createLog: with(`WITH l AS (
	INSERT INTO {log} (name, size) VALUES ($1, octet_length($2::bytea)) ON CONFLICT (name) DO NOTHING RETURNING id
) INSERT INTO {chunk} (log, start, bytes) SELECT id, 0, $2::bytea FROM l`),
		appendLog: with(`WITH l AS (
	UPDATE {log} SET size = size + octet_length($2::bytea) WHERE name = $1 AND size = $3::bigint RETURNING id
) INSERT INTO {chunk} (log, start, bytes) SELECT id, $3::bigint, $2::bytea FROM l`),
		readLog: with(`SELECT c.start, c.bytes FROM {log} AS l
LEFT JOIN {chunk} AS c ON c.log = l.id AND c.start > $2::bigint - $4::bigint AND c.start < $3::bigint
	AND c.start + octet_length(c.bytes) > $2::bigint
WHERE l.name = $1 ORDER BY c.start`),
		listLogs: with(`SELECT name, size FROM {log} WHERE name > $1 AND name < $2 ORDER BY name`),
		dropLog:  with(`DELETE FROM {log} WHERE name = $1`),
	}
}
