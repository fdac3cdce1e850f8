// Package schedule turns cron text and an IANA time zone into ticks.
//
// A tick is a UTC instant, a whole second, and a pure function of (text, zone, job name): every replica names the same
// ticks, whenever it started. [Parse] refuses what has no ticks; a Schedule never changes and may be shared.
//
// # Text
//
//	30 2 * * *              minute hour day-of-month month day-of-week
//	0 30 2 * * *            the same, seconds first
//	@hourly @daily @midnight @weekly @monthly @yearly @annually
//	@every 5m               multiples of a whole number of seconds since the Unix epoch, whatever the zone
//	@manual                 no tick at all, as an empty text; it runs when that is ordered
//	CRON_TZ=Europe/Berlin 30 2 * * *        (or TZ=) the zone within the text
//	ncrontab 0 0 0 13 * 5   the dialect of Azure Functions
//	30 2 * * 1-5 ; 0 9 * * sat              several texts: a tick of one of them is a tick
//
// An item of a field is *, a value, a range a-b, or one of these with a step: */n, a/n (from a to the field's end), a-b/n.
// Items are joined by commas. A step may not exceed the distance between the field's ends: it would name one value only.
//
// H stands for a number made from the job's name, so that many jobs do not start together: FNV-1a, 64 bits, over the name,
// a zero byte and the field's name as in "minute". H is that number within the field, H(a-b) within a range; H/n and
// H(a-b)/n are every n-th value from such a start below a+n. A day of the month chosen by H is at most 28.
//
// # Ends of months, weekdays, third Fridays
//
//	L        the last day of the month            5L friL      the last Friday of the month
//	L-3      three days before it                 5#3 fri#3    the third Friday, #1 to #5
//	15W      the day from Monday to Friday that is nearest to the 15th, in the same month
//	LW L-3W  the one nearest to the last day, or to three days before it
//
// They are items of lists, and have no ranges and steps. Days of the week are numbered as in cron, not as in Quartz.
//
// # Unions
//
// Prefixes stand before the first text and count for all. Each text is of its own kind, see below. Instants that several texts
// name are one tick. An empty text is refused, and so is a text that says the same as another.
//
// # Dialects
//
//	                        cron (default)               ncrontab
//	both day fields set     day-of-month OR day-of-week  day-of-month AND day-of-week
//	Sunday                  0 or 7                       0
//	names                   three letters: mon, jan      any prefix: m, mond, Monday; the first match counts
//	? in a day field        as *                         refused
//	a range written 5-1     refused                      read as 1-5
//	@daily, @every          accepted                     refused
//	L, 15W, friL, fri#3     accepted                     refused
//
// A day field is set (restricted) unless one of its items is *, ? or */1. So */2 is a restriction, as in robfig/cron;
// crontab(5) takes any field that starts with * as unrestricted. [Schedule.Warnings] points at it.
//
// # Daylight saving time
//
// What counts is the text of the second, minute and hour fields:
//
//	an item has * or /        example           kind
//	in none of the three      30 2 * * *        fixed time
//	                          0 1,13 * * *      fixed time
//	                          0 9-17 * * *      fixed time (also 0-23: every hour named one by one)
//	                          H H * * *         fixed time: H is a number
//	in at least one           0 * * * *         elapsed time
//	                          0 */2 * * *       elapsed time
//	                          */10 2 * * *      elapsed time
//	                          0 8/4 * * *       elapsed time
//	                          * 30 2 * * *      elapsed time (six fields)
//
// A fixed time is due once for every local date that matches: at the first instant at which the zone's clock shows that
// date and time, or has passed it. Hence
//
//	clocks go back            the first of both occurrences, never the second
//	clocks go forward         a time in the gap is due at the first instant after it
//	midnight is in the gap    the same: no day is lost
//	a whole date is missing   the same: at the first instant of the next date
//	several due at once       one tick: an instant is never named twice
//
// Elapsed time follows the clock on the wall: every reading that occurs and matches is a tick, both passes of a fold
// included, and there is nothing for a gap.
//
// # What is not promised
//
// The zone's rules are read for the years 1970 to 2199; before and after, the first and the last offset go on. They come
// from the system's time zone database if there is one, else from the copy embedded here: replicas built from one image
// agree, replicas whose databases differ may not: internal/ticks makes two definitions of a job of them. A tick is sought
// 60 years ahead, enough for 29 February on one weekday: what comes later is none. Leap seconds do not exist.
package schedule
