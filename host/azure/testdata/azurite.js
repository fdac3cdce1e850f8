// Runs Azurite's Blob and Queue services until standard input ends, so that they
// cannot outlive the test that started them.
process.stdin.resume().on("end", () => process.exit());
require("azurite/dist/src/common/Environment"); // the options of all services, before one names its own alone
require("azurite/dist/src/blob/main");
require("azurite/dist/src/queue/main");
