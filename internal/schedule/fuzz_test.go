package schedule_test

import (
	"testing"

	"github.com/soloist-go/soloist/internal/schedule"
)

func FuzzParse(f *testing.F) {
	for _, text := range append(append([]string{
		"TZ=UTC", "TZ=", "TZ=0", "", " ", "*/60 * * * *", "@every 5m", "@every -5s", "@daily", "0 0 30 2 *", "H H(1-4) * * H/2",
		"ncrontab 0 0 0 13 * Fri", "CRON_TZ=Asia/Tokyo 5-1 * ? * 7", "1,,2 * * * *", "0 0 * * \x00", "ncrontab TZ=UTC @every 1s",
		"0 0 L-31 * *", "0 0 l,L-3w,HW,W * LW", "0 0 * * fri#6,7#1,L", "@daily ;; ", ";", "@daily ; @daily", "@daily;TZ=UTC @hourly", "H H * * * ; @every 7m;0 0 1-L * *",
	}, texts...), fine...) {
		f.Add(text, "", "job")
		f.Add(text, "Africa/Cairo", "other")
	}
	f.Fuzz(func(t *testing.T, text, zone, name string) {
		s, err := schedule.Parse(text, zone, name)
		if err != nil {
			if s != nil || err.Error() == "" {
				t.Errorf("Parse(%q) = %v, %q", text, s, err)
			}
			return
		}
		now := year(2026)
		if s.Next(now).IsZero() != (s.String() == "@manual") || s.Words() == "" {
			t.Errorf("Parse(%q) accepts what never fires: %s", text, s.Words())
		}
		again, err := schedule.Parse(s.String(), "", "")
		if err != nil || again.String() != s.String() || !again.Next(now).Equal(s.Next(now)) {
			t.Errorf("Parse(%q) = %s, parsed again %v, %v", text, s, again, err)
		}
		s.Warnings(now)
	})
}
