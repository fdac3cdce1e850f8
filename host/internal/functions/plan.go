package functions

import (
	"fmt"
	"os"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
)

// The hosting plans, as far as the files of an app depend on them.
const (
	FlexConsumption = "flex"
	Consumption     = "consumption"
	OtherPlan       = "other" // Premium, Dedicated: instances that stay
)

// consumptionMost is the longest functionTimeout of the Consumption plan.
const consumptionMost = 10 * time.Minute

// flexMost is how long a run may take on Flex Consumption. The platform scales by the visible messages, and the message of
// a running call is hidden: so it takes the instance away, and waits for 60 minutes at most
// (https://learn.microsoft.com/azure/azure-functions/functions-scale#timeout).
const flexMost = 55 * time.Minute

// leastTimeout is the functionTimeout of host.json unless a job needs more.
func leastTimeout(plan string) time.Duration {
	if plan == Consumption {
		return consumptionMost
	}
	return otherTimeout
}

// OnFlex reports whether this process runs on Flex Consumption.
func OnFlex() bool { return os.Getenv("WEBSITE_SKU") == "FlexConsumption" }

// TooLongForFlex says of each job whose run Flex Consumption may kill what to do about it.
func TooLongForFlex(a *app.App) (all []string) {
	for _, j := range a.Scheduler.Jobs {
		if j.Timeout > flexMost {
			all = append(all, fmt.Sprintf("job %s may take %s: Flex Consumption takes an instance away while a run goes on, 60 minutes after it has scaled in. "+
				"Give the job a Timeout of at most %s, or deploy to another plan or to Container Apps", j.Name, j.Timeout, flexMost))
		}
	}
	return all
}

// tooLongForConsumption says so of a job that needs a functionTimeout of span, which is its Timeout and some more.
func tooLongForConsumption(j soloist.Job, span, more time.Duration) string {
	return fmt.Sprintf("job %s may take %s, which needs a functionTimeout of %s: an app on the Consumption plan, whose most is %s, would not start. "+
		"Deploy to another plan, or give the job a Timeout of at most %s", j.Name, j.Timeout, hostSpan(span), hostSpan(consumptionMost), max(0, consumptionMost-more))
}
