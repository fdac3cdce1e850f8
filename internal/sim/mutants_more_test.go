package sim_test

// stores is the package of the directories that machines share.
const stores = "../../host/local"

// moreMutants are about machines that share a directory, runs that an operator
// has ended, and records of the future.
var moreMutants = []mutant{
	{name: "a lease of another start of a machine has ended", file: "host/local/instant.go", pkg: stores, story: "TestMachinesShareADirectory",
		text: "end = now.boot + l.Length", with: "end = now.boot"},
	{name: "the times since two starts are compared", file: "host/local/instant.go", pkg: stores, story: "TestMachinesShareADirectory",
		text: "\tcase l.Boot == now.start:", with: "\tcase true:"},
	{name: "a short HeartbeatTimeout is announced", file: "internal/supervise/watchdog.go",
		text: "\tif timeout < w.under.Approach {", with: "\tif false {"},
	{name: "an unlock is told as a death", file: "internal/plan/past.go",
		text: "\tcase !r.Run.Unlocked.At.IsZero():\n\t\treturn \"unlocked by \" + r.Run.Unlocked.By\n\tcase broken:\n\t\treturn \"unlocked\"\n", with: "\tcase broken:\n\t\treturn \"unlocked\"\n"},
	{name: "an unlocked run is told as running", file: "internal/plan/next.go",
		text: "\tif r.Run.Unlocked.At.IsZero() || !r.MayRun() {", with: "\tif r.Run.Unlocked.At.IsZero() || r.MayRun() {"},
	{name: "a log names the tick of a singleton", file: "internal/runner/hold.go",
		text: "\tif tick.IsZero() {\n\t\treturn nil\n", with: "\tif false {\n\t\treturn nil\n"},
	{name: "a running tick of the future is believed", file: "internal/plan/unusable.go", pkg: root, story: "TestUnusableRecordIsLeftAlone",
		text: "\tlook(\"tick\", r.Run.Tick)\n", with: ""},
	{name: "a replica of the future is believed", file: "internal/plan/unusable.go", pkg: root, story: "TestUnusableRecordIsLeftAlone",
		text: "\tlook(\"start of a replica (since)\", r.Definition.Since)\n", with: ""},
	{name: "a token is claimed that nobody reads", file: "internal/plan/unusable.go", pkg: root, story: "TestUnusableRecordIsLeftAlone",
		text: "\tif r.Token < store.MaxToken {", with: "\tif true {"},
}

func init() { mutants = append(mutants, moreMutants...) }
