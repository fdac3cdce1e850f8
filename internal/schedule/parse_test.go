package schedule_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/internal/schedule"
)

func TestRefused(t *testing.T) {
	const first = "byte 0: "
	for _, test := range []struct{ text, zone, want string }{
		{"@manual ; @daily", "", first + "@manual is unknown"},
		{"@daily ; @manual", "", "@manual, which stands alone"},
		{"@manual 5", "", "@manual is unknown"},
		{"TZ=UTC", "", "byte 6: nothing after the prefix"},
		{"TZ=0", "", "byte 3: zone \"0\" is unknown"},
		{"TZ=", "", "byte 3: zone \"\" is empty"},
		{"CRON_TZ= 0 0 * * *", "", "byte 8: zone \"\" is empty"},
		{"ncrontab", "", "nothing after the prefix"},
		{"TZ=UTC TZ=UTC 0 0 * * *", "", "byte 7, second field: "},
		{"TZ=Europe/Berlin 0 0 * * *", "Europe/Paris", "byte 3: zone \"Europe/Berlin\" in the text, but the job's zone is \"Europe/Paris\""},
		{"0 0 * * *", "Local", "zone \"Local\" differs between machines"},
		{"0 0 * * *", "localtime", "differs between machines"},
		{"0 0 * * *", "right/Europe/Berlin", "not known everywhere"},
		{"0 0 * * *", "America", "is unknown"},
		{"0 0 * * *", "../etc/passwd", "not an IANA name"},
		{"0 0 * * *", "/etc/localtime", "is unknown"},
		{"0 0 * * *", " UTC", "not an IANA name"},
		{"0 0 * * *", "Europe/\x00", "not an IANA name"},
		{"0 0 * * *", strings.Repeat("x", 5000), "not an IANA name"},
		{strings.Repeat("* ", 5000), "", "10000 bytes, allowed are 512"},
		{"\x000 0 * * *", "", "byte 0: 0x00 is not allowed"},
		{"0 0 * * *\v", "", "byte 9: 0x0b is not allowed"},
		{"0 2 * * * /usr/bin/backup.sh", "", "byte 10: \"/usr/bin/backup.sh\" follows the five fields, as in a crontab: want the fields alone"},
		{"TZ=UTC 30 2 * * 0\troot  [ -x /bin/a ] ; b", "", "byte 18: \"root\" follows the five fields"},
		{"0 2 * * sun tue", "", "byte 8, month field: \"sun\" is not a value"},
		{"0 2 * * * 9", "", "byte 10, day-of-week field: 9 is out of range"},
		{"0 2 * * x /bin/a", "", "byte 8, month field: \"x\" is not a value"},
		{"@daily /usr/bin/backup.sh", "", "byte 6: \"/usr/bin/backup.sh\" after @daily, want nothing"},
		{"0 0 * * é", "", "byte 8: 0xc3 is not allowed"},
		{"0 0 0 0 * * 2026", "", "7 fields, want 5"},
		{"*/0 * * * *", "", "byte 0, minute field: step \"0\", want 1-59"},
		{"0 */24 * * *", "", "byte 2, hour field: step \"24\", want 1-23"},
		{"0 0 */31 * *", "", "want 1-30"},
		{"*/ * * * *", "", "step \"\", want 1-59"},
		{"*/99999999999999999999 * * * *", "", "step \"99999999999999999999\""},
		{"-1 * * * *", "", "\"\" is not a value"},
		{"1.5 * * * *", "", "\"1.5\" is not a value"},
		{"0 0 1 13 *", "", "byte 6, month field: 13 is out of range, want 1-12 or jan-dec"},
		{"0 0 * * 8L", "", "8 is out of range, want 0-7 or sun-sat"},
		{"0 0 * * fridayL", "", "\"FRIDAY\" is not a value, want 0-7 or sun-sat"},
		{"0 0 * * 5#0", "", "\"5#0\" is not a value, want 5#1 to 5#5"},
		{"0 0 * * fri#L", "", "\"fri#L\" is not a value, want fri#1 to fri#5"},
		{"0 0 * * fri#2/2", "", "\"fri#2/2\" has no step, want fri#2 alone"},
		{"0 0 * * LW", "", "\"LW\" is not a value, want 0-7"},
		{"0 0 L/2 * *", "", "byte 4, day-of-month field: \"L/2\" has no step, want L alone"},
		{"0 0 1-15W * *", "", "W stands after one day"},
		{"0 0 L3 * *", "", "\"L3\" is not a value"},
		{"0 0 -3W * *", "", "\"-3W\" is not a value"},
		{"0 0 15L * *", "", "\"15L\" is not a value"},
		{"0 0 L-0 * *", "", "L-0 is out of range, want L-1 to L-30, or L for the last day"},
		{"0 0 L-99999W * *", "", "\"L-99999W\" is not a value"},
		{"0 0 0W * *", "", "0W never fires, want 1W to 31W"},
		{"0 0 L-30 2,4,6,9,11 *", "", "byte 4: never fires: day-of-month names no day"},
		{"0 0 1 L *", "", "\"L\" is not a value, want 1-12"},
		{"L 0 * * *", "", "\"L\" is not a value, want 0-59"},
		{";", "", "byte 0: no text before ;"},
		{" ; @daily", "", "byte 1: no text before ;"},
		{"@daily ;", "", "byte 8: no text after ;, want one such as 30 2 * * * or @daily"},
		{"@daily ;; @hourly", "", "byte 8: no text after ;"},
		{"@daily ; 0 0 * * 8", "", "byte 17, day-of-week field: 8 is out of range"},
		{"@daily ; 0 0 0 *", "", "byte 9: 4 fields, want 5"},
		{"@daily ; 0 0 30 2 *", "", "byte 13: never fires"},
		{"H H * * * ; @daily ; H H * * ?", "", "byte 21: this text says the same as the text at byte 0"},
		{"@daily ; TZ=Asia/Tokyo 0 1 * * *", "UTC", "byte 12: zone \"Asia/Tokyo\" in the text, but the job's zone is \"UTC\""},
		{"@daily ; TZ=Asia/Tokyo", "", "byte 22: no text after ;"},
		{"@daily ; TZ=Nowhere 0 1 * * *", "", "byte 12: zone \"Nowhere\" is unknown"},
		{"CRON_TZ=Asia/Tokyo 0 1 * * * ; TZ=Asia/Tokyo 0 1 * * *", "", "says the same as the text"},
		{"@daily ; ncrontab 0 1 * * *", "", "byte 9: ncrontab counts for all texts"},
		{"TZ=UTC ; @daily", "", "byte 7: no text before ;"},
		{"ncrontab 0 0 * * * ; @hourly", "", "byte 21: @hourly is not allowed in the ncrontab dialect"},
		{"@every 5m ; @every 5", "", "byte 19: \"5\" is not a duration"},
		{"1-2-3 * * * *", "", "\"2-3\" is not a value"},
		{"*-5 * * * *", "", "\"*\" is not a value"},
		{"1,,2 * * * *", "", "an item is empty"},
		{"? * * * *", "", "? stands for * only in a day field"},
		{"H(1 * * * *", "", "want H, H(a-b), H/n or H(a-b)/n"},
		{"H(9-1) * * * *", "", "range 9-1 ends before it begins"},
		{"H(0-60) * * * *", "", "60 is out of range"},
		{"ncrontab 0 0 30 2 5", "", "byte 13: never fires"},
		{"ncrontab */30 2 8-14 3 0", "America/New_York", "never fires: from 2026 on, clocks in America/New_York skip"},
		{"@daily 5", "", "byte 6: \"5\" after @daily"},
		{"@every", "", "\"\" is not a duration"},
		{"@every 5 minutes", "", "byte 7: \"5 minutes\" is not a duration"},
		{"@every 9999999h", "", "is not a duration"},
	} {
		s, err := schedule.Parse(test.text, test.zone, "job")
		if err == nil {
			t.Errorf("Parse(%.40q, %.40q) = %v, want an error", test.text, test.zone, s)
			continue
		}
		if got := err.Error(); !strings.Contains(got, test.want) || len(got) > 1000 {
			t.Errorf("Parse(%.40q, %.40q):\n got %s\nwant %s", test.text, test.zone, got, test.want)
		}
	}
}

