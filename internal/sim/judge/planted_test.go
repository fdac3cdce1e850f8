package judge

// planted are logs that violate one property each with one text in the place of $, and are fine with another one. Those of single
// faults hold to the tenth of a second.
var planted = []struct{ property, name, text, bad, fine string }{
	{"S1 exclusive", "two replicas run a job", again + "run 16 19 b", "18", "15"},
	{"S1 exclusive", "neither was suspended long enough", "$; of rerun; hold a x 10; run 11 18 a; " + further + "run 16 19 b",
		"4 freeze Replica=a End=5", "13 freeze Replica=a End=19"},
	{"S1 exclusive", "a slot of a lock has one holder", "lock 1 9 c1 0; lock $", "3 9 c3 0", "2 9 c2 1"},
	{"S1 exclusive", "a group has one", "of g1; tick a x 10; of g2; tick b y 10 $", "10", "14"},
	{"S1 covered", "a context outlives its lease", "hold a x 10; run 11 26 a; $; 40 asked", "", "req 20 a renew x"},
	{"S1 covered", "unless an operator ends that", "hold a x 10; req 11.5 operator $; run 11 20 a", "release x", "break -"},
	{"S2 lease", "a write without a lease", "$; miss 10 a x 10", "", "req 9 a acquire x"},
	{"S2 lease", "a write that names no version", "hold a x 10 Match=$", "false", "true"},
	{"S2 lease", "an id of two replicas", "tick a x 10; tick b $ 20", "x", "y"},
	{"S2 lease", "an id for two acquisitions", "$; req 20 a acquire x", "tick a x 10", "req 19.5 a acquire x"},
	{"S2 lease", "an entry made over one", "tick a x 10; write 20 b create - Status=$", "200", "409"},
	{"S2 release", "a release under a run", "hold a x 10; run 11 12 a; $", "req 11.9 a release x Status=0",
		"finish 12.1 a x succeeded; req 12.2 a release x"},
	{"S2 release", "before the outcome is written", "hold a x 10 Record.Run.Armed=$; run 11 12 a; req 12.2 a release x",
		"false", "true"},

	{"S3 claim", "a run without a claim", "hold a x 10; run 11 12 a Token=$", "102", "101"},
	{"S3 claim", "a run of another's claim", "hold a x 10; run 11 12 $", "b", "a"},
	{"S3 claim", "a claim runs once", "hold a x 10; run 11 12 a; run 13 14 a Try=$", "1", "2"},
	{"S3 claim", "another tick than the claim's", "hold a x 10; run 11 12 a Attempt=$", "2", "1"},
	{"S3 claim", "a claim that was taken back", "hold a x 10; $; write 11 a take_back x Record.Run.Status=idle Record.Run.Tick=0",
		"run 12 13 a", ""},
	{"S3 token", "a token that does not grow", "tick a x 10; req 19 operator delete -; write 19.1 b create - Record.Token=$; " +
		"hold b y 20",
		"90", "101"},
	{"S3 token", "another run under a token", "tick a x 10; req 20 a acquire y; write 20.2 a settle y Record.$=2",
		"Run.Attempt", "Failures"},

	{"S4 attempt", "a tick is claimed again without Rerun", "of $; " + second + "claim 15.3 b y 10 Record.Run.Attempt=2",
		"job", "rerun"},
	{"S4 attempt", "an attempt is left out", "of rerun; " + second + "claim 15.3 b y 10 Record.Run.Attempt=$", "3", "2"},
	{"S4 attempt", "an attempt is claimed twice", "of rerun; " + second + "claim 15.3 b y 10 Record.Run.Attempt=$", "1", "2"},
	{"S4 attempt", "an attempt under the same lease", "of rerun; hold a x 10; run 11 12 a; $ 10 Record.Run.Attempt=2",
		"claim 15.3 a x", "req 14 operator break -; req 15 b acquire y; claim 15.3 b y"},
	{"S4 once", "a tick that has succeeded begins again", "hold a x 10; run 11 12 a; finish $ a x succeeded; run 13 14 a Try=2",
		"12.2", "14.2"},
	{"S4 once", "the work of a key begins again", "of key; holds 10 11 a x Result=$; req 11.4 a release x; holds 20 21 b y; " +
		"finish 21.2 b y succeeded; req 21.4 b release y", "well; finish 11.2 a x succeeded", "failed; finish 11.2 a x failed"},

	{"S5 ledger", "the watermark goes back", "tick a x 10; req 20 a acquire y; write 20.2 a settle y Record.Watermark=$",
		"0", "10"},
	{"S5 ledger", "a claim leaves a tick out", "tick a x $", "20", "10"},
	{"S5 ledger", "a claim of what is no tick", "hold a x $ Record.Definition.Spec=new", "12", "20"},
	{"S5 ledger", "a range is counted wrongly", "req 39 a acquire x; range 40 a x 30 $", "2", "3"},
	{"S5 ledger", "an outcome of what is no tick", "req 9 a acquire x; range 10 a x $ 0", "12", "20"},
	{"S5 facts", "a success of a run that failed", "hold a x 10; run 11 12 a Result=failed; finish 12.2 a x $",
		"succeeded", "failed"},
	{"S5 facts", "a failure of a run that succeeded", "hold a x 10; run 11 12 a; finish 12.2 a x $", "failed", "succeeded"},
	{"S5 facts", "a skip of a run that did not skip", "hold a x 10; run 11 12 a Result=$; finish 12.2 a x skipped",
		"well", "skipped"},
	{"S5 facts", "a tick is missed that was claimed", "$; miss 11 a x 10", "hold a x 10", "req 9 a acquire x"},
	{"S6 early", "an answer proves that it is too early", "req $+-0.6 a acquire x; claim $+-0.4 a x 10; run $ 11 a", "8", "9.9"},
	{"S7 checkpoint", "not what was saved last", "hold a x 10; write 11 a save x Note=1; write 12 a save x Note=2; " +
		"13 loaded Replica=a Note=$",
		"1", "2"},
	{"S7 fence", "a living context is refused", "hold a x 10; run 11 15 a Cancelled=$; " +
		"13 effect Replica=a Token=101 Sent=12.9 Result=refused",
		"14", "12"},
	{"S7 fence", "an older token is taken", "tick a x 10; tick b y 20; 21 effect Replica=a Token=102 Sent=20.9 Result=well; " +
		"22 effect Replica=a Token=101 Sent=21.9 Result=$", "well", "refused"},

	{"S8 told", "nil without a call", "$; " + returns, "", "lock 2 8 c1 0"},
	{"S8 told", "two calls", "lock 2 4 c1 0; $; " + returns, "lock 5 8 c1 1 ID=d", ""},
	{"S8 told", "a return before the function's", "lock 2 $ c1 0; " + returns, "10", "9"},
	{"S8 told", "nil of a function that failed", "lock 2 8 c1 0 Result=failed; " + returns + " Result=$", "well", "failed"},
	{"S8 told", "held before the caller's time is over", returns + " Result=held $", "", "Cancelled=9"},
	{"S8 told", "one ID for two functions", "lock 2 8 c1 0; lock 2 8 c2 1 ID=$", "c1", "c2"},
	{"S8 told", "done, and no replica has done it", "of key; holds 10 11 a x Result=$; req 11.4 a release x; " +
		"1 called Op=once Call=c1 Replica=a End=20 Result=well", "failed; finish 11.2 a x failed", "well; " +
		"finish 11.2 a x succeeded"},
	{"S8 told", "given up too soon", "$of key; holds 10 11 a x Result=failed; finish 11.2 a x failed; req 11.4 a release x; " +
		"1 called Op=once Call=c1 Replica=a End=20 Result=failed", "", "tries; "},
	{"S8 told", "an outcome on demand that is not written", "demand 2 a x r1 2; finish 3.2 a x succeeded; " +
		"4 answered Replica=a Request=r1 Result=$", "failed", "succeeded"},
	{"S8 status", "a status of another record", "hold a x 10 Record.Writer=mine; 12 listed Record.Writer=$ Sent=11 Heard=12",
		"other", "mine"},
	{"S8 events", "an event without a write", "tick a x 10; " + ended + "Note=$", "failed", "succeeded"},
	{"S8 events", "an event twice", "tick a x 10; " + ended + "Note=succeeded; $", ended + "Note=succeeded", ""},
	{"S9 orders", "a paused job begins", "order $ pause -; tick a x 10", "1", "5"},
	{"S9 orders", "what was ordered runs twice", "order 1 run r1; demand 2 a x r1 2; demand 20 b y $ 20", "r1", "r2"},
	{"S9 closed", "a spoilt entry is written", "tick a x 10; 14 spoilt Note=garbage End=$; req 14 operator write -; " +
		"write $ operator write -; hold b y 20", "60", "16"},
	{"S10 after", "a follower before its predecessor", "tick a x 10; of after; tick b y 10 $", "10", "14"},
	{"S10 after", "a follower after a failure", "hold a x 10; run 11 12 a Result=failed; finish 12.2 a x failed; of $; " +
		"tick b y 10 14",
		"after", "any"},
	{"S11 stop", "a lease that is acquired after the tick", "5 stop Replica=a End=30; tick a x 10 $", "12", "10.5"},
	{"S11 stop", "a run that lives after the grace", "5 stop Replica=a End=$; tick a x 10", "11", "12.1"},
	{"S12 previous", "not the last success", "tick a x 10; hold a y 20; run 20.7 22 a Previous=$", "0", "10"},
	{"S13 cause", "cancelled, and that was not ordered", "$; hold a x 10; run 11 25 a Cancelled=21 Why=cancelled",
		"", "order 11 cancel -"},
	{"S13 cause", "replaced by nothing", "of $; hold a x 10; run 11 25 a Cancelled=21 Why=replaced", "job", "replace"},
	{"S13 cause", "stalled without a limit", "hold a x 10; run 11 25 a Cancelled=21 Why=$", "stalled", "lost"},

	{"L1 settled", "old ticks have no outcome", "of g1; ticks 10 $; " + heals, "10", "30"},
	{"L1 in time", "a tick does not begin", "ticks 10 190; $; ticks 210 280; " + heals,
		"req 208 a acquire s; miss 208.2 a s 200; req 208.4 a release s", "tick a x 200"},
	{"L2 runs", "a singleton does not run", "of one; holds 10 $ a x; " + heals, "100", "280"},
	{"L3 served", "a caller waits", "40 called Replica=a Op=do Lock=lock Call=c1 Result=held End=$ Cancelled=$; " + heals,
		"200", "60"},
	{"L4 orders", "an order without an outcome", "order 40 run r1; ticks 10 40; $; ticks 50 280; " + heals,
		"", "demand 43 b d r1 43; finish 44.2 b d succeeded; req 44.4 b release d"},
	{"L4 orders", "a backfill with a tick left out", "order 35 backfill backfill/7; ticks 10 40; demand 43 b f backfill/7 -20; " +
		"finish 44.2 b f succeeded Record.Backfill.Seq=7 Record.Backfill.Counts.succeeded=$; req 44.4 b release f; ticks 50 280; " +
		heals,
		"1", "2"},
	{"L5 spread", "one replica holds both shards", "of s-0; holds 10 280 a x; of s-1; holds 10 280 $ y; " + heals, "a", "b"},
	{"L6 health", "a job is broken", "hold a x 10 Status=$; 280 health Replica=a Op=broken", "200", "403"},
	{"L7 budget", "too many requests", "ticks 10 280; each $ 200 0.1 req @ b read -; " + heals, "300", "100"},
	{"Z1 wakes", "no alarm for a tick", "zero; tick a x 3600; $; tick a z 10800",
		"req 7208 a acquire s; miss 7208.2 a s 7200; req 7208.4 a release s", "tick a y 7200"},
	{"Z2 few", "messages that are left", "zero; 4400 mail Replica=a Op=put ID=z End=14400; " +
		"each $ 800 1 @ mail Replica=a Op=put ID=@ End=14400",
		"3", "1"},
	{"Z3 quiet", "starts for nothing", "zero; each $ 1000 100 @ up Replica=@ Op=for_an_alarm Cause=started_from_zero, @+5 gone Replica=@",
		"40", "4"},

	{"P failover", "kill", "of work; take a 0; meets kill 0; 5 crash Replica=a; take b $", "30.8", "30.6"},
	{"P failover", "suspend", "of work; take a 0 Cancelled=65 End=65; meets suspend 65; take b $", "30.8", "30.6"},
	{"P failover", "cut one", "of work; take a 0 Cancelled=17 End=17; meets cut_one 35; take b $", "30.8", "30.6"},
	{"P failover", "kill ahead", "of work; take a 0 End=1; meets kill_ahead 0 Tick=60; take b $", "87.6", "87.4"},
	{"P thaw", "suspend", "of work; take a 0 End=$; meets suspend 65; take b $+1", "66.1", "66"},
	{"P cut short", "cut one", "of work; take a 0 End=$; meets cut_one 35; take b $+1", "17.6", "17.4"},
	{"P cut short", "cut all", "of work; take a 0 Cancelled=$ End=90; meets cut_all 35; take b $+1", "17.6", "17.4"},
	{"P outage", "a call takes long", cut + "req 10 a renew x Cause=drop Sent=10 Done=10+$", "2.6", "2.5"},
	{"P outage", "many calls", cut + "each $ 10 0.01 req @ a read - Cause=refuse Done=@", "21", "20"},
	{"P outage", "no further renewal", cut + "req 12 a renew x Cause=refuse Sent=12 Done=12; " +
		"req 14 a renew x Cause=refuse Sent=12+$ Done=14",
		"1.6", "1.5"},
	{"P outage", "cut all", "of work; take a 0 Cancelled=17 End=17; meets cut_all 35; take b $", "60.8", "60.6"},
	{"P denied", "the lease is kept", "of work; take a 0 Cancelled=10 End=10; meets deny_one 180; take b $", "95.8", "95.6"},
	{"P denied", "a tick is missed", "of work; take a 0 End=10; meets deny_one 180; take b 90; miss 130 b b90 $", "120", "60"},
	{"P revoked", "unlock", "of work; take a 0 End=$; meets unlock 0; take b $+1", "12.9", "12.7"},
	{"P revoked", "unlock now", "of work; take a 0 End=$; meets unlock_now 0; take b $+1", "12.9", "12.7"},
	{"P unlock", "unlock now", "of work; take a 0 End=10; meets unlock_now 0; take b $", "37.1", "36.9"},
	{"P unlock", "unlock", "of work; take a 0 End=10; meets unlock 0; take b $", "52.1", "51.9"},
	{"P overrun", "of the deaf", "of work; take a 0 Cancelled=10 End=50; meets unlock_the_deaf 0; $ overran Replica=a",
		"13.6", "13.5"},
	{"P stall", "stall", "of work; take a 0 Cancelled=$ End=$; meets stall 0; take b $+1", "13.9", "13.7"},
	{"P replaced", "stall", "of work; take a 0 Cancelled=12 End=21; meets stall 0; take b $", "26.8", "26.6"},
	{"P replaced", "stall of the deaf", "of work; take a 0 Cancelled=12 End=90; meets stall_of_the_deaf 0; take b $",
		"37.8", "37.6"},
	{"P handed over", "hand over", "of work; take a 0 Cancelled=8 End=9; meets hand_over 0; take b $", "18", "17.8"},
	{"P handed over", "terminate", "of work; take a 0 Cancelled=8 End=9; meets terminate 0; take b $; " +
		stop + "10 gone Replica=a",
		"18", "17.8"},
	{"P shutdown", "a job goes on", "of work; take a 0 End=$; meets terminate 0; take b $+1; " + stop + "31 gone Replica=a",
		"30.1", "30"},
	{"P shutdown", "a singleton goes on", "of one; take a 0 End=$; meets terminate 0; take b $+1; req 11 a release a0; " +
		stop + "31 gone Replica=a",
		"11.1", "11"},
	{"P shutdown", "the replica stays", "of work; take a 0 End=10; meets terminate 0; take b 11; " + stop + "$ gone Replica=a",
		"37.3", "37.1"},
	{"P shutdown", "it acquires", "of work; take a 0 End=10; meets terminate 0; take b 11; req $ a acquire z; " +
		stop + "31 gone Replica=a",
		"5.1", "5"},
	{"P shutdown", "it leaves a lease", "of work; take a 0 End=10; meets terminate 0; req 14 a renew a0; req 28 a renew a0; " +
		"req $ a release a0; " +
		stop + "31 gone Replica=a", "32", "30"},
	{"P deploy", "abort", "of work; take a 0 End=4; meets abort 60; write 30 v claim y other; write 300 b progress y other; write $ b claim z", "781", "779"},
	{"P control", "cancel", "of work; take a 0 End=$; meets cancel 0; take b $+1", "14.2", "14"},
	{"P control", "hand over a job", "of work; take a 0 End=$; meets hand_over 0; take b $+1", "40.2", "40"},
	{"P control", "hand over a singleton", "of one; take a 0 End=$; meets hand_over 0; take b $+1", "20.2", "20"},
	{"P deadline", "a late claim", "of prompt; take a 0 End=4; meets run 0; take b $", "72.9", "72.7"},
	{"P deadline", "a late begin", "of work; take a 0 End=4; meets run 0; take b 60 Time=$", "72.6", "72.4"},
	{"P recovered", "a singleton", "of one; take a 0; meets kill 0; 5 crash Replica=a; take b 20 End=$; 210 asked", "189", "200"},
	{"P1 in time", "a job", "of work; take a 0; meets kill 0; 5 crash Replica=a; take b 20 End=30; take b $ End=$+1; take b 181",
		"131", "129"},
	{"P alarm", "kill all", "alarm; of work; take a 0; meets kill_all 0; take b $; take b 121", "87.3", "87.1"},
	{"P hit", "nothing", "of work; take a 0 End=$; meets cancel 0; take b $+1", "4", "5"},
	{"P rest", "the next fault", "of work; take a 0; meets kill 0; 5 crash Replica=a; take b 20; $ single Op=over", "30", "31"},

	{"S5 backfilled", "a tick of another schedule", "of work; demand 100 b x backfill/7 $", "30", "60"},
	{"S8 history", "no line", "of work; demand 100 b x backfill/7 60; 1000 kept Tick=$ Request=backfill/7", "0", "60"},
	{"S8 obeyed", "a run begins late", "of work; take a 0 End=4; order 6 run please; take b $ Request=please", "19.6", "19.4"},
	{"S8 obeyed", "what was ordered under another has no outcome", "of work; take a 0 End=60; order 6 run please; $",
		"", "write 61 a claim x Record.Run.Request=please; finish 62 a x skipped"},
	{"S8 obeyed", "another attempt of what was cancelled", "of work; take a 0 End=4; order 6 cancel - Token=101; take b 7 End=$",
		"15", "14"},
	{"S9 name", "it is taken twice", "of work; order 6 run please; order $ run please", "46000", "92000"},
	{"L1 woken", "for another tick", "of work; take b 60; 60 woken Replica=b Tick=$ End=70", "120", "60"},
	{"L1 wanted", "before that time", "of work; 10 wanted End=60; take b $", "59", "60"},
	{"L1 called", "the others do not go on", "of work; take a 0; meets short_calls 100; take b $", "4", "20"},
	{"L1 swept", "late", "of grouped; take a 0 End=4; 5 healed End=60; 70 swept; take b $ End=140; 150 asked", "131", "128"},
}

// What several of them say.
const (
	again   = "of rerun; hold a x 10; run 11 $ a; " + further
	second  = "hold a x 10; run 11 12 a; " + taken
	taken   = "req 14 operator break -; req 15 b acquire y; "
	further = taken + "claim 15.3 b y 10 Record.Run.Attempt=2; "
	returns = "1 called Replica=a Op=do Lock=lock Call=c1 End=9 Result=well Job="
	ended   = "13 emitted Replica=a Job=job Op=ended Tick=10 Token=101 "
	heals   = "30 healed; 280 asked"
	cut     = "of work; take a 0 End=6; meets cut_one 35; "
	stop    = "5 stop Replica=a End=30; "
)
