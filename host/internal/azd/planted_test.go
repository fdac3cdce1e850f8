package azd_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/azd"
)

// Mistakes that are planted in the templates of one kind, and a word of what is
// said of each.
var planted = []struct{ kind, file, old, new, want string }{
	{azd.App, "infra/jobs.bicep", "  }\n}\n", "  }\n", "no Bicep"},
	{azd.App, "infra/jobs.bicep", "param image string", "param image = ", "no Bicep"},
	{azd.App, "infra/jobs.bicep", "containerApps@2025-01-01", "containerApps@2025-01-02", "not in the table"},
	{azd.App, "infra/jobs.bicep", "Microsoft.App/containerApps", "Microsoft.App/containerApp", "not in the table"},
	{azd.App, "infra/jobs.bicep", "cooldownPeriod", "coolDownPeriod", "has no properties.template.scale.coolDownPeriod"},
	{azd.App, "infra/jobs.bicep", "queueLengthStrategy: 'visibleonly'", "queueLengthStrategy: 'visibleOnly'", "want all or visibleonly"},
	{azd.App, "infra/jobs.bicep", "queueLength: '1'", "queueLength: 1", "of kind integer: want string"},
	{azd.App, "infra/jobs.bicep", "type: 'UserAssigned'\n", "", `"identity" needs type`},
	{azd.App, "infra/jobs.bicep", "value: storageUrl", "value: storageURL", "nothing declares storageURL"},
	{azd.App, "infra/jobs.bicep", "value: storageUrl", "value: app", "nothing uses storageUrl"},
	{azd.App, "infra/jobs.bicep", "json('0.25')", "decimal('0.25')", "decimal is no function"},
	{azd.App, "infra/jobs.parameters.json", `"storageUrl"`, `"storageURL"`, "has no parameter storageURL"},
	{azd.App, "infra/main.bicep", "params: {\n    location: location\n    tags: tags\n    queueName", "params: {\n    location: location\n    queueName", "needs the parameter tags"},
	{azd.App, "infra/main.bicep", "logs.outputs.name", "logs.outputs.nome", "has no output nome"},
	{azd.App, "infra/main.bicep", "modules/logs.bicep", "modules/log.bicep", "no such file"},
	{azd.App, "infra/modules/identity.bicep", "identity.properties.clientId", "identity.properties.clientID", "no properties.clientID to read"},
	{azd.App, "infra/modules/identity.bicep", "974c5e8b-45b9", "974c5e8b-45b8", "not the id of the role storageQueueDataContributor"},
	{azd.App, "infra/modules/identity.bicep", "var acrPull = '7f951dda-4ed3-4680-a7ca-43fe172d538d'", "var acrPull = 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'", "not the id of the role acrPull"},
	{azd.App, "infra/modules/identity.bicep", "principalType: 'ServicePrincipal'", "principalType: 'ManagedIdentity'", `is "ManagedIdentity"`},
	{azd.App, "infra/modules/environment.bicep", "adminUserEnabled: false", "adminUserEnabled: false\n    loginServer: 'x'", "is for reading"},
	{azd.Job, "infra/jobs.bicep", "cronExpression: '7 3 * * *'\n", "", "needs cronExpression"},
	{azd.Job, "infra/jobs.bicep", "triggerType: 'Event'", "triggerType: 'Events'", "want Schedule or Event or Manual"},
	{azd.Job, "infra/jobs.bicep", "    name: 'SOLOIST_APP'\n    value: app", "    nome: 'SOLOIST_APP'\n    value: app", "env[].nome"},
	{azd.Functions, "infra/modules/functions.bicep", "name: 'custom'", "name: 'go'", "or custom"},
	{azd.Functions, "infra/modules/functions.bicep", "httpsOnly: true", "httpsOnly: 'true'", "of kind string: want boolean"},
	{azd.Functions, "infra/modules/storage.bicep", "allowSharedKeyAccess", "allowSharedKeysAccess", "has no properties.allowSharedKeysAccess"},
}

// Each check finds the mistakes that are planted for it.
func TestChecksFindMistakes(t *testing.T) {
	t.Parallel()
	known, sets, all := readTable(t), make([]map[string][]byte, len(planted)), map[string][]byte{}
	for i, m := range planted {
		files := filesOf(t, program(m.kind))
		if !bytes.Contains(files[m.file], []byte(m.old)) {
			t.Fatalf("%s of %s has no %q", m.file, m.kind, m.old)
		}
		sets[i] = maps.Clone(files)
		sets[i][m.file] = bytes.Replace(files[m.file], []byte(m.old), []byte(m.new), 1)
		for name, text := range sets[i] {
			all[fmt.Sprintf("%d/%s", i, name)] = text
		}
	}
	trees := parse(t, all)
	for i, m := range planted {
		its := map[string]node{}
		for name := range sets[i] {
			if tree, ok := trees[fmt.Sprintf("%d/%s", i, name)]; ok {
				its[name] = tree
			}
		}
		if got := strings.Join(check(known, sets[i], its), "\n"); !strings.Contains(got, m.want) {
			t.Errorf("%q in place of %q in %s of %s: got %q, want a word of %q", m.new, m.old, m.file, m.kind, got, m.want)
		}
	}
}