// TestAdvice has refused texts, and the text that can only mean the same. What is valid in the other dialect with another
// meaning gets no advice to change the dialect.
func TestAdvice(t *testing.T) {
	const cron, none = "valid in the cron dialect only: leave out the word ncrontab", ""
	for _, test := range []struct{ text, want string }{
		{"50-9/10 * * * *", "write 50,0 * * * *"},
		{"22-2/2,5 30 4 * * *", "write 22-58/2,0,2,5 30 4 * * *"},
		{"0 0 28-3 nov-feb *", "write 0 0 28-31,1-3 nov,dec,jan,feb *"},
		{"0 0 * * fri-mon", "write 0 0 * * fri,sat,sun,mon"},
		{"0 0 * * wed-tue", "write 0 0 * * wed-sat,sun-tue"},
		{"TZ=Asia/Tokyo  0 0  * *  6-1 ; @daily", "write TZ=Asia/Tokyo 0 0 * * 6,0,1 ; @daily"},
		{"0 9 * Sept Tues-Thursday", "write 0 9 * sep tue-thu"},
		{"0 0 1 M *", none}, // March or May
		{"0 0 * * T", none},
		{"0 22-2 1 M *", none},
		{"0 0 * * mondays", none},
		{"*/60 * * * *", none},
		{"0 0 30-29 2 *", "write 0 0 30,31,1-29 2 *"},
		{"0 0 31-30 2 * ; 0 0 30 2 *", none},
		{"ncrontab 0 0 * * 5-7", "write ncrontab 0 0 * * 5,6,0"},
		{"ncrontab 0 0 * * 1-7", "write ncrontab 0 0 * * 1-6,0"},
		{"ncrontab 0 0 * * 0-7", "write ncrontab 0 0 * * 0-6"},
		{"ncrontab 0 0 ? * 1", "write ncrontab 0 0 * * 1"},
		{"ncrontab TZ=UTC @every 5m", cron},
		{"ncrontab 0 0 15W * *", cron},
		{"ncrontab 0 0 * * 5#3", cron},
		{"ncrontab 0 0 * * 7L", cron},
		{"ncrontab 0 0 * * friL ; 0 0 1 * *", cron},
		{"ncrontab 0 0 * * friL ; 0 0 1 * 5", none}, // the 1st if it is a Friday, or either
		{"ncrontab 0 0 L * 5", none},
		{"ncrontab 0 0 30 2 5", none},
	} {
		_, err := schedule.Parse(test.text, "", "job")
		if err == nil {
			t.Errorf("%q is accepted", test.text)
			continue
		}
		advice := ""
		for _, begin := range []string{"write ", "valid in"} {
			if _, found, ok := strings.Cut(err.Error(), "; "+begin); ok {
				advice = begin + found
			}
		}
		if advice != test.want {
			t.Errorf("%q: got advice %q of %v, want %q", test.text, advice, err, test.want)
		}
		if text, ok := strings.CutPrefix(advice, "write "); ok {
			parse(t, text, "")
		}
	}
}

