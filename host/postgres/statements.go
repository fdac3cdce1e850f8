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

// change is a statement that changes one entry or says why not. verdict is the WHEN clauses of the reasons; action is
// the statement without its conditions. Parameters: $1 the name, $2 how long to wait for the row in milliseconds.
//
// The order matters. "locked" waits for the row and returns its newest version, in READ COMMITTED. Only then is
// the clock read, in a query of its own: a clock in "locked" would be read before the wait. MATERIALIZED keeps each
// query apart from the next. The action finds the row by its name, in the version that is locked.
//
// clock_timestamp goes on within a statement; now() would be the time at which it arrived.
func change(entry, verdict, action string) string {
	return fmt.Sprintf(`WITH locked AS MATERIALIZED (
	SELECT e.name, e.etag, e.id, e.ends, e.broken
	FROM (SELECT set_config('lock_timeout', $2, true) AS wait) AS bound, %s AS e
	WHERE e.name = $1 AND bound.wait IS NOT NULL FOR UPDATE OF e
), timed AS MATERIALIZED (
	SELECT *, clock_timestamp() AS clock FROM locked
), judged AS MATERIALIZED (
	SELECT name, etag, clock, CASE %s ELSE 'done' END AS verdict
	FROM (SELECT *, clock < ends AS live FROM timed) AS seen
), acted AS (
	%s e.name = j.name AND j.verdict = 'done' RETURNING e.etag
)
SELECT j.verdict, j.clock, coalesce(a.etag, j.etag)::text FROM judged AS j LEFT JOIN acted AS a ON true`,
		entry, verdict, action)
}

// The reasons against a change.
const (
	whenHeld    = `WHEN live AND (broken OR id <> $3::uuid) THEN 'held' `
	whenLost    = `WHEN id IS DISTINCT FROM $3::uuid THEN 'lost' `
	whenBroken  = `WHEN broken THEN 'lost' `
	whenOver    = `WHEN NOT live THEN 'lost' `
	whenLive    = `WHEN live THEN 'lost' `
	whenFree    = `WHEN id IS NULL THEN 'lost' `
	whenEnded   = `WHEN current_setting('soloist.transaction', true) IS DISTINCT FROM $6 THEN 'ended' `
	whenChanged = `WHEN etag::text <> %s THEN 'changed' `
)

// state is the state of a lease. now() is when the statement arrived, which is before its view of the rows: by a later
// clock a lease that was renewed meanwhile would seem to have expired. All that only reads is judged by it.
const state = `CASE WHEN e.id IS NULL THEN 'available'
	WHEN e.broken THEN CASE WHEN now() < e.ends THEN 'breaking' ELSE 'broken' END
	WHEN now() < e.ends THEN 'leased' ELSE 'expired' END`

// etagOf compares with the ETag that is a parameter.
func etagOf(parameter string) string { return fmt.Sprintf(whenChanged, parameter) }

func statementsOf(t tables, tells string) statements {
	set := func(verdict, columns string) string {
		return change(t.entry, verdict, "UPDATE "+t.entry+" AS e SET "+columns+" FROM judged AS j WHERE")
	}
	drop := func(verdict string) string {
		return change(t.entry, verdict, "DELETE FROM "+t.entry+" AS e USING judged AS j WHERE")
	}
	in := func(columns string) string { // a transaction of the caller's: one that stops before COMMIT must not keep the row
		const bound = `set_config('lock_timeout', $2, true)`
		return strings.Replace(set(whenEnded+whenLost+whenOver+etagOf("$4"), columns), bound,
			bound+` || set_config('idle_in_transaction_session_timeout', '5s', true)`, 1)
	}
	with := func(text string) string { return t.fill(text, "{state}", state, "{tells}", tells) }
	const (
		length  = `$4::bigint * interval '1 microsecond'`
		taken   = `id = $3::uuid, length = ` + length + `, ends = j.clock + ` + length + `, broken = false`
		written = `etag = gen_random_uuid(), record = `
		free    = `id = NULL, ends = '-infinity', broken = false`
		ending  = `broken = true, ends = least(e.ends, j.clock + $3::bigint * interval '1 microsecond')` // least ignores a null
	)
	return statements{
		create: with(`INSERT INTO {entry} (name, record) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING
RETURNING etag::text, clock_timestamp()`),
		read: with(`SELECT now(), e.etag::text, e.record, {state}, octet_length(e.checkpoint)
FROM (SELECT) AS always LEFT JOIN {entry} AS e ON e.name = $1`),

		acquire: set(whenHeld+etagOf("$5"), taken),
		renew:   set(whenLost+whenBroken, `ends = j.clock + e.length`),
		write:   set(whenLost+whenOver+etagOf("$4"), written+"$5"),
		save:    set(whenLost+whenOver+etagOf("$4"), written+`$5, checkpoint = $6::bytea`),
		release: set(whenLost, free),
		writeIn: in(written + "$5"),
		saveIn:  in(written + `$5, checkpoint = $7::bytea`),

		acquireWrite: set(whenHeld+etagOf("$5"), taken+", "+written+"$6"),
		writeRelease: set(whenLost+whenOver+etagOf("$4"), written+"$5, "+free),

		load: with(`SELECT CASE WHEN e.id IS DISTINCT FROM $2::uuid OR now() >= e.ends THEN 'lost'
	WHEN e.etag::text <> $3 THEN 'changed' ELSE 'done' END,
	octet_length(e.checkpoint), CASE WHEN octet_length(e.checkpoint) <= $4::bigint THEN e.checkpoint END
FROM {entry} AS e WHERE e.name = $1`),
		breaks:         strings.Replace(set(whenFree, ending), "RETURNING e.etag", "RETURNING e.etag, "+tells, 1),
		breakUnchanged: set(etagOf("$4")+whenFree, ending),
		remove:         drop(whenLive + etagOf("$3")),
		delete:         drop(whenLive),

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
