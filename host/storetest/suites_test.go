package storetest_test

import (
	"maps"
	"sync"
	"testing"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

type suite struct {
	harness storetest.Harness
	fails   string // at least these
	passes  string // at least these, to tell a careful failure from a broken suite
	says    string
}

// suites are run in another process, because they have to fail.
var suites = map[string]suite{
	"renew takes any id": {harness: leases[renewsAny](),
		fails: "Outcome/leased/renew-other Outcome/expired/renew-other Late/renew Expiry/taken", passes: "Outcome/expired/renew-own Race/counter"},
	"a read is torn": {harness: memory[tears](),
		fails: "Race/view", passes: "Race/counter Create/entry"},
	"write ignores the ETag": {harness: leases[writesOver](),
		fails: "ETag/write-old Race/write Repeat/write", passes: "ETag/acquire Outcome/leased/write-other"},
	"acquire ignores the ETag": {harness: leases[acquiresAnyway](),
		fails: "ETag/acquire Late/acquire-written Repeat/acquire-after-write", passes: "ETag/write-old Outcome/leased/acquire-other"},
	"a save ignores the ETag": {harness: leases[savesOver](),
		fails: "Keep/old-etag Keep/race", passes: "Keep/other Keep/save"},
	"a write empties the checkpoint": {harness: leases[empties](),
		fails: "Keep/write", passes: "Keep/save Keep/through"},
	"release frees anybody": {harness: leases[releasesAny](),
		fails:  "Outcome/leased/release-other Late/release Late/release-expired Outcome/released/release-own",
		passes: "Outcome/leased/release-own Late/write"},
	"an expired lease may write": {harness: leases[writesLate](),
		fails: "Outcome/expired/write-own Expiry/revived Expiry/write-keeps", passes: "Outcome/leased/write-other Late/write"},
	"a held lease may be acquired": {harness: leases[acquiresHeld](),
		fails: "Outcome/leased/acquire-other Outcome/breaking/acquire-other Race/acquire Late/acquire-held", passes: "Outcome/available/acquire-other"},
	"leases end early": {harness: virtual(func() store.Store { return &local.Memory{Now: hurried()} }),
		fails: "Expiry/length Expiry/renewed", passes: "Expiry/revived Late/renew"},
	"a write serves any id": {harness: leases[writesForAny](),
		fails: "Outcome/leased/write-other Late/write Race/acquire", passes: "Late/renew"},
	"the holder cannot acquire again": {harness: leases[acquiresOnce](),
		fails: "Outcome/leased/acquire-own Repeat/acquire", passes: "Outcome/leased/acquire-other"},
	"what ended is not free": {harness: leases[acquiresFresh](),
		fails: "Outcome/expired/acquire-own Outcome/broken/acquire-other Race/acquire-expired", passes: "Outcome/available/acquire-own"},
	"any length goes": {harness: leases[acquiresAnyLength](),
		fails: "Limits", passes: "Expiry/length"},
	"nobody may write": {harness: calls(lost, "write"),
		fails: "Outcome/leased/write-own Outcome/breaking/write-own Record/kept", passes: "Outcome/leased/release-own"},
	"nobody may renew": {harness: calls(lost, "renew"),
		fails: "Outcome/leased/renew-own Outcome/expired/renew-own", passes: "Outcome/broken/renew-own"},
	"expired is lost": {harness: leases[renewsLive](),
		fails: "Outcome/expired/renew-own Expiry/revived ETag/expiry", passes: "Outcome/leased/renew-own"},
	"a release does nothing": {harness: calls(nothing, "release"),
		fails: "Outcome/leased/release-own Outcome/broken/release-own Repeat/acquire", passes: "Create/leased"},
	"equal writes are one": {harness: leases[writesNews](),
		fails: "ETag/write", passes: "ETag/lease-calls"},
	"acquire has no ETag": {harness: calls(unmarked, "acquire"),
		fails: "ETag/told", passes: "ETag/told-by-save ETag/write"},
	"renew has no ETag": {harness: calls(unmarked, "renew"),
		fails: "ETag/told", passes: "ETag/told-by-save ETag/write Outcome/leased/renew-own"},
	"write has no ETag": {harness: calls(unmarked, "write"),
		fails: "ETag/told", passes: "ETag/told-by-save ETag/lease-calls"},
	"save has no ETag": {harness: calls(unmarked, "save"),
		fails: "ETag/told-by-save", passes: "ETag/told ETag/write"},
	"refusals are hidden": {harness: calls(hidden),
		fails: "Race/counter Outcome/available/renew-other Outcome/released/write-own", passes: "Create/entry"},
	"leases ignore contexts": {harness: calls(unheard),
		fails: "Context/acquire Context/renew Context/write Context/release Context/save Context/load", passes: "Context/create"},
	"a save is but a write": {harness: leases[forgets](),
		fails: "Keep/save Keep/bytes Keep/through", passes: "Keep/new Outcome/leased/save-own"},
	"a checkpoint's length is the entry's": {harness: memory[measures](),
		fails: "Keep/length", passes: "Keep/save"},
	"checkpoints serve any id": {harness: leases[keepsForAny](),
		fails: "Keep/other Keep/late Outcome/leased/save-other Outcome/breaking/load-other", passes: "Keep/old-etag"},
	"save and load renew": {harness: calls(renewed, "save", "load"),
		fails: "Keep/expired Keep/no-renewal Outcome/expired/save-own Outcome/expired/load-own", passes: "Keep/other Keep/late"},
	"equal saves are one": {harness: leases[savesNews](),
		fails: "Keep/save-same", passes: "Keep/save"},
	"no checkpoint is one": {harness: leases[nulls](),
		fails: "Keep/new Keep/save", passes: "Keep/through"},
	"nobody may save": {harness: calls(lost, "save", "load"),
		fails: "Outcome/leased/save-own Outcome/breaking/load-own", passes: "Outcome/leased/write-own"},
	"a break does nothing": {harness: memory[firm](),
		fails: "Outcome/available/break-now Outcome/leased/break-later Missing/break", passes: "Outcome/leased/renew-own"},
	"a break prolongs": {harness: virtual(func() store.Store { return generous{newMutant(sound)} }),
		fails: "Expiry/broken-later", passes: "Outcome/leased/break-later"},
	"the state shows in the ETag": {harness: memory[marks](),
		fails: "ETag/break ETag/expiry", passes: "ETag/acquire"},
	"missing entries are not told": {harness: virtual(func() store.Store { return vague{newMutant(sound)} }),
		fails: "Missing Missing/break Missing/delete Remove/missing", passes: "Create/twice"},
	"a delete heeds no lease": {harness: memory[forces](),
		fails: "Delete/leased", passes: "Delete/again"},
	"a removal heeds neither lease nor ETag": {harness: memory[forcesOut](),
		fails: "Remove/leased Remove/changed Remove/anew", passes: "Remove/free Remove/expired"},
	"a lease that has expired keeps an entry": {harness: memory[spares](),
		fails: "Remove/expired", passes: "Remove/free Remove/leased"},
	"create tells little": {harness: memory[silent](),
		fails: "Create/entry", passes: "Create/twice"},
	"the caller's bytes are kept": {harness: virtual(func() store.Store { return shares{new(local.Memory), new(sync.Map)} }),
		fails: "Record/own-copy Record/own-copy-written", passes: "Record/kept"},
	"create overwrites": {harness: memory[creates](),
		fails: "Create/twice Race/create Context/create", passes: "Create/entry"},
	"long names are cut": {harness: virtual(func() store.Store { return cuts{new(local.Memory), first64} }),
		fails: "Apart/long", passes: "Apart"},
	"an instance remembers what it read": {harness: twoOf(func(m *local.Memory) store.Store { return remembers{m, new(sync.Map)} }),
		fails: "Twins/record", passes: "Twins/lease ETag/write"},
	"an instance does not see the leases of others": {harness: robbed(),
		fails: "Twins/lease", passes: "Twins/record"},
	"documents are replaced whatever their ETag": {harness: desks(desk{write: overwrites}),
		fails: "Document/created Document/old-etag Document/missing Document/race-write Document/counter", passes: "Document/kept Document/unchanged"},
	"documents are compared and written in two steps": {harness: desks(desk{write: looksFirst}),
		fails: "Document/race-create Document/race-write Document/counter", passes: "Document/created Document/old-etag"},
	"unchanged documents are sent": {harness: desks(desk{read: transfers}),
		fails: "Document/unchanged Document/old-etag", passes: "Document/missing Document/counter Document/etags"},
	"equal documents are one": {harness: desks(desk{write: writesChanges}),
		fails: "Document/etags", passes: "Document/kept Document/deleted"},
	"an instance remembers documents": {harness: twoOf(func(m *local.Memory) store.Store { return recites{m, new(sync.Map)} }),
		fails: "Document/twins", passes: "Document/kept Twins/record"},
	"not virtual": {harness: storetest.Harness{New: func(*testing.T) store.Store { return creates{new(local.Memory)} }},
		fails: "Create/twice", passes: "Create/entry"},
	"difference that is gone": {harness: good(map[string]string{"Date": "no clock"}),
		fails: "Date", passes: "Create/entry", says: "passes, but is listed as a difference: no clock"},
	"difference that is no test": {harness: good(map[string]string{"Dates": "no clock"}),
		passes: "Date", says: `difference "Dates" is not a test`},
}

func good(differences map[string]string) storetest.Harness {
	return storetest.Harness{
		New:         func(*testing.T) store.Store { return new(local.Memory) },
		Virtual:     true,
		Differences: differences,
	}
}

func init() {
	maps.Copy(suites, listSuites)
	maps.Copy(suites, logSuites)
}
