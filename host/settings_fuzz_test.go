package host_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/soloist-go/soloist/host"
)

// shown are variables whose values may be told, secret those with a place for a
// secret, which is %.
var (
	shown = []string{
		"SOLOIST_APP", "SOLOIST_CONTAINER", "SOLOIST_LEASE", "SOLOIST_ADDR", "SOLOIST_GRACE", "SOLOIST_HISTORY", "SOLOIST_FUNCTION_TIMEOUT", "SOLOIST_TICK_TIMEOUT", "SOLOIST_FUNCTION_FAILURE",
		"SOLOIST_LOG_FORMAT", "SOLOIST_LOG_LEVEL", "SOLOIST_JOB_BEAT_SCHEDULE", "SOLOIST_JOB_BEAT_TIMEZONE", "SOLOIST_JOB_BEAT_PAUSED", "SOLOIST_ALERT_FAILURES",
		"FUNCTIONS_CUSTOMHANDLER_PORT", "WEBSITE_SITE_NAME", "WEBSITE_SLOT_NAME", "CONTAINER_APP_NAME", "AzureWebJobsStorage__accountName",
	}
	secret = []string{
		"SOLOIST_ALERT_WEBHOOK=%", "SOLOIST_ALERT_WEBHOOK=https://me:%@hooks.example/", "SOLOIST_ALERT_SECRET=%", "SOLOIST_JOB_BEAT_PING=https://hc.example/%",
		"SOLOIST_READ_TOKEN=%", "SOLOIST_ADMIN_TOKEN=%", "AzureWebJobsStorage__clientSecret=%",
		"SOLOIST_STORAGE=AccountName=acct;AccountKey=%", "SOLOIST_STORAGE=BlobEndpoint=https://x;SharedAccessSignature=sig=%",
		"SOLOIST_STORAGE=https://acct.blob.core.windows.net/?sig=%", "SOLOIST_STORAGE=https://me:%@acct.blob.core.windows.net/",
		"AzureWebJobsStorage=AccountName=acct;AccountKey=%", "AzureWebJobsStorage=BlobEndpoint=https://x;SharedAccessSignature=sig=%",
		"AzureWebJobsStorage__blobServiceUri=https://acct.blob.core.windows.net/?sig=%",
	}
)

// Whatever a variable is set to is taken, or named as a mistake; what is secret
// of it is told in neither case, and nothing that moves a terminal's cursor.
func FuzzSettings(f *testing.F) {
	for i := range shown {
		for _, value := range []string{"", "x", "45s", "-1s", ":0", "\x1b[2J\r\n", "0 3 * * *", "TZ=UTC", "é", "true", strings.Repeat("9", 300)} {
			f.Add(byte(i), "", value)
		}
	}
	for i := range secret {
		for _, more := range []string{"", ";", " ", "\n", "&", "%", "==", ";AccountKey=", ";BlobEndpoint=:", "/?"} {
			f.Add(byte(len(shown)+i), "", more)
			f.Add(byte(len(shown)+i), more, "")
		}
	}
	f.Fuzz(func(t *testing.T, which byte, before, after string) {
		n := int(which) % (len(shown) + len(secret))
		var name, value string
		if n < len(shown) {
			name, value = shown[n], before+after
		} else {
			name, value, _ = strings.Cut(secret[n-len(shown)], "=")
			value = strings.Replace(value, "%", before+key+after, 1)
		}
		if strings.ContainsRune(value, 0) {
			return // none can have that
		}
		pairs := []string{name + "=" + value}
		if !strings.Contains(name, "orage") {
			pairs = append(pairs, "SOLOIST_STORAGE=memory:") // which the platforms ask for
		}
		environment(t, pairs...)
		got := run(t.Context(), host.Program{Work: work()}, "validate")
		told := got.out + got.err
		if strings.Contains(told, key) {
			t.Errorf("%s=%q: a secret is told: %s", name, value, told)
		}
		if i := strings.IndexFunc(told, func(c rune) bool { return c != '\n' && unicode.IsControl(c) }); i >= 0 {
			t.Errorf("%s=%q: %q is told raw", name, value, told[i:])
		}
		family, _, _ := strings.Cut(name, "__")
		if got.code != 0 && (got.code != 2 || !strings.Contains(told, family)) {
			t.Errorf("%s=%q: got code %d, %s", name, value, got.code, told)
		}
	})
}
