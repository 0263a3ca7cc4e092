# carrick: make alone builds; make help lists.

GO      ?= go
BIN     := $(CURDIR)/bin
SANDBOX := $(BIN)/carrick-sandbox
RELEASE ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)

.DEFAULT_GOAL := build

.PHONY: build
# Without -trimpath, with which Go would compile every package again that the sandbox, vet and tests use.
build: ## build bin/carrick
	@cluster/sandbox/build/progress.sh carrick 950 150 $(GO) build -v \
		-ldflags "-s -w -X main.release=$(RELEASE) -X main.commit=$(COMMIT)" -o $(BIN)/carrick ./cmd/carrick

.PHONY: image
image: ## an image of carrick, without a daemon: bin/carrick-image.tar; IMAGE=REGISTRY/NAME:TAG pushes it; ARCH=arm64
	CGO_ENABLED=0 GOOS=linux GOARCH=$(or $(ARCH),$(shell $(GO) env GOARCH)) $(GO) build -trimpath \
		-ldflags "-s -w -X main.release=$(RELEASE) -X main.commit=$(COMMIT)" -o $(BIN)/image/carrick ./cmd/carrick
	cd .ci/image && $(GO) run . -o $(BIN)/carrick-image.tar -version $(RELEASE) $(if $(IMAGE),-push $(IMAGE)) $(BIN)/image/carrick

.PHONY: sandbox
sandbox: ## build bin/carrick-sandbox: the two control planes (five minutes or more the first time)
	@$(MAKE) --no-print-directory -C cluster/sandbox OUT=$(SANDBOX)

.PHONY: demo
demo: build sandbox ## the wizard on two control planes on this machine
	$(BIN)/carrick demo $(GUIDE)

.PHONY: man
man: ## write the man pages into bin/man: carrick.1 and one a command
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || date +%s) $(GO) test -count=1 -ldflags "-X carrick/cmd/carrick.release=$(RELEASE)" \
		-run '^TestManPages$$' ./cmd/carrick -man $(BIN)/man

.PHONY: demo-cast
demo-cast: build sandbox ## record a walk through the demo: testdata/cast/GUIDE.cast
	$(GO) run ./ui/cast -o testdata/cast/$(or $(GUIDE),renku).cast -title "carrick demo $(or $(GUIDE),renku)" -- \
		$(BIN)/carrick demo $(or $(GUIDE),renku) --autoplay --pace 1.5

# Tests whose names begin with TestVerify belong to make verify, all others to make test. A test that needs control
# planes borrows one of SANDBOXES; each takes about 1.5 GB of memory while it runs. On two cores, two are faster than
# four: with four, each request takes more processor time. -parallel counts the tests that wait for one as running, so
# it is more than there are. With GOGC, tests collect garbage less often, which saves a fifth of the processor time of
# recorded states.
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
SANDBOXES ?= $(or $(filter 2 3,$(CORES)),$(if $(filter 1,$(CORES)),2,4))
ON_SANDBOXES = CARRICK_SANDBOX=$(SANDBOX) CARRICK_PROGRAM=$(BIN)/carrick GOGC=400 \
	$(GO) run ./cluster/clustertest/share -n $(SANDBOXES) $(TIMES)

# Test binaries without what only debuggers read: each links in two thirds of the time. make lint vets.
QUICK := -vet=off -ldflags '-s -w'

# The packages with a test, benchmark or fuzz target whose name begins so. The second pattern excludes some of these.
packages_with = $(sort $(patsubst %/,./%,$(dir $(shell \
	grep -rE --include=*_test.go --exclude-dir=sandbox '^func ($(1))' cmd steps ui cluster | \
	grep -vE '$(or $(2),^$$)' | cut -d: -f1))))

# One package more than sandboxes runs at a time, because linking and many tests need no sandbox. ui and ondemand come
# first: ui needs no sandbox, and ondemand, the longest, would take twice as long next to two other guides.
TESTED = $(call packages_with,Test|Fuzz,func Test(Verify|Main.m ))
FIRST  = ./ui ./steps/guides/ondemand

.PHONY: test
test: build sandbox ## all tests but those of verify, on real control planes; PACKAGES=./steps/... RUN=REGEXP for some
	$(ON_SANDBOXES) $(GO) test $(QUICK) -p $$(($(SANDBOXES) + 1)) -parallel 100 -timeout 30m -skip '^TestVerify' \
		$(if $(RUN),-run '$(RUN)') $(or $(PACKAGES),$(FIRST) $(filter-out $(FIRST),$(TESTED)))
	$(if $(PACKAGES),,cd .ci/image && $(GO) test ./...)

.PHONY: lint
lint: $(BIN)/staticcheck ## gofumpt, vet, staticcheck
	$(GO) vet ./...
	cd cluster/sandbox && $(GO) vet ./...
	cd .ci/image && $(GO) vet ./...
	@out=$$($(BIN)/gofumpt -l cmd ui steps cluster assets .ci/image); test -z "$$out" || { echo "not gofumpt's style: $$out"; exit 1; }
	$(BIN)/staticcheck ./...
	cd cluster/sandbox && $(BIN)/staticcheck ./...

