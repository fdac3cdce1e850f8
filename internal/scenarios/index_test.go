package scenarios_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// index says which test tells which interleaving. One with a path is told
// elsewhere: it needs nothing of a real service, and is not told twice.
var index = []struct{ name, test string }{
	{"acquire applied, reply lost, same id again", "TestAcquireAppliedReplyLostSameIDAgain"},
	{"acquire delayed past giving up, release raced before it", "TestAcquireDelayedPastGivingUpReleaseRacedBeforeIt"},
	{"three acquires at one instant", "TestThreeAcquiresAtOneInstant"},
	{"412 and 409 both", "Test412And409Both"},
	{"winner dies between acquire and claim after the losers saw 409", "TestWinnerDiesBetweenAcquireAndClaimAfterTheLosersSaw409"},
	{"winner of a take-over dies between acquire and claim after the loser saw 409", "TestWinnerOfTakeOverDiesAfterTheLoserSaw409"},
	{"claim applied, reply lost", "TestClaimAppliedReplyLost"},
	{"claim delayed, holder expired, other claims", "TestClaimDelayedHolderExpiredOtherClaims"},
	{"pause of a lease between claim reply and start", "TestPauseOfALeaseBetweenClaimReplyAndStart"},
	{"the same, alone", "TestPauseOfALeaseBetweenClaimReplyAndStartAlone"},
	{"pause past the deadline between claim reply and start", "TestPausePastTheDeadlineBetweenClaimReplyAndStart"},
	{"pause inside Do, finish refused", "TestPauseInsideDoFinishRefused"},
	{"pause inside Do, side effect with the old token refused", "TestPauseInsideDoSideEffectWithTheOldTokenRefused"},
	{"renewal reply after the deadline", "TestRenewalReplyAfterTheDeadline"},
	{"renewal replies that never come", "TestRenewalRepliesThatNeverCome"},
	{"reply of renewal 1 after renewal 2 was sent", "TestReplyOfRenewal1AfterRenewal2WasSent"},
	{"renewal reply of token n during n+1", "TestRenewalReplyOfAnEpochDuringTheNext"},
	{"renewal lands on an expired, untouched lease", "TestRenewalLandsOnAnExpiredUntouchedLease"},
	{"renewal sent after the deadline", "../../clock_test.go TestRenewalAfterSuspensionExtendsNothing"},
	{"wall clock set back while cut off", "TestWallClockSetBackWhileCutOff"},
	{"late release of n during n+1", "TestLateReleaseOfAnEpochDuringTheNext"},
	{"finish applied, reply lost", "TestFinishAppliedReplyLost"},
	{"finish after expiry, untouched", "TestFinishAfterExpiryUntouched"},
	{"finish after take-over", "TestFinishAfterTakeOver"},
	{"release lost", "TestReleaseLost"},
	{"break naturally while renewing, claiming, finishing", "TestBreakNaturally"},
	{"break at once with hold-off while the old one still runs", "TestBreakAtOnceWithHoldOffWhileTheOldOneStillRuns"},
	{"a second death in the hold-off", "../../holdoff_test.go TestHoldOffSurvivesSecondDeath"},
	{"delete and re-create during a run and during a hold-off", "TestDeleteAndReCreate"},
	{"follower reads expired, another acquires, then its own acquire", "TestFollowerReadsExpiredAnotherAcquiresThenItsOwnAcquire"},
	{"tick claimed early by a fast clock", "TestTickClaimedEarlyByAFastClock"},
	{"look before a tick by a fast clock", "TestLookOfAFastClock"},
	{"slow clock after a short job", "TestSlowClockAfterAShortJob"},
	{"T and T+1 both due after an outage", "TestATickAndTheNextBothDueAfterAnOutage"},
	{"job longer than its interval under each overlap policy", "../plan/finish_test.go TestEndOfRunUnderOverlap"},
	{"SIGTERM at each step", "TestSIGTERMAtEachStep"},
	{"SIGTERM under a run that is longer than the grace", "TestSIGTERMUnderARunThatIsLongerThanTheGrace"},
	{"SIGTERM in a hold-off", "TestSIGTERMInAHoldOff"},
	{"shutdown with a renewal in flight", "TestShutdownWithARenewalInFlight"},
	{"DST gap and fold with take-over in between", "TestDSTGapAndFoldWithTakeOverInBetween"},
	{"mixed lease lengths", "TestMixedLeaseLengths"},
	{"mixed schemas: a newer one is left alone", "../../settings_test.go TestUnusableRecordIsLeftAlone"},
	{"mixed schemas: unknown fields survive", "../../store/record_internal_test.go TestARecordSurvivesARewrite"},
	{"schedule changed between claim and take-over", "TestScheduleChangedBetweenClaimAndTakeOver"},
	{"credential expires between claim and finish", "TestCredentialExpiresBetweenClaimAndFinish"},
	{"finish throttled past the deadline", "TestFinishThrottledPastTheDeadline"},
	{"a claim before its tick: the run begins on the dot", "TestArmedRunBeginsOnTheDot"},
	{"stop in each part of the lead", "TestStopInEachPartOfTheLead"},
	{"the same, without a grace", "TestStopOfAnArmedRunWithoutGrace"},
	{"kill between claim and tick", "TestDeathWithAnArmedRun"},
	{"pause between claim and tick", "TestPauseOfAnArmedRun"},
	{"run by hand between claim and tick", "TestRunByHandBeforeAnArmedRun"},
	{"break at once between claim and tick", "TestBreakOfAnArmedRun"},
	{"suspension over an armed tick", "TestSuspensionOverAnArmedTick"},
	{"claim before its tick applied, reply lost, then a stop", "TestStopAfterTheAnswerToAnEarlyClaimIsLost"},
	{"take-back applied, reply lost", "TestAnswerToATakeBackIsLost"},
	{"stop, and a suspension past the grace, before an armed tick", "TestSuspensionPastTheGraceOfAnArmedRun"},
	{"late renewal between claim and tick", "TestLateRenewalUnderAnArmedRun"},
	{"take-back lost", "TestTakeBackThatIsLost"},
	{"50 replicas, same tick, no jitter", "TestFiftyReplicasSameTickNoJitter"},
}

// Each test of the index exists, and each story is in it.
func TestIndex(t *testing.T) {
	here, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	stories := map[string]bool{}
	for _, file := range here {
		if source, _ := os.ReadFile(file); !strings.Contains(string(source), "runScenario(t, func") || file == "world_test.go" {
			continue // of faults
		}
		for name := range tests(t, file) {
			stories[name] = true
		}
	}
	delete(stories, "TestIndex")
	told := map[string]bool{}
	for _, i := range index {
		file, name, elsewhere := strings.Cut(i.test, " ")
		if !elsewhere {
			told[i.test] = true
			if !stories[i.test] {
				t.Errorf("%q: there is no %s", i.name, i.test)
			}
		} else if !tests(t, filepath.FromSlash(file))[name] {
			t.Errorf("%q: there is no %s in %s", i.name, name, file)
		}
	}
	for name := range stories {
		if !told[name] {
			t.Errorf("the index does not name %s", name)
		}
	}
}

// tests are the names of the tests in a file.
func tests(t *testing.T, file string) map[string]bool {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
			all[fn.Name.Name] = true
		}
	}
	return all
}
