// Package ticks names the ticks of a job: the ticks of its schedule within the bounds of the job, except on days that
// calendars exclude.
//
// The ticks are made in three steps, each of which follows from the one before alone:
//
//  1. The schedule names ticks: see package schedule.
//  2. The day of a tick is the date that the clock of the zone shows at it. A tick on an excluded day does not exist. With a
//     [Shift] it moves to the nearest day that is not excluded, with the time of day that the clock shows at it: as for a
//     fixed time, to the first instant at which the clock shows that date and time, or has passed it. Ticks that meet are
//     one. A tick moves once, by at most [MaxShift] days; if there is no day that near, it does not exist. A day that the
//     zone leaves out counts as excluded.
//  3. Ticks before From do not exist, nor do those at Until and later.
//
// So a tick that is moved out of the bounds does not exist, and a tick that is moved into them does.
//
// Calendars are asked once for each day, in [New]. What follows is a lookup of bits, so Next and Last do not depend on code
// that may be slow, or that may panic, and they allocate nothing.
package ticks
