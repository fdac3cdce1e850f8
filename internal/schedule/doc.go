// Package schedule turns cron text and an IANA time zone into ticks. docs/schedules.md has the texts, the two dialects and what
// becomes of ticks when clocks change; a test reads its tables.
//
// A tick is a UTC instant, a whole second, and a pure function of (text, zone, job name): every replica names the same
// ticks, whenever it started. [Parse] refuses what has no ticks; a Schedule never changes and may be shared.
//
// H stands for a number made from the job's name: FNV-1a, 64 bits, over the name, a zero byte and the field's name as in
// "minute". H is that number within the field, H(a-b) within a range; H/n and H(a-b)/n are every n-th value from such a start
// below a+n.
//
// A step may not exceed the distance between the field's ends: it would name one value only.
//
// A text is of fixed time or of elapsed time: what counts is the text of its second, minute and hour fields. If an item of them
// has * or /, it is elapsed time: every reading of the clock on the wall that occurs and matches is a tick. Otherwise it is a
// fixed time, also 0-23, which names every hour, and H, which is a number. A fixed time is due once for every local date that
// matches: at the first instant at which the zone's clock shows that date and time, or has passed it. So no day is lost, and
// none has two. An instant is never named twice.
//
// # What is not promised
//
// The zone's rules are read for the years 1970 to 2199; before and after, the first and the last offset go on. They come
// from the system's time zone database if there is one, else from the copy embedded here: replicas built from one image
// agree, replicas whose databases differ may not: internal/ticks makes two definitions of a job of them. A tick is sought
// 60 years ahead, enough for 29 February on one weekday: what comes later is none. Leap seconds do not exist.
package schedule
