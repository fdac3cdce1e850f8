package azd_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/azd"
)

// A first message on Flex Consumption takes up to two minutes: the lead is longer than that, and the stay longer than the lead.
// The hook that writes the functions has the same settings as the app, so that functionTimeout has room for them. A deployment
// can let runs come to their end.
func TestFlexConsumption(t *testing.T) {
	t.Parallel()
	files := filesOf(t, program(azd.Functions))
	app, hook := string(files["infra/modules/functions.bicep"]), string(files["azure.yaml"])
	for name, value := range map[string]string{"SOLOIST_ALARM_LEAD": "150s", "SOLOIST_STAY": "180s"} {
		if !regexp.MustCompile(`name: '` + name + `'\s+value: '` + value + `'`).MatchString(app) {
			t.Errorf("functions.bicep does not set %s to %s", name, value)
		}
		if !strings.Contains(hook, name+"="+value) {
			t.Errorf("azure.yaml does not set %s to %s for the command functions", name, value)
		}
	}
	if !regexp.MustCompile(`siteUpdateStrategy: \{\s+type: updateStrategy\s+\}`).MatchString(app) {
		t.Error("functions.bicep has no siteUpdateStrategy of a parameter")
	}
	if !strings.Contains(string(files["infra/main.bicep"]), "    updateStrategy: updateStrategy\n") ||
		!strings.Contains(string(files["infra/main.parameters.json"]), `"updateStrategy": {"value": "${JOBS_UPDATE_STRATEGY=Recreate}"}`) {
		t.Error("nothing gives the update strategy to functions.bicep")
	}
}
