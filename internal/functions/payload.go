package functions

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"
)

// A Timer is the data of a timer trigger. A zero time is sent as .NET writes it,
// without a zone.
type Timer struct {
	Name       string // of the binding; empty: "timer"
	Last, Next time.Time
	PastDue    bool
	Unwatched  bool // the schedule is not monitored: there is no status
	Retry      int  // of a retry policy
}

// Payload is the body as the host writes it.
func (t Timer) Payload() []byte { return t.body(func(key string) string { return key }) }

// Camel is the body as hosts of other languages write it.
func (t Timer) Camel() []byte {
	return t.body(func(key string) string { return strings.ToLower(key[:1]) + key[1:] })
}

func (t Timer) body(spelled func(key string) string) []byte {
	info := map[string]any{
		spelled("Schedule"): map[string]any{spelled("AdjustForDST"): true}, spelled("ScheduleStatus"): nil, spelled("IsPastDue"): t.PastDue}
	if !t.Unwatched {
		info[spelled("ScheduleStatus")] = map[string]any{spelled("Last"): date(t.Last), spelled("Next"): date(t.Next), spelled("LastUpdated"): date(t.Last)}
	}
	name := cmp.Or(t.Name, "timer")
	meta := sys(name)
	if t.Retry > 0 {
		meta["RetryContext"] = map[string]any{"RetryCount": t.Retry, "MaxRetryCount": t.Retry}
	}
	return body(map[string]any{spelled("Data"): map[string]any{name: info}, spelled("Metadata"): meta})
}

// HTTP is the body for a call of an HTTP trigger that is not forwarded.
func HTTP(method, url, text string) []byte {
	return body(map[string]any{
		"Data": map[string]any{"req": map[string]any{"Url": url, "Method": method, "Query": map[string]string{},
			"Headers": map[string][]string{"Content-Type": {"text/plain"}}, "Params": map[string]string{}, "Identities": []any{}, "Body": text}},
		"Metadata": sys("req"),
	})
}

// namedQueue is the body for a message, which comes as JSON within JSON.
func namedQueue(binding, message string) []byte {
	text, _ := json.Marshal(message)
	return body(map[string]any{"Data": map[string]any{binding: string(text)}, "Metadata": sys(binding)})
}

// Warmup is the body for a warm-up.
func Warmup() []byte {
	return body(map[string]any{"Data": map[string]any{"warmupContext": map[string]any{}}, "Metadata": sys("warmup")})
}

func sys(method string) map[string]any {
	return map[string]any{"sys": map[string]any{"MethodName": method, "UtcNow": date(time.Now().UTC()), "RandGuid": guid()}}
}

// date writes up to seven digits of a second, and the zone as an offset.
func date(t time.Time) string {
	if t.IsZero() {
		return "0001-01-01T00:00:00"
	}
	return t.Format("2006-01-02T15:04:05.9999999-07:00")
}

func body(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}
