# Short names for the commands of CONTRIBUTING.md. CI runs .ci/run without make.
seed ?= 1
for ?= 10m

help: ## lists the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

check: ## all that CI checks
	.ci/run

short: ## vet, and the tests that take seconds
	go vet ./... && go test ./...

sim: ## one simulated cluster, told event by event: make sim seed=7
	go test ./internal/sim -run 'TestSeeds$$' -seed $(seed) -v

mistakes: ## a test has to notice each known mistake: some minutes
	go test ./internal/mistakes -name . -v -timeout 1h

storm: ## random faults on real processes over Azurite: make storm for=30m seed=2
	cd proof/chaos && go run ./storm -for $(for) -seed $(seed)

.PHONY: help check short sim mistakes storm
