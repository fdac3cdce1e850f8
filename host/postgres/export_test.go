package postgres

import (
	"reflect"
	"strings"
)

// Plant makes a mistake in a statement of a store: new in place of old, which has to be there once. It reports whether it was.
func (s *Store) Plant(statement, old, new string) bool {
	text := map[string]*string{"create": &s.sql.create, "read": &s.sql.read, "acquire": &s.sql.acquire, "renew": &s.sql.renew,
		"write": &s.sql.write, "save": &s.sql.save, "release": &s.sql.release, "acquireWrite": &s.sql.acquireWrite, "writeRelease": &s.sql.writeRelease, "writeIn": &s.sql.writeIn, "saveIn": &s.sql.saveIn, "load": &s.sql.load, "break": &s.sql.breaks,
		"breakUnchanged": &s.sql.breakUnchanged, "remove": &s.sql.remove, "delete": &s.sql.delete, "readDocument": &s.sql.readDocument,
		"createDocument": &s.sql.createDocument, "writeDocument": &s.sql.writeDocument, "list": &s.sql.list, "createLog": &s.sql.createLog,
		"appendLog": &s.sql.appendLog, "readLog": &s.sql.readLog, "listLogs": &s.sql.listLogs, "dropLog": &s.sql.dropLog}[statement]
	if text == nil || strings.Count(*text, old) != 1 {
		return false
	}
	*text = strings.Replace(*text, old, new, 1)
	return true
}

// ListSQL is the statement of a listing.
func (s *Store) ListSQL() string { return s.sql.list }

var LockTime = lockTime

// Reset closes the connections.
func (s *Store) Reset() { s.pool.Reset() }

// Inside is how many calls are in statements that are shared.
func (s *Store) Inside() int {
	s.gathering.mu.Lock()
	defer s.gathering.mu.Unlock()
	return s.gathering.inside
}

// UseClock has all statements judge by another clock, an expression.
func (s *Store) UseClock(clock string) {
	for _, v := range reflect.ValueOf(&s.sql).Elem().Fields() {
		text := (*string)(v.Addr().UnsafePointer())
		*text = strings.NewReplacer("clock_timestamp()", clock, "now()", clock).Replace(*text)
	}
}

var CheckVersion = checkVersion
