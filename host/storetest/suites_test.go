package storetest_test

import (
	"crypto/rand"
	"sync"
	"testing"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// suites are run in a process of their own, because they have to fail.
var suites = map[string]struct {
	harness storetest.Harness
	fails   []string // at least these
	passes  []string // at least these, to tell a careful failure from a broken suite
	says    string
}{
	"renew takes any id": {
		harness: broken(func(l *lease) store.Lease { return renewsAny{l} }),
		fails:   []string{"Outcome/leased/renew-other", "Outcome/expired/renew-other", "Late/renew", "Expiry/taken"},
		passes:  []string{"Outcome/expired/renew-own", "Race/counter"},
	},
	"renew keeps the first length": {
		harness: func() storetest.Harness {
			lengths := new(sync.Map)
			return broken(func(l *lease) store.Lease { return renewsFirst{l, lengths} })
		}(),
		fails:  []string{"Expiry/renewed-longer"},
		passes: []string{"Expiry/renewed", "Expiry/longer", "Expiry/revived"},
	},
	"an earlier holder may renew": {
		harness: func() storetest.Harness {
			holders := new(sync.Map)
			return broken(func(l *lease) store.Lease { return renewsEarlier{l, holders} })
		}(),
		fails:  []string{"Expiry/taken-expired"},
		passes: []string{"Expiry/taken", "Outcome/expired/renew-other", "Late/renew"},
	},
	"acquire of an expired lease ignores the ETag": {
		harness: broken(func(l *lease) store.Lease { return acquiresExpired{l} }),
		fails:   []string{"ETag/acquire-expired"},
		passes:  []string{"ETag/acquire", "Outcome/expired/acquire-other"},
	},
	"a read is torn": {
		harness: virtual(func() store.Store { return tears{new(local.Memory)} }),
		fails:   []string{"Race/view"},
		passes:  []string{"Race/counter", "Create/entry"},
	},
	"write ignores the ETag": {
		harness: broken(func(l *lease) store.Lease { return writesOver{l} }),
		fails:   []string{"ETag/write-old", "Race/write", "Repeat/write"},
		passes:  []string{"ETag/acquire", "Outcome/leased/write-other"},
	},
	"acquire ignores the ETag": {
		harness: broken(func(l *lease) store.Lease { return acquiresAnyway{l} }),
		fails:   []string{"ETag/acquire", "Late/acquire-written", "Repeat/acquire-after-write"},
		passes:  []string{"ETag/write-old", "Outcome/leased/acquire-other"},
	},
	"release frees anybody": {
		harness: broken(func(l *lease) store.Lease { return releasesAny{l} }),
		fails:   []string{"Outcome/leased/release-other", "Late/release", "Late/release-expired", "Outcome/released/release-own"},
		passes:  []string{"Outcome/leased/release-own", "Late/write"},
	},
	"an expired lease may write": {
		harness: broken(func(l *lease) store.Lease { return writesLate{l} }),
		fails:   []string{"Outcome/expired/write-own", "Expiry/revived", "Expiry/write-keeps"},
		passes:  []string{"Outcome/leased/write-other", "Late/write"},
	},
	"a held lease may be acquired": {
		harness: broken(func(l *lease) store.Lease { return acquiresHeld{l} }),
		fails:   []string{"Outcome/leased/acquire-other", "Outcome/breaking/acquire-other", "Race/acquire", "Late/acquire-held"},
		passes:  []string{"Outcome/available/acquire-other"},
	},
	"leases end early": {
		harness: virtual(func() store.Store { return &local.Memory{Now: hurried()} }),
		fails:   []string{"Expiry/length", "Expiry/renewed"},
		passes:  []string{"Expiry/revived", "Late/renew"},
	},
	"a write serves any id": {
		harness: broken(func(l *lease) store.Lease { return writesForAny{l} }),
		fails:   []string{"Outcome/leased/write-other", "Late/write", "Race/acquire"},
		passes:  []string{"Late/renew"},
	},
	"the holder cannot acquire again": {
		harness: broken(func(l *lease) store.Lease { return acquiresOnce{l} }),
		fails:   []string{"Outcome/leased/acquire-own", "Repeat/acquire"},
		passes:  []string{"Outcome/leased/acquire-other"},
	},
	"acquiring again is but renewing": {
		harness: broken(func(l *lease) store.Lease { return keepsLength{l} }),
		fails:   []string{"Expiry/longer", "Expiry/shorter"},
		passes:  []string{"Repeat/acquire", "Expiry/renewed"},
	},
	"what ended is not free": {
		harness: broken(func(l *lease) store.Lease { return acquiresFresh{l} }),
		fails:   []string{"Outcome/expired/acquire-own", "Outcome/broken/acquire-other", "Race/acquire-expired"},
		passes:  []string{"Outcome/available/acquire-own"},
	},
	"any length goes": {
		harness: broken(func(l *lease) store.Lease { return acquiresAnyLength{l} }),
		fails:   []string{"Limits"},
		passes:  []string{"Expiry/length"},
	},
	"nobody may write": {
		harness: broken(func(l *lease) store.Lease { return writesNever{l} }),
		fails:   []string{"Outcome/leased/write-own", "Outcome/breaking/write-own", "Record/kept"},
		passes:  []string{"Outcome/leased/release-own"},
	},
	"nobody may renew": {
		harness: broken(func(l *lease) store.Lease { return renewsNever{l} }),
		fails:   []string{"Outcome/leased/renew-own", "Outcome/expired/renew-own"},
		passes:  []string{"Outcome/broken/renew-own"},
	},
	"expired is lost": {
		harness: broken(func(l *lease) store.Lease { return renewsLive{l} }),
		fails:   []string{"Outcome/expired/renew-own", "Expiry/revived", "ETag/expiry"},
		passes:  []string{"Outcome/leased/renew-own"},
	},
	"a release does nothing": {
		harness: broken(func(l *lease) store.Lease { return releasesNever{l} }),
		fails:   []string{"Outcome/leased/release-own", "Outcome/broken/release-own", "Repeat/acquire"},
		passes:  []string{"Create/leased"},
	},
	"equal writes are one": {
		harness: broken(func(l *lease) store.Lease { return writesNews{l} }),
		fails:   []string{"ETag/write"},
		passes:  []string{"ETag/lease-calls"},
	},
	"lease calls change the ETag": {
		harness: broken(func(l *lease) store.Lease { return stamps{l} }),
		fails:   []string{"ETag/lease-calls", "ETag/expiry"},
		passes:  []string{"ETag/write"},
	},
	"create has no ETag": {
		harness: virtual(func() store.Store { return unmarked{new(local.Memory)} }),
		fails:   []string{"ETag/told"},
		passes:  []string{"Missing"},
	},
	"acquire has no ETag": {
		harness: broken(func(l *lease) store.Lease { return acquiresUnmarked{l} }),
		fails:   []string{"ETag/told"},
		passes:  []string{"ETag/told-by-save", "ETag/write"},
	},
	"renew has no ETag": {
		harness: broken(func(l *lease) store.Lease { return renewsUnmarked{l} }),
		fails:   []string{"ETag/told"},
		passes:  []string{"ETag/told-by-save", "ETag/write", "Outcome/leased/renew-own"},
	},
	"write has no ETag": {
		harness: broken(func(l *lease) store.Lease { return writesUnmarked{l} }),
		fails:   []string{"ETag/told"},
		passes:  []string{"ETag/told-by-save", "ETag/lease-calls"},
	},
	"save has no ETag": {
		harness: broken(func(l *lease) store.Lease { return savesUnmarked{l} }),
		fails:   []string{"ETag/told-by-save"},
		passes:  []string{"ETag/told", "ETag/write"},
	},
	"refusals are hidden": {
		harness: broken(func(l *lease) store.Lease { return hides{l} }),
		fails:   []string{"Race/counter", "Outcome/available/renew-other", "Outcome/released/write-own"},
		passes:  []string{"Create/entry"},
	},
	"leases ignore contexts": {
		harness: broken(func(l *lease) store.Lease { return unheard{l} }),
		fails:   []string{"Context/acquire", "Context/renew", "Context/write", "Context/release", "Context/save", "Context/load"},
		passes:  []string{"Context/create"},
	},
	"a save is but a write": {
		harness: broken(func(l *lease) store.Lease { return forgets{l} }),
		fails:   []string{"Keep/save", "Keep/bytes", "Keep/through"},
		passes:  []string{"Keep/new", "Outcome/leased/save-own"},
	},
	"a checkpoint's length is the entry's": {
		harness: virtual(func() store.Store { return measures{new(local.Memory)} }),
		fails:   []string{"Keep/length"},
		passes:  []string{"Keep/save"},
	},
	"a save keeps the record": {
		harness: broken(func(l *lease) store.Lease { return halves{l} }),
		fails:   []string{"Keep/save", "Keep/race"},
		passes:  []string{"Keep/bytes"},
	},
	"a write empties the checkpoint": {
		harness: broken(func(l *lease) store.Lease { return empties{l} }),
		fails:   []string{"Keep/write"},
		passes:  []string{"Keep/save", "Keep/through"},
	},
	"a save ignores the ETag": {
		harness: broken(func(l *lease) store.Lease { return savesOver{l} }),
		fails:   []string{"Keep/old-etag", "Keep/race"},
		passes:  []string{"Keep/other", "Keep/save"},
	},
	"a load ignores the ETag": {
		harness: broken(func(l *lease) store.Lease { return loadsOver{l} }),
		fails:   []string{"Keep/old-etag"},
		passes:  []string{"Keep/other", "Keep/race"},
	},
	"checkpoints serve any id": {
		harness: broken(func(l *lease) store.Lease { return keepsForAny{l} }),
		fails:   []string{"Keep/other", "Keep/late", "Outcome/leased/save-other", "Outcome/breaking/load-other"},
		passes:  []string{"Keep/old-etag"},
	},
	"save and load renew": {
		harness: broken(func(l *lease) store.Lease { return keepsLate{l} }),
		fails:   []string{"Keep/expired", "Keep/no-renewal", "Outcome/expired/save-own", "Outcome/expired/load-own"},
		passes:  []string{"Keep/other", "Keep/late"},
	},
	"equal saves are one": {
		harness: broken(func(l *lease) store.Lease { return savesNews{l} }),
		fails:   []string{"Keep/save-same"},
		passes:  []string{"Keep/save"},
	},
	"checkpoints are text": {
		harness: broken(func(l *lease) store.Lease { return texts{l} }),
		fails:   []string{"Keep/bytes"},
		passes:  []string{"Keep/save"},
	},
	"long checkpoints are cut": {
		harness: broken(func(l *lease) store.Lease { return clips{l} }),
		fails:   []string{"Keep/too-long"},
		passes:  []string{"Keep/bytes"},
	},
	"checkpoints lie beside their entries": {
		harness: broken(func(l *lease) store.Lease { return aside{l, l.name} }),
		fails:   []string{"Keep/own-copy", "Keep/other", "Keep/old-etag", "Keep/late", "Keep/broken", "Keep/deleted", "Context/save"},
		passes:  []string{"Keep/save", "Keep/through", "Keep/handle", "Keep/apart"},
	},
	"checkpoints belong to the id": {
		harness: broken(func(l *lease) store.Lease { return aside{l, l.id} }),
		fails:   []string{"Keep/through", "Keep/broken"},
		passes:  []string{"Keep/save", "Keep/handle", "Keep/apart"},
	},
	"checkpoints belong to the handle": {
		harness: broken(func(l *lease) store.Lease { return aside{l, rand.Text()} }),
		fails:   []string{"Keep/handle", "Keep/through"},
		passes:  []string{"Keep/save"},
	},
	"one checkpoint for all": {
		harness: broken(func(l *lease) store.Lease { return aside{l, ""} }),
		fails:   []string{"Keep/apart"},
		passes:  []string{"Keep/save", "Keep/handle"},
	},
	"no checkpoint is one": {
		harness: broken(func(l *lease) store.Lease { return nulls{l} }),
		fails:   []string{"Keep/new", "Keep/save"},
		passes:  []string{"Keep/through"},
	},
	"nobody may save": {
		harness: broken(func(l *lease) store.Lease { return keepsNever{l} }),
		fails:   []string{"Outcome/leased/save-own", "Outcome/breaking/load-own"},
		passes:  []string{"Outcome/leased/write-own"},
	},
	"a save makes the entry": {
		harness: broken(func(l *lease) store.Lease { return conjures{l} }),
		fails:   []string{"Missing/keep"},
		passes:  []string{"Missing", "Keep/save"},
	},
	"a break does nothing": {
		harness: virtual(func() store.Store { return firm{new(local.Memory)} }),
		fails:   []string{"Outcome/available/break-now", "Outcome/leased/break-later", "Missing/break"},
		passes:  []string{"Outcome/leased/renew-own"},
	},
	"a break prolongs": {
		harness: virtual(func() store.Store { return generous{newMutant(sound)} }),
		fails:   []string{"Expiry/broken-later"},
		passes:  []string{"Outcome/leased/break-later"},
	},
	"the state shows in the ETag": {
		harness: virtual(func() store.Store { return marks{new(local.Memory)} }),
		fails:   []string{"ETag/break", "ETag/expiry"},
		passes:  []string{"ETag/acquire"},
	},
	"missing entries are not told": {
		harness: virtual(func() store.Store { return vague{newMutant(sound)} }),
		fails:   []string{"Missing", "Missing/break", "Missing/delete"},
		passes:  []string{"Create/twice"},
	},
	"a delete heeds no lease": {
		harness: virtual(func() store.Store { return forces{new(local.Memory)} }),
		fails:   []string{"Delete/leased"},
		passes:  []string{"Delete/again"},
	},
	"create tells little": {
		harness: virtual(func() store.Store { return silent{new(local.Memory)} }),
		fails:   []string{"Create/entry"},
		passes:  []string{"Create/twice"},
	},
	"the caller's bytes are kept": {
		harness: virtual(func() store.Store { return shares{new(local.Memory), new(sync.Map)} }),
		fails:   []string{"Record/own-copy", "Record/own-copy-written"},
		passes:  []string{"Record/kept"},
	},
	"readers share their bytes": {
		harness: virtual(func() store.Store { return lends{new(local.Memory), new(sync.Map)} }),
		fails:   []string{"Record/own-copy-written"},
		passes:  []string{"Record/own-copy", "Record/kept"},
	},
	"create overwrites": {
		harness: virtual(func() store.Store { return creates{new(local.Memory)} }),
		fails:   []string{"Create/twice", "Race/create", "Context/create"},
		passes:  []string{"Create/entry"},
	},
	"contexts are ignored": {
		harness: virtual(func() store.Store { return deaf{new(local.Memory)} }),
		fails:   []string{"Context/read", "Context/break"},
		passes:  []string{"Context/create", "Missing"},
	},
	"records are trimmed": {
		harness: virtual(func() store.Store { return trims{new(local.Memory)} }),
		fails:   []string{"Record/not-altered"},
		passes:  []string{"Record/kept"},
	},
	"names are cut": {
		harness: virtual(func() store.Store { return cuts{new(local.Memory)} }),
		fails:   []string{"Apart"},
		passes:  []string{"Create/twice"},
	},
	"long names are cut": {
		harness: virtual(func() store.Store { return cutsLong{new(local.Memory)} }),
		fails:   []string{"Apart/long"},
		passes:  []string{"Apart"},
	},
	"no lease is long": {
		harness: broken(func(l *lease) store.Lease { return brief{l} }),
		fails:   []string{"Expiry/longest"},
		passes:  []string{"Expiry/length", "Limits"},
	},
	"an instance remembers what it read": {
		harness: twoOf(func(m *local.Memory) store.Store { return remembers{m, new(sync.Map)} }),
		fails:   []string{"Twins/record"},
		passes:  []string{"Twins/lease", "ETag/write"},
	},
	"an instance does not see the leases of others": {
		harness: robbed(),
		fails:   []string{"Twins/lease"},
		passes:  []string{"Twins/record"},
	},
	"not virtual": {
		harness: storetest.Harness{New: func(*testing.T) store.Store { return creates{new(local.Memory)} }},
		fails:   []string{"Create/twice"},
		passes:  []string{"Create/entry"},
	},
	"difference that is gone": {
		harness: good(map[string]string{"Date": "no clock"}),
		fails:   []string{"Date"},
		passes:  []string{"Create/entry"},
		says:    "passes, but is listed as a difference: no clock",
	},
	"difference that is no test": {
		harness: good(map[string]string{"Dates": "no clock"}),
		passes:  []string{"Date"},
		says:    `difference "Dates" is not a test`,
	},
}

func good(differences map[string]string) storetest.Harness {
	return storetest.Harness{
		New:         func(*testing.T) store.Store { return new(local.Memory) },
		Virtual:     true,
		Differences: differences,
	}
}