func TestStringAndWords(t *testing.T) {
	for _, test := range []struct{ text, zone, canon, words string }{
		{"30 2 * * *", "Europe/Berlin", "CRON_TZ=Europe/Berlin 30 2 * * *", "at 02:30 every day, Europe/Berlin"},
		{"  30  2 * * ?  ", "", "CRON_TZ=UTC 30 2 * * *", "at 02:30 every day, UTC"},
		{"\t25 6\t* *\t*\r\n", "", "CRON_TZ=UTC 25 6 * * *", "at 06:25 every day, UTC"},
		{"TZ=UTC\t@every\t5m\n;\n@daily", "", "CRON_TZ=UTC @every 5m0s ; 0 0 * * *", "every 5 minutes, counted from 1970-01-01 00:00 UTC; and at 00:00 every day, UTC"},
		{"TZ=Asia/Tokyo 0 30 2 * * *", "", "CRON_TZ=Asia/Tokyo 30 2 * * *", "at 02:30 every day, Asia/Tokyo"},
		{"TZ=Asia/Tokyo 30 2 * * *", "Asia/Tokyo", "CRON_TZ=Asia/Tokyo 30 2 * * *", "at 02:30 every day, Asia/Tokyo"},
		{"* * * * *", "", "CRON_TZ=UTC * * * * *", "every minute, UTC"},
		{"*/1 * * * *", "", "CRON_TZ=UTC * * * * *", "every minute, UTC"},
		{"5/15 * * * *", "", "CRON_TZ=UTC 5-59/15 * * * *", "at minutes 5, 20, 35 and 50 of every hour, UTC"},
		{"*/10 * * * * *", "", "CRON_TZ=UTC */10 * * * * *", "every 10 seconds, UTC"},
		{"*/10 5 * * * *", "", "CRON_TZ=UTC */10 5 * * * *", "every 10 seconds of minute 5 of every hour, UTC"},
		{"5 30 */2 * * *", "", "CRON_TZ=UTC 5 30 */2 * * *", "at second 5 of minute 30 of every 2nd hour, UTC"},
		{"*/20 */3 * * *", "", "CRON_TZ=UTC */20 */3 * * *", "every 20 minutes of every 3rd hour, UTC"},
		{"0 */2 * * *", "", "CRON_TZ=UTC 0 */2 * * *", "every 2 hours, UTC"},
		{"0 9-17 * * mon-FRI", "", "CRON_TZ=UTC 0 9-17 * * 1-5", "at minute 0 of hours 9 to 17 on Monday to Friday, UTC"},
		{"0 13,1 * * 5-7", "", "CRON_TZ=UTC 0 1,13 * * 0,5-6", "at 01:00 and 13:00 on Friday to Sunday, UTC"},
		{"0 0 * * 1-7/2", "", "CRON_TZ=UTC 0 0 * * 0-1,3,5", "at 00:00 on Monday, Wednesday, Friday and Sunday, UTC"},
		{"0 0 */2 jan,feb,mar *", "", "CRON_TZ=UTC 0 0 */2 1-3 *",
			"at 00:00 on days 1, 3, 5 ... 31 of the month in January to March, UTC"},
		{"0 0 l,3w,lw,1,L-1,L-3w,L-2 * *", "", "CRON_TZ=UTC 0 0 1,3W,L,L-1,L-2,LW,L-3W * *",
			"at 00:00 on day 1, the weekday nearest to day 3, the last day, the day before the last, the day 2 days before the last, the last weekday" +
				" and the weekday nearest to the day 3 days before the last of the month, UTC"},
		{"0 0 * * FRIL,sun#1,0#1,7L,1-5", "", "CRON_TZ=UTC 0 0 * * 1-5,0#1,0L,5L",
			"at 00:00 on Monday to Friday, the 1st Sunday, the last Sunday and the last Friday of the month, UTC"},
		{"0 0 L 2 7#2", "", "CRON_TZ=UTC 0 0 L 2 0#2", "at 00:00 on the last day of the month or on the 2nd Sunday of the month in February, UTC"},
		{"0 0 */2,L * ?,5L", "", "CRON_TZ=UTC 0 0 */2,L * *", "at 00:00 on days 1, 3, 5 ... 31 and the last day of the month, UTC"},
		{"0 0 1/3,7 * *", "", "CRON_TZ=UTC 0 0 */3,7 * *", "at 00:00 on days 1, 4, 7 ... 31 of the month, UTC"},
		{"30 2 * * 1-5;0 9 * * sat", "Europe/Berlin", "CRON_TZ=Europe/Berlin 30 2 * * 1-5 ; 0 9 * * 6",
			"at 02:30 on Monday to Friday; and at 09:00 on Saturday, Europe/Berlin"},
		{"@daily ; @every 90m ; 5 30 2 L * *", "", "CRON_TZ=UTC 0 0 * * * ; @every 1h30m0s ; 5 30 2 L * *",
			"at 00:00 every day; every 90 minutes, counted from 1970-01-01 00:00 UTC; and at 02:30:05 on the last day of the month, UTC"},
		{zoned + " ; @every 84h", "", "CRON_TZ=America/New_York 0 9 * * 1-5 ; CRON_TZ=Europe/London 0 14 * * 1-5 ; @every 84h0m0s",
			"at 09:00 on Monday to Friday, America/New_York; at 14:00 on Monday to Friday, Europe/London; and every 84 hours, counted from 1970-01-01 00:00 UTC"},
		{"@every 5m ; @every 7m", "Asia/Tokyo", "@every 5m0s ; @every 7m0s",
			"every 5 minutes, counted from 1970-01-01 00:00 UTC; and every 7 minutes, counted from 1970-01-01 00:00 UTC"},
		{"ncrontab 0 0 13 * 5 ; 0 0 1 * 1", "", "CRON_TZ=UTC ncrontab 0 0 13 * 5 ; 0 0 1 * 1",
			"at 00:00 on day 13 of the month if it is Friday; and at 00:00 on day 1 of the month if it is Monday, UTC"},
		{"NCRONTAB 0 0 0 13 * Fri", "", "CRON_TZ=UTC ncrontab 0 0 13 * 5", "at 00:00 on day 13 of the month if it is Friday, UTC"},
		{"ncrontab TZ=UTC 0 0 * Ju M-T", "", "CRON_TZ=UTC ncrontab 0 0 * 6 1-2", "at 00:00 on Monday and Tuesday in June, UTC"},
		{"ncrontab 0 0 * * 5-1", "", "CRON_TZ=UTC ncrontab 0 0 * * 1-5", "at 00:00 on Monday to Friday, UTC"},
		{"@every 90m", "Asia/Tokyo", "@every 1h30m0s", "every 90 minutes, counted from 1970-01-01 00:00 UTC"},
		{"@every  24h", "", "@every 24h0m0s", "every day, counted from 1970-01-01 00:00 UTC"},
		{"@manual", "Asia/Tokyo", "@manual", "by hand alone"},
		{"  ", "", "@manual", "by hand alone"},
		{"@every 1d", "", "@every 24h0m0s", "every day, counted from 1970-01-01 00:00 UTC"},
		{"@every 336h", "", "@every 336h0m0s", "every 14 days, counted from Thursday 1970-01-01 00:00 UTC"},
		{"@every 3601s", "", "@every 1h0m1s", "every 1h0m1s, counted from 1970-01-01 00:00 UTC"},
	} {
		s := parse(t, test.text, test.zone)
		if got := s.String(); got != test.canon {
			t.Errorf("%q: String() = %q, want %q", test.text, got, test.canon)
		}
		if got := s.Words(); got != test.words {
			t.Errorf("%q: Words() = %q, want %q", test.text, got, test.words)
		}
		if again := parse(t, s.String(), ""); again.String() != s.String() || again.Words() != s.Words() {
			t.Errorf("%q: parsed again: %s, %s", test.text, again, again.Words())
		}
	}
}

