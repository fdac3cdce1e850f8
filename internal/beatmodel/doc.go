// Package beatmodel is a model of one blob whose holder is replaced in less time than the service's
// shortest lease takes to expire. Its tests visit every state that the model can reach, in any order of
// events: see [Model.Explore]. Read it to learn the protocol: state.go has what there is, service.go what the
// service does, follower.go and holder.go what the program does, network.go and trouble.go what goes wrong; move.go how a step is noted.
//
// # The protocol
//
// The service's lease, of length D, stays the fence: each write of the record carries its id. The holder also keeps a shorter
// lease L of its own by beats: writes of the record each third of L, which change the ETag.
//
//   - A holder acts until the end of its trust: the smaller of L after the first sending of its last beat that
//     was applied, and D after the sending of its last renewal or acquisition. The claim is the first beat.
//     Trust that is over is final: no answer that is processed later revives it.
//   - Each write of a holder has the lease's id and If-Match, and it waits for one at a time. After an answer
//     that is lost it reads. Its nonce in the record: the write counts, from its first sending. The old ETag: it
//     sends the write again. Another's write, or a refusal: its trust ends. A read extends no trust.
//   - A follower that has seen one ETag for L, from the receipt of the first reading, knows that the trust of
//     that beat is over. It breaks the lease, acquires it and claims, each with that ETag as If-Match.
//     After a refusal it starts over. The L of the record counts.
//   - A break that is due does not wait for a read under way, no read comes between break and acquisition, and no follower
//     acquires before it may claim. Otherwise the next holder may come one L later.
//   - An ETag that stays the same proves nothing if the record's current token has no beats: renewals do not change it. That
//     is so for programs that know of no beats, which copy the field of the last holder, and for leases that are long enough
//     without beats. They are replaced when their lease has expired.
//   - If an operator breaks the lease, a claim waits for one L (or D, without beats) from the first reading
//     that shows it, or for the observation. The operator leaves the record running.
//
// # Time
//
// A tick is a part of L in true time, and the clocks are as wrong as H1 of docs/correctness.md allows. By the
// holder's clock, trust lasts for 99 % of L; if that clock is 1 % slow, for L in true time. By the follower's
// clock an observation takes 101 % of L; if that clock is 1 % fast, L. So both take L ticks, and no tick is to
// spare. The program's further margin of L/6 is left out: it is for the moments between a look at the clock
// and what follows from it (H5). A follower may act at any later time, so better clocks add nothing.
//
// # What is left out
//
// More than one job, and what a record says of ticks; breaks that wait for the lease's end; refusals for other
// reasons than lease and ETag, such as 429, which are like requests that are lost; a service that takes an ETag
// back (H2); replicas with unequal D. The simulation judges deletions, three replicas, and how soon a dead holder
// has a successor. Time is discrete: what needs instants nearer to each other than a tick is found only with a
// larger L, and with L of one tick three of the mistakes are not found.
package beatmodel