$(BIN)/staticcheck $(BIN)/gotestsum &: .ci/tools/go.mod
	cd .ci/tools && $(GO) build -o $(BIN)/ honnef.co/go/tools/cmd/staticcheck mvdan.cc/gofumpt gotest.tools/gotestsum

# What verify tries, a row of its table each.
KINDS := crash,fault,right,hostile,secret,trust,live,cycle,adopt,owner,walk,fuzz
CASES := $(BIN)/cases.jsonl

.PHONY: verify
verify: build sandbox ## the rest: crashes, faults, rights, hostile input, secrets, live faults, walks, fuzzing; GUIDES="renku liqo" for some; BRIEF=1 as CI runs it
	@rm -f $(CASES)
	@$(MAKE) --no-print-directory -k -j2 verify-tests verify-fuzz; status=$$?; \
		$(GO) run ./cluster/clustertest/cases/table $(if $(GUIDES),,-want $(KINDS)) $(CASES) && exit $$status

# The packages with such tests: others would be built for nothing. make lint vets.
VERIFIED = $(call packages_with,TestVerify)

.PHONY: verify-tests verify-fuzz
# A test that fails is run once more, alone, and named: what fails by chance is seen, and what is broken fails again.
verify-tests: TIMES := -times
verify-tests: $(BIN)/gotestsum
	CARRICK_GUIDES="$(GUIDES)" CARRICK_BRIEF="$(BRIEF)" CARRICK_CASES=$(CASES) $(ON_SANDBOXES) $(BIN)/gotestsum --format pkgname-and-test-fails --hide-summary skipped \
		--rerun-fails=1 --rerun-fails-run-root-test --packages '$(if $(GUIDES),$(GUIDES:%=./steps/guides/%) ./cmd/carrick/walks ./cmd/carrick/proof,$(VERIFIED))' -- \
		$(QUICK) -count=1 -p 6 -parallel 100 -timeout 80m -run '^TestVerify'
# Packages that parse what strangers write; .ci/fuzz alone tries all targets. make test runs their seeds.
FUZZED := ./cluster/bearer ./cluster/clean ./cluster/kubeconfig ./cluster/probe ./steps/action ./steps/facts ./steps/linkfile
verify-fuzz:
	CARRICK_CASES=$(CASES) WORKERS=1 TARGETS=1 nice -n 5 .ci/fuzz $(if $(BRIEF),4s 1s,8s 2s) $(FUZZED) >$(BIN)/fuzz.log 2>&1 || { cat $(BIN)/fuzz.log; exit 1; }

# The packages with such tests.
UPSTREAMED = $(call packages_with,TestUpstream)
UPSTREAM_TABLE := $(BIN)/upstream.txt

.PHONY: upstream upstream-dir
upstream: upstream-dir build sandbox ## other projects' own programs in place of their stand-ins: UPSTREAM=DIR with checkouts of them
	@rm -f $(UPSTREAM_TABLE)
	@CARRICK_UPSTREAM=$(abspath $(UPSTREAM)) CARRICK_UPSTREAM_TABLE=$(UPSTREAM_TABLE) $(ON_SANDBOXES) $(GO) test -count=1 -p 1 \
		-timeout 60m -run '^TestUpstream' $(UPSTREAMED); status=$$?; echo; cat $(UPSTREAM_TABLE); exit $$status

upstream-dir:
	@test -d "$(UPSTREAM)" || { echo "make upstream UPSTREAM=DIR: a folder with checkouts; see \"Against upstream's own programs\" in cluster/clustertest/README.md"; exit 2; }

.PHONY: ci
ci: ## what every change has to pass, as .ci/run runs it
	.ci/run

.PHONY: conformance
conformance: sandbox ## what carrick writes, under strict validation by a real API server
	$(ON_SANDBOXES) $(GO) test -count=1 -p 2 -parallel 100 -timeout 30m -run Conformance ./steps/...

.PHONY: bench
bench: sandbox ## the budgets, as ratios measured in one run
	CARRICK_SANDBOX=$(SANDBOX) $(GO) test -run '^$$' -bench . -benchtime 20x -timeout 30m ./... | $(GO) run ./cluster/clustertest/budgets

# Benchmarks that take minutes by what they are.
MINUTES := Growth|Idle|Memory

# The packages with benchmarks.
BENCHED = $(call packages_with,Benchmark)

.PHONY: bench-short
bench-short: sandbox ## the same, in a short run: of one guide, and without idle, memory and growth
	CARRICK_SANDBOX=$(SANDBOX) $(GO) test $(QUICK) -run '^$$' -bench . -skip '$(MINUTES)' -benchtime 1x -timeout 30m \
		$(filter-out ./steps/guides/%,$(BENCHED)) ./steps/guides/renku | $(GO) run ./cluster/clustertest/budgets -skip '$(MINUTES)'

.PHONY: golden
golden: ## write the goldens anew; look at the diff
	$(GO) test ./ui ./steps/... ./cmd/carrick -update

.PHONY: clean
clean: ## remove bin
	rm -rf $(BIN)

.PHONY: help
help:
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "%-12s %s\n", $$1, $$2}'