// TestHash pins the numbers: they may not change from one release to the next.
func TestHash(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"nightly", "H H * * *", "CRON_TZ=UTC 2 20 * * *"},
		{"nightly", "H H(1-4) * * *", "CRON_TZ=UTC 2 1 * * *"},
		{"nightly", "H/15 * * * *", "CRON_TZ=UTC 2-59/15 * * * *"},
		{"hourly", "H/15 * * * *", "CRON_TZ=UTC 5-59/15 * * * *"}, // 20 within the hour, so 5 within 15
		{"nightly", "H(30-59)/10 * * * *", "CRON_TZ=UTC 32-59/10 * * * *"},
		{"nightly", "H H H H H H", "CRON_TZ=UTC 10 2 20 26 9 1"},
		{"hourly", "H H * * *", "CRON_TZ=UTC 20 14 * * *"},
	} {
		s, err := schedule.Parse(test.text, "", test.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.String(); got != test.want {
			t.Errorf("%s %q: got %s, want %s", test.name, test.text, got, test.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, test := range []struct{ text, zone, want string }{
		{"30 2 * * *", "", ""},
		{"*/15 * * * *", "Europe/Berlin", ""},
		{"0 12 * * *", "Europe/Berlin", ""},
		{"0 0 28 * *", "", ""},
		{"0 0 1-31 * *", "", ""},
		{"@every 5m", "", ""},
		{"@manual", "", ""},
		{"", "Europe/Berlin", "no schedule: it runs when that is ordered, and never else; @manual says that it is meant"},
		{"30 2 * * *", "Europe/Berlin", "02:30 on 2026-03-29 does not exist in Europe/Berlin, where clocks go forward: it runs at 03:00 on 2026-03-29" +
			" | 02:30 on 2026-10-25 occurs twice in Europe/Berlin, where clocks go back: it runs the first time only"},
		{"*/30 2 * * *", "Europe/Berlin", "02:00 on 2026-03-29 does not exist in Europe/Berlin, where clocks go forward: no run for it" +
			" | 02:00 on 2026-10-25 occurs twice in Europe/Berlin, where clocks go back: it runs both times"},
		{"0 0 * * *", "America/Santiago", "00:00 on 2026-09-06 does not exist in America/Santiago, where clocks go forward: it runs at 01:00 on 2026-09-06"},
		{"0 0 13 * 5", "", "both day-of-month and day-of-week are set: either will do, in ncrontab both must match"},
		{"ncrontab 0 0 13 * 5", "", "both day-of-month and day-of-week are set: both must match, in cron either would do"},
		{"0 0 */2 * 5", "", "day-of-month field: */2 is uneven: it begins again at 1, the last before is 31" +
			" | both day-of-month and day-of-week are set: either will do, as in robfig/cron; crontab(5) wants both, since one begins with *"},
		{"*/35 * * * *", "", "minute field: */35 is uneven: it begins again at 0, the last before is 35"},
		{"0 */5 * * *", "", "hour field: */5 is uneven: it begins again at 0, the last before is 20"},
		{"50/15 * * * *", "", "minute field: the step in 50/15 is longer than its range: 50 alone matches"},
		{"* 2 * * *", "", "* in the minute field: 60 runs in each hour that matches"},
		{"* 0 * * * *", "", "* in the second field: 60 runs in each minute that matches"},
		{"0 0 29 2 *", "", "day 29 of February: it runs in leap years only"},
		{"0 0 29 * *", "", "day 29 occurs in February in leap years only: no run for it in other years"},
		{"0 0 30 * *", "", "day 30 does not occur in February: no run for it there"},
		{"0 0 1,31 * *", "", "day 31 does not occur in February, April, June, September and November: no run for it there"},
		{"0 0 31 1 *", "", ""},
		{"0 0 */2 * 1-5/2", "", "day-of-month field: */2 is uneven: it begins again at 1, the last before is 31" +
			" | both day-of-month and day-of-week are set: either will do, as in robfig/cron; crontab(5) wants both, since one begins with *"},
		{"0 0 1-31/2 * 5", "", "both day-of-month and day-of-week are set: either will do, in ncrontab both must match"},
		{"ncrontab 0 0 */3 * 5", "", "day-of-month field: */3 is uneven: it begins again at 1, the last before is 31" +
			" | both day-of-month and day-of-week are set: both must match, in cron either would do"},
		{"0 0 L,LW,L-27,15W,28W * friL", "", "both day-of-month and day-of-week are set: either will do, in ncrontab both must match"},
		{"0 0 L,LW,L-27,15W,28W * *", "", ""},
		{"0 0 L-28 * *", "", "L-28 occurs in February in leap years only: no run for it in other years"},
		{"0 0 29W 2 *", "", "29W of February: it runs in leap years only"},
		{"0 0 L-30W,30W * *", "", "30W does not occur in February: no run for it there" +
			" | L-30W does not occur in February, April, June, September and November: no run for it there"},
		{"0 0 * * fri#5", "", "not every month has a 5th Friday: no run for it in the others"},
		{"0 0 * * friL,fri#4", "", ""},
		{"0 0 L-30,? * *,fri#5", "", ""},
		{"0 0 1 * 1-5/2", "", "both day-of-month and day-of-week are set: either will do, in ncrontab both must match"},
		{"0 0 1 * */2", "", "day-of-week field: */2 is uneven: it begins again at 0, the last before is 6" +
			" | both day-of-month and day-of-week are set: either will do, as in robfig/cron; crontab(5) wants both, since one begins with *"},
		{"30 * * * * ; 30 12 * * *", "America/New_York", ""},
		{"30 2 * * * ; 0 12 * * 0", "", ""},
		{"30 2 * * 1 ; 0 0 31 5,6 *", "", "\"0 0 31 5-6 *\": day 31 does not occur in June: no run for it there"},
		{"0 0 * * 1 ; 0 0,12 * * 1-5", "", "\"0 0 * * 1\" adds no tick to \"0 0,12 * * 1-5\""},
		{"0 12 * * * ; 0 12 L * * ; 0 9 * * *", "", "\"0 12 L * *\" adds no tick to \"0 12 * * *\""},
		{"@every 5m ; @every 15m", "", "\"@every 15m0s\" adds no tick to \"@every 5m0s\""},
		{"30 2 * * 0 ; 0 12 * * *", "Europe/Berlin", "\"30 2 * * 0\": 02:30 on 2026-03-29 does not exist in Europe/Berlin, where clocks go forward: it runs at 03:00 on 2026-03-29" +
			" | \"30 2 * * 0\": 02:30 on 2026-10-25 occurs twice in Europe/Berlin, where clocks go back: it runs the first time only"},
		{"0 15 10 ? * 2-6", "", "day-of-week field: with ? it may be Quartz's, where Sunday is 1; here 2-6 is Tuesday to Saturday: write names"},
		{"0 15 10 ? * mon,6#3", "", "day-of-week field: with ? it may be Quartz's, where Sunday is 1; here mon,6#3 is Monday and the 3rd Saturday of the month: write names"},
		{"0 15 10 ? * mon-fri", "", ""},
		{"0 15 10 ? * fri#3", "", ""},
		{"0 15 10 1 * ?", "", ""},
		{"15 10 ? * 2-6", "", ""},
		{"0 15 10 * * 2-6", "", ""},
		{"ncrontab 0 0 * * fri-mon", "", "day-of-week field: the ncrontab dialect reads fri-mon as 1-5, not around the end"},
		{"@every 5m", "Europe/Berlin", "@every counts from 1970-01-01 00:00 UTC: the zone Europe/Berlin has no effect"},
	} {
		got := strings.Join(parse(t, test.text, test.zone).Warnings(utc(t, "2026-01-01 00:00:00")), " | ")
		if got != test.want {
			t.Errorf("%q %s:\n got %s\nwant %s", test.text, test.zone, got, test.want)
		}
	}
	later := parse(t, "30 2 * * *", "Europe/Berlin").Warnings(utc(t, "2026-04-01 00:00:00"))
	if len(later) != 2 || !strings.HasPrefix(later[1], "02:30 on 2027-03-28 does not exist") {
		t.Errorf("Warnings after the gap of 2026 = %q, want the fold and the next gap", later)
	}
}

// TestLocation has the zone beside the text, in the text, and nowhere.
func TestLocation(t *testing.T) {
	for _, test := range []struct{ text, zone, want string }{
		{"30 2 * * *", "Europe/Berlin", "Europe/Berlin"},
		{"CRON_TZ=Asia/Tokyo 30 2 * * *", "", "Asia/Tokyo"},
		{"TZ=Asia/Tokyo @every 5m", "", "Asia/Tokyo"},
		{"30 2 * * *", "", "UTC"},
	} {
		if got := parse(t, test.text, test.zone).Location().String(); got != test.want {
			t.Errorf("%q %s: got %s, want %s", test.text, test.zone, got, test.want)
		}
	}
	if got := parse(t, zoned, "").Zones(); !slices.Equal(got, []string{"America/New_York", "Europe/London"}) {
		t.Errorf("got the zones %q", got)
	}
	if _, err := schedule.LoadZone("Local"); err == nil || !strings.HasPrefix(err.Error(), "differs between machines; want") {
		t.Errorf("LoadZone(Local): got %v", err)
	}
}
