// Runs Azurite's Blob service until standard input ends, so that it cannot
// outlive the test that started it.
process.stdin.resume().on("end", () => process.exit());
require("azurite/dist/src/blob/main");
