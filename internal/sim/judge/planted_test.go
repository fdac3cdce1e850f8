package judge

// planted are logs, a line each, behind their property and what is wrong. Each is fine with the last of the texts in brackets,
// and violates that property alone with any other one. Those of single faults hold to the tenth of a second.
const planted = `
S1 exclusive, two replicas run a job: again [18|15]; run 16 19 b
S1 exclusive, neither was suspended long enough: [4 freeze Replica=a End=5|13 freeze Replica=a End=19]; again 18; run 16 19 b
S1 exclusive, a slot of a lock has one holder: lock 1 9 c1 0; lock [3 9 c3 0|2 9 c2 1]
S1 exclusive, a group has one: of g1; tick a x 10; of g2; tick b y 10 [10|14]
S1 covered, a context outlives its lease: hold a x 10; run 11 26 a; [|req 20 a renew x]; 40 asked
S1 covered, unless an operator ends that: hold a x 10; req 11.5 operator [release x|break -]; run 11 20 a
S2 lease, a write without a lease: [|req 9 a acquire x]; miss 10 a x 10
S2 lease, a write that names no version: hold a x 10 Match=[false|true]
S2 lease, an id of two replicas: tick a x 10; tick b [x|y] 20
S2 lease, an id for two acquisitions: [tick a x 10|req 19.5 a acquire x]; req 20 a acquire x
S2 lease, an entry made over one: tick a x 10; write 20 b create - Status=[200|409]
S2 release, under a run: hold a x 10; run 11 12 a; [req 11.9 a release x Status=0|finish 12.1 a x succeeded; req 12.2 a release x]
S2 release, before the outcome is written: hold a x 10 Record.Run.Armed=[false|true]; run 11 12 a; req 12.2 a release x
S3 claim, a run without a claim, of another's, of another tick: hold a x 10; run 11 12 [a Token=102|b|a Attempt=2|a]
S3 claim, a claim runs once: ran; run 13 14 a Try=[1|2]
S3 claim, it was taken back: hold a x 10; [run 12 13 a|]; write 11 a take_back x Record.Run.Status=idle Record.Run.Tick=0
S3 token, it does not grow: tick a x 10; req 19 operator delete -; write 19.1 b create - Record.Token=[90|101]; hold b y 20
S3 token, another run under it: tick a x 10; req 20 a acquire y; write 20.2 a settle y Record.[Run.Attempt|Failures]=2
S4 attempt, without Rerun, one left out, one twice: of [job|rerun|rerun|rerun]; ran; further Record.Run.Attempt=[2|3|1|2]
S4 attempt, under the same lease: of rerun; ran; [claim 15.3 a x 10|taken; claim 15.3 b y 10] Record.Run.Attempt=2
S4 once, a tick that has succeeded begins again: ran; finish [12.2|14.2] a x succeeded; run 13 14 a Try=2
S4 once, the work of a key begins again: of key; holds 10 11 a x Result=[well|failed]; finish 11.2 a x [succeeded|failed];
	req 11.4 a release x; holds 20 21 b y; finish 21.2 b y succeeded; req 21.4 b release y
S5 ledger, the watermark goes back: tick a x 10; req 20 a acquire y; write 20.2 a settle y Record.Watermark=[0|10]
S5 ledger, a claim leaves a tick out: tick a x [20|10]
S5 ledger, a claim of what is no tick: hold a x [12|20] Record.Definition.Spec=new
S5 ledger, a range is counted wrongly: req 39 a acquire x; outcome 40 a settle x missed 30 0 [2|3]
S5 ledger, an outcome of what is no tick: req 9 a acquire x; outcome 10 a settle x missed [12|20] 0 0
S5 facts, another outcome than the run's: hold a x 10; run 11 12 a Result=[failed|well|well|skipped];
	finish 12.2 a x [succeeded|failed|skipped|skipped]
S5 facts, a tick is missed that was claimed: [hold a x 10|req 9 a acquire x]; miss 11 a x 10
S6 early, an answer proves that: req [8|9.9]+-0.6 a acquire x; claim [8|9.9]+-0.4 a x 10; run [8|9.9] 11 a
S7 checkpoint, not what was saved last: hold a x 10; write 11 a save x Note=1; write 12 a save x Note=2;
	13 loaded Replica=a Note=[1|2]
S7 fence, a living context is refused: hold a x 10; run 11 15 a Cancelled=[14|12];
	13 effect Replica=a Token=101 Sent=12.9 Result=refused
S7 fence, an older token is taken: tick a x 10; tick b y 20; 21 effect Replica=a Token=102 Sent=20.9 Result=well;
	22 effect Replica=a Token=101 Sent=21.9 Result=[well|refused]
S8 told, nil without a call: [|lock 2 8 c1 0]; returns
S8 told, nil after two calls, before the return, after a failure:
	lock 2 [4 c1 0; lock 5 8 c1 1 ID=d|10 c1 0|8 c1 0 Result=failed|8 c1 0]; returns
S8 told, held before the caller's time is over: returns Result=held [|Cancelled=9]
S8 told, one ID for two functions: lock 2 8 c1 0; lock 2 8 c2 1 ID=[c1|c2]
S8 told, done, and no replica has done it, and given up too soon: of [key|key|tries]; holds 10 11 a x Result=failed;
	finish 11.2 a x failed; req 11.4 a release x; 1 called Op=once Call=c1 Replica=a End=20 Result=[well|failed|failed]
S8 told, an outcome that is not written: demand 2 a x r1 2; finish 3.2 a x succeeded;
	4 answered Replica=a Request=r1 Result=[failed|succeeded]
S8 status, of another record: hold a x 10 Record.Writer=mine; 12 listed Record.Writer=[other|mine] Sent=11 Heard=12
S8 events, without a write, twice: tick a x 10; ended [Note=failed|Note=succeeded; ended|]
S9 orders, a paused job begins: order [1|5] pause -; tick a x 10
S9 orders, what was ordered runs twice: order 1 run r1; demand 2 a x r1 2; demand 20 b y [r1|r2] 20
S9 closed, a spoilt entry is written: tick a x 10; 14 spoilt Note=garbage End=[60|16]; req 14 operator write -;
	write [60|16] operator write -; hold b y 20
S10 after, a follower before its predecessor: tick a x 10; of after; tick b y 10 [10|14]
S10 after, after a failure: hold a x 10; run 11 12 a Result=failed; finish 12.2 a x failed; of [after|any]; tick b y 10 14
S11 stop, a lease that is acquired after the tick: stop; tick a x 10 [12|10.5]
S11 stop, a run that lives after the grace: stop End=[11|12.1]; tick a x 10
S12 previous, not the last success: tick a x 10; hold a y 20; run 20.7 22 a Previous=[0|10]
S13 cause, what was not ordered: [|order 11 cancel -]; hold a x 10; run 11 25 a Cancelled=21 Why=cancelled
S13 cause, replaced by nothing: of [job|replace]; hold a x 10; run 11 25 a Cancelled=21 Why=replaced
S13 cause, stalled without a limit: hold a x 10; run 11 25 a Cancelled=21 Why=[stalled|lost]
L1 settled, old ticks have no outcome: of g1; each [1|3] 10 10 tick a @ @; heals
L1 in time, a tick does not begin: each 19 10 10 tick a @ @; [skip 200|tick a x 200]; each 8 210 10 tick a @ @; heals
L2 runs, a singleton does not run: of one; holds 10 [100|280] a x; heals
L3 served, a caller waits: 40 called Replica=a Op=do Lock=lock Call=c1 Result=held [End=200 Cancelled=200|End=60 Cancelled=60]; heals
L4 orders, no outcome: order 40 run r1; each 4 10 10 tick a @ @; [|filled r1 43]; each 24 50 10 tick a @ @; heals
L4 orders, a backfill with a tick left out: order 35 backfill backfill/7; each 4 10 10 tick a @ @;
	filled backfill/7 -20 Record.Backfill.Seq=7 Record.Backfill.Counts.succeeded=[1|2]; each 24 50 10 tick a @ @; heals
L5 spread, one replica holds both shards: of s-0; holds 10 280 a x; of s-1; holds 10 280 [a|b] y; heals
L6 health, a job is broken: hold a x 10 Status=[200|403]; 280 health Replica=a Op=broken
L7 budget, too many requests: each 28 10 10 tick a @ @; each [300|100] 200 0.1 req @ b read -; heals
Z1 wakes, no alarm for a tick: zero; tick a x 3600; [skip 7200|tick a y 7200]; tick a z 10800
Z2 few, messages that are left: zero; 4400 mail Replica=a Op=put ID=z End=14400;
	each [3|1] 800 1 @ mail Replica=a Op=put ID=@ End=14400
Z3 quiet, starts for nothing: zero; each [40|4] 1000 100 start @
P goes on: of work; take a 0; meets kill 0; crash; take b [30.8|30.6]
P goes on: of work; take a 0 Cancelled=65 End=65; meets suspend 65; take b [30.8|30.6]
P goes on: of work; take a 0 Cancelled=17 End=17; meets cut_one 35; take b [30.8|30.6]
P ahead: of work; take a 0 End=1; meets kill_ahead 0 Tick=60; take b [87.6|87.4]
P ends: of work; take a 0 End=[66.1|66]; meets suspend 65; take b 67
P ends: of work; take a 0 End=[17.6|17.4]; meets cut_one 35; take b 18
P ends: of work; take a 0 Cancelled=[17.6|17.4] End=90; meets cut_all 35; take b 18
P outage, a call takes long: cut; req 10 a renew x Cause=drop Sent=10 Done=10+[2.6|2.5]
P outage, many calls: cut; each [21|20] 10 0.01 req @ a read - Cause=refuse Done=@
P outage, no further renewal: cut; req 12 a renew x Cause=refuse Sent=12 Done=12;
	req 14 a renew x Cause=refuse Sent=12+[1.6|1.5] Done=14
P goes on: of work; take a 0 Cancelled=17 End=17; meets cut_all 35; take b [60.8|60.6]
P goes on, who may not write: of work; take a 0 Cancelled=10 End=10; meets deny_one 180; take b [95.8|95.6]
P denied, a tick is missed: of work; take a 0 End=10; meets deny_one 180; take b 90; miss 130 b b90 [120|60]
P ends: of work; take a 0 End=[12.9|12.7]; meets unlock 0; take b 14
P ends: of work; take a 0 End=[12.9|12.7]; meets unlock_now 0; take b 14
P goes on: of work; take a 0 End=10; meets unlock_now 0; take b [37.1|36.9]
P goes on: of work; take a 0 End=10; meets unlock 0; take b [52.1|51.9]
P overrun: of work; take a 0 Cancelled=10 End=50; meets unlock_the_deaf 0; [13.6|13.5] overran Replica=a
P ends: of work; take a 0 End=[13.9|13.7]; meets stall 0; take b 15
P goes on: of work; take a 0 Cancelled=12 End=21; meets stall 0; take b [26.8|26.6]
P goes on: of work; take a 0 Cancelled=12 End=90; meets stall_of_the_deaf 0; take b [37.8|37.6]
P goes on: of work; take a 0 Cancelled=8 End=9; meets hand_over 0; take b [18|17.8]
P goes on: of work; take a 0 Cancelled=8 End=9; meets terminate 0; take b [18|17.8]; stop; 10 gone Replica=a
P ends, a job goes on: of work; take a 0 End=[30.1|30]; meets terminate 0; take b 31; stopped
P ends, a singleton does: of one; take a 0 End=[11.1|11]; meets terminate 0; take b 12; req 11 a release a0; stopped
P shutdown, the replica stays: of work; take a 0 End=10; meets terminate 0; take b 11; stop; [37.3|37.1] gone Replica=a
P shutdown, it acquires: of work; take a 0 End=10; meets terminate 0; take b 11; req [5.1|5] a acquire z; stopped
P shutdown, it leaves a lease: of work; take a 0 End=10; meets terminate 0; req 14 a renew a0; req 28 a renew a0;
	req [32|30] a release a0; stopped
P deploy: of work; take a 0 End=4; meets abort 60; write 30 v claim y other; write 300 b progress y other; write [781|779] b claim z
P ends: of work; take a 0 End=[40.2|40]; meets hand_over 0; take b 41
P ends: of one; take a 0 End=[20.2|20]; meets hand_over 0; take b 21
P deadline, a late claim: of prompt; take a 0 End=4; meets run 0; take b [72.9|72.7]
P deadline, a late begin: of work; take a 0 End=4; meets run 0; take b 60 Time=[72.6|72.4]
P recovered, a singleton: of one; take a 0; meets kill 0; crash; take b 20 End=[189|200]; 210 asked
P recovered, a job: of work; take a 0; meets kill 0; crash; take b 20 End=30; take b [131|129] End=140; take b 181
P alarm: scaled; of work; take a 0; meets kill_all 0; take b [87.3|87.1]; take b 121
P hit, nothing: of work; take a 0 End=[4|5]; meets cancel 0; take b 6
P goes on, the next fault: of work; take a 0; meets kill 0; crash; take b 20; [30|31] single Op=over
S5 ledger, a tick of another schedule: demand 100 b x backfill/7 [35|30]
S8 history, no line: of work; demand 100 b x backfill/7 60; 1000 kept Tick=[0|60] Request=backfill/7
S8 obeyed, a run begins late: of work; take a 0 End=4; order 6 run please; take b [19.6|19.4] Request=please
S8 obeyed, ordered under another, and without an outcome: of work; take a 0 End=60; order 6 run please;
	[|write 61 a claim x Record.Run.Request=please; finish 62 a x skipped]
S8 obeyed, another attempt of what was cancelled: of work; take a 0 End=4; order 6 cancel - Token=101; take b 7 End=[15|14]
S8 obeyed, a name again, and it does not run again: of work; order 6 run please; take b 7 Request=please; [order 100 run please|]
L1 woken, for another tick: of work; take b 60; 60 woken Replica=b Tick=[120|60] End=70
L1 wanted, before that time: of work; 10 wanted End=60; take b [59|60]
P goes on, calls that are short: of work; take a 0; meets short_calls 100; crash; take b [101|99]
P recovered, a job of a group: of grouped; take a 0 End=4; meets sweep 0; take b [131|128] End=140; take b 181
`
