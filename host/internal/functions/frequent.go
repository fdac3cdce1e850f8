package functions

import "github.com/soloist-go/soloist/host/internal/app"

// Frequent are the jobs for which an alarm saves nothing: their ticks are nearer
// to each other than a replica waits for.
func Frequent(a *app.App) (jobs []string) {
	for _, j := range a.Scheduler.Jobs {
		if !j.EveryReplica && oftener(j, a.Settings.Patience(), a.Now()) {
			jobs = append(jobs, j.Name)
		}
	}
	return jobs
}
