# Targets for people and for CI. `make` alone lists them. Needs Go and, where a target says so, gcc.

GO      ?= go
BUILD   := build
CROSS   := aarch64-linux-gnu-gcc
QEMU    := qemu-aarch64 -L /usr/aarch64-linux-gnu
# Without this setting a process forked under qemu can wait for ever for a lock of glib's slice
# allocator, which another thread of qemu held. With it glib uses malloc, whose locks survive a fork.
export G_SLICE := always-malloc
SUDO    := $(shell test "$$(id -u)" = 0 || echo sudo)
APT_GET := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get

PLATFORMS := linux/amd64 linux/arm64 windows/amd64 windows/arm64 darwin/arm64 freebsd/amd64
TAGS      := puregpu_syscalln nogpu
# Packages whose code depends on the tag puregpu_static.
STATIC    := ./runtime/dl/... ./cuda ./nccl ./runtime/driver/cudadriver ./runtime/drivers ./tools/gpuinfo
# Packages whose code, tests aside, is the same under every tag, because they call no library themselves.
UNTAGGED  := puregpu/(runtime/(blas|collective|compile|control|growing|examples/(llama(/.*)?|simtest)|dnn|fft|gpu(/gputest)?|health|interop|metrics|random|solver|sparse|trace|internal/(blockpool|closer|comm|diskcache|engine|errs|events|faces|inside|latest|leaks|memory|memplan|observe|points|recording|sema|standin|testkit|wake|work)|rendezvous|smallfloat|driver(/simdriver|/internal/(compilelog|trial))?)|symbols|internal/(explore(/.*)?|apitest|busyfile|cudaheaders|filelock|folders|hostinfo|lockcheck|overlay|ownfolder|printable|regular|secureenv|sysfs|testroot|tracetest|version|extract|cproof|headerfuzz|programs|kernelobject|testkernels(/triton)?|traceformat)|tools/(bindgen|extract|refresh|symbols|ctxprobe|gen|gpubench|gputrace|faults|kernelgen|locks|release|rename|shape|size|explore(/.*)?))$$
# Packages that use one goroutine only. The race detector can find nothing in them.
SERIAL    := puregpu/(gen|tools/release|runtime/examples/llama/internal/(checkpoint(test)?|kernels|persist|tokenizer)|cublas|cublaslt|cudnn|cufft|curand|cusparse|cusolver|cufile|hipblas|hipfft|hiprand|internal/(apitest|extract|cproof|filelock|folders|headerfuzz|hostinfo|kernelobject|mathtest|nvtopology|ownfolder|printable|programs|regular|secureenv|sysfs|testroot|toolkittest|traceformat|version)|runtime/internal/(memplan|points|work)|runtime/(blas|dl/dltest|dnn|driver/internal/compilelog|fft|random|smallfloat|solver|sparse)|symbols|tools/(bindgen|extract|refresh|symbols|ctxprobe|faults|kernelgen|locks|release|rename|shape|reallibs|explore|explore/internal/.*))$$

# The core: all its tests run with and without the race detector.
CORE      := ./runtime/gpu ./runtime/collective ./runtime/interop ./runtime/internal/engine ./runtime/internal/memory ./runtime/internal/recording ./runtime/internal/sema
NOTCORE   := $(GO) list ./... | grep -vE 'runtime/(collective|gpu|interop|internal/(engine|memory|recording|sema))$$'

# The bindings.
BINDINGS  := ./cuda ./nccl ./nvml ./nvrtc ./nvjitlink ./cublas ./cublaslt ./cudnn ./cufft ./curand ./cusparse ./cusolver ./cufile ./cupti ./hip ./hiprtc ./hipblas ./hipfft ./hiprand

# The time limit for the tests of one package. Go's default of ten minutes is too short for the
# largest packages on a busy machine.
TIMEOUT   ?= 40m

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## list the targets
	@awk -F ': .*## ' '/^[a-z0-9-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: generate ## generate the bindings, then run the examples on the GPU, or say what is missing
	@$(GO) run ./runtime/examples/first
	@$(GO) run ./runtime/examples/compile
	@$(GO) run ./runtime/examples/pipeline
	@$(GO) run ./runtime/examples/mlp
	@$(GO) run ./runtime/examples/allreduce
	@$(GO) run ./runtime/examples/serve -selftest
	@$(GO) run ./runtime/examples/llama generate -sim
	@$(GO) run ./examples/math
	@for p in saxpy ncclrank; do $(GO) run ./runtime/examples/$$p 2>/dev/null || echo "$$p: not run: it needs an NVIDIA GPU"; done
	@$(GO) run ./tools/gpuinfo

.PHONY: test
test: ## vet and test everything: without cgo, and with the race detector (needs gcc)
	@echo "on two cores this takes seven to ten minutes, and longer the first time"
	CGO_ENABLED=0 $(GO) vet ./...
	cd testdata/callbench && CGO_ENABLED=1 $(GO) vet ./...
	cd tools/gputrace/browsertest && CGO_ENABLED=0 $(GO) vet ./...
	@$(MAKE) -k -j2 test-plain test-race

.PHONY: test-tags
test-tags: ## test the packages that depend on a build tag, under each tag
	@set -e; for tag in $(TAGS); do \
		set -x; \
		CGO_ENABLED=0 $(GO) test -vet=off -timeout $(TIMEOUT) -short -tags $$tag $$($(GO) list ./... | grep -vE '$(UNTAGGED)'); \
		{ set +x; } 2>/dev/null; \
	done
	CGO_ENABLED=0 $(GO) test -vet=off -timeout $(TIMEOUT) -short -tags puregpu_static $(STATIC)

# The longest tests use one core half of the time, so the two targets run side by side. build-matrix
# tests copies of the examples. Only test-plain runs the tests that -short leaves out. If a package
# fails, the remaining packages are still tested. The target test has run go vet before, and
# build-matrix runs it for each tag, so go test need not.
.PHONY: test-plain test-race
test-plain:
	@failed=0; export CGO_ENABLED=0; set -x; \
	$(GO) test -vet=off -timeout $(TIMEOUT) -skip '^TestCopyOut$$/^tests$$' $$($(NOTCORE)) || failed=1; \
	$(GO) test -vet=off -timeout $(TIMEOUT) $(CORE) || failed=1; \
	exit $$failed
test-race:
	@failed=0; export CGO_ENABLED=1; set -x; \
	$(GO) test -vet=off -timeout $(TIMEOUT) -race $(CORE) || failed=1; \
	$(GO) test -vet=off -timeout $(TIMEOUT) -race -short $$($(NOTCORE) | grep -vE '$(SERIAL)') || failed=1; \
	exit $$failed

# `go list` prints versions in order, release candidates included. The module proxy has the toolchains.
.PHONY: test-newest-go
test-newest-go: ## vet, build and test with the newest Go of the module proxy, release candidates included; if it fails see docs/new-go.md
	@set -e; newest=$$($(GO) list -m -versions go | awk '{ print $$NF }'); \
	test -n "$$newest" || { echo "the module proxy lists no Go release: see 'go env GOPROXY'" >&2; exit 1; }; \
	export GOTOOLCHAIN=go$$newest CGO_ENABLED=0; \
	$(GO) version; \
	set -x; \
	$(GO) vet ./...; \
	$(GO) test -count=1 -timeout $(TIMEOUT) ./runtime/dl/...; \
	$(GO) test -count=1 -timeout $(TIMEOUT) -tags puregpu_syscalln ./runtime/dl/...; \
	$(GO) test -count=1 -timeout $(TIMEOUT) -tags puregpu_static $(STATIC); \
	$(GO) test -short -timeout $(TIMEOUT) ./...

.PHONY: soak
soak: ## submit a million random operations to simulated GPUs, with the race detector if gcc is installed, and make driver calls of traced work fail; SEED=n repeats a run
	@set -e; race=; export CGO_ENABLED=0; \
	if command -v gcc >/dev/null; then race=-race CGO_ENABLED=1; fi; \
	set -x; \
	CGO_ENABLED=0 $(GO) test -count=1 -timeout=1h -run='^TestFaults$$' ./runtime/internal/engine -gpu.soak; \
	$(GO) test $$race -count=1 -timeout=2h -v -run='^TestRandom$$' ./runtime/internal/engine -gpu.soak $(if $(SEED),-gpu.seed=$(SEED))

.PHONY: faults
faults: ## put each mended fault back and check that a test catches it (needs gcc); see docs/faults.md
	@echo "on two idle cores this takes about half an hour"
	$(GO) run ./tools/faults
	$(GO) run ./tools/faults -dir internal/headerfuzz/testdata/faults

.PHONY: shape
shape: ## print figures of the core's packages: lines, fields of structs, complexity of functions, mutexes that do not say what they protect
	@$(GO) run ./tools/shape

.PHONY: locks
locks: ## run short tests with watched mutexes: their order must have no cycle, and no goroutine may hold more than two of the scheduler's
	$(GO) run ./tools/locks -depth 2

.PHONY: explore
explore: ## run the runtime in many orders of its goroutines, for TIME (10m); RACE=1 adds the race detector, SEED=n repeats a run
	$(GO) run ./tools/explore -time $(or $(TIME),10m) $(if $(RACE),-race) $(if $(SEED),-seed $(SEED)) $(if $(RUN),-run '$(RUN)')

.PHONY: test-abi
test-abi: setup-abi ## prove every function's ABI against a C library, here and for arm64 under qemu
	CGO_ENABLED=0 $(GO) test -count=1 -timeout $(TIMEOUT) -run Echo -v ./gen
	CGO_ENABLED=0 $(GO) test -count=1 -timeout $(TIMEOUT) ./runtime/dl
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) test -c -o $(BUILD)/abi-arm64.test ./gen
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) test -c -o $(BUILD)/dl-arm64.test ./runtime/dl
	cd gen && PUREGPU_TEST_CC=$(CROSS) $(QEMU) ../$(BUILD)/abi-arm64.test -test.run Echo -test.v -test.timeout $(TIMEOUT)
	cd runtime/dl && PUREGPU_TEST_CC=$(CROSS) $(QEMU) ../../$(BUILD)/dl-arm64.test -test.short -test.timeout $(TIMEOUT)
	@# With the tag puregpu_static, opening a library on arm64 returns an error, and programs go on. They need no arm64 libraries.
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) test -c -tags puregpu_static -o $(BUILD)/dl-static-arm64.test ./runtime/dl
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) build -tags puregpu_static -o $(BUILD)/gpuinfo-static-arm64 ./tools/gpuinfo
	@# CI builds the runtime for arm64 only here.
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) build ./tools/gpuinfo ./runtime/examples/llama
	cd runtime/dl && qemu-aarch64 ../../$(BUILD)/dl-static-arm64.test -test.short -test.timeout $(TIMEOUT)
	cd runtime/dl && qemu-aarch64 ../../$(BUILD)/dl-static-arm64.test -test.run '^TestStub$$' -test.v | grep -e '--- PASS: TestStub'
	said=$$(qemu-aarch64 $(BUILD)/gpuinfo-static-arm64) && echo "$$said" | grep -m 1 'No CUDA driver: .* with puregpu_static linux/amd64'

.PHONY: test-arm64
test-arm64: setup-abi ## run the simulated runtime, the drivers and the bindings for arm64 under qemu, nightly (75 minutes on two busy cores); SHORT=1 runs the short tests; test-abi covers package dl
	@echo "on two busy cores this takes 75 minutes; on a busier machine cases of the conformance suite can exceed their limit of one minute"
	@$(GO) list ./runtime/... $(BINDINGS) | grep -vE 'puregpu/runtime/(dl|examples)(/|$$)' | \
		CGO_ENABLED=0 GOOS=linux GOARCH=arm64 PUREGPU_TEST_CC=$(CROSS) xargs tools/bundle/arm64.sh $(GO) test -count=1 -p 2 -timeout 2h $(if $(SHORT),-short) -exec '$(QEMU)'

.PHONY: test-windows
test-windows: ## prove every function's ABI, and test the loader, the simulated runtime and rendezvous, for windows/amd64 under Wine (downloads 160 MB; about 25 minutes on two busy cores); PACKAGES="runtime/gpu" selects packages
	GO="$(GO)" sh tools/bundle/windows.sh $(BUILD)/windows $(PACKAGES)

.PHONY: setup-abi
setup-abi: ## install qemu and a cross compiler for test-abi
	@if ! command -v qemu-aarch64 >/dev/null || ! command -v $(CROSS) >/dev/null || ! test -e /usr/aarch64-linux-gnu/lib/libc.so.6; then \
		$(APT_GET) update && $(APT_GET) install -y --no-install-recommends qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross; \
	fi

.PHONY: bench-call
bench-call: ## compare C calls with cgo's (needs gcc)
	cd testdata/callbench && $(GO) run .

.PHONY: build-matrix $(PLATFORMS:%=build-for/%) $(TAGS:%=build-with/%)
build-matrix: ## build or vet for every platform and tag, and check that nogpu makes static programs; VET=-printf=false leaves out a check
	@$(MAKE) -j2 --output-sync=target $(PLATFORMS:%=build-for/%) $(TAGS:%=build-with/%) vet-static
	CGO_ENABLED=0 GOOS=linux $(GO) build -tags nogpu -o $(BUILD)/gpuinfo-nogpu ./tools/gpuinfo
	@if readelf -lW $(BUILD)/gpuinfo-nogpu | grep -E '^ *(INTERP|DYNAMIC) '; then \
		echo "$(BUILD)/gpuinfo-nogpu is dynamic: with the tag nogpu no package that loads libraries may be linked in" >&2; exit 1; \
	fi
	@echo "$(BUILD)/gpuinfo-nogpu is static"
	CGO_ENABLED=0 $(GO) test -vet=off -timeout $(TIMEOUT) -run '^TestCopyOut$$/^tests$$' ./runtime/examples

# Nothing of these builds is run. Without optimizations they take a quarter less time. go vet compiles
# the packages that others import, and type-checks all, tests included. So only two programs are linked.
$(PLATFORMS:%=build-for/%): build-for/%:
	@set -ex; export CGO_ENABLED=0 GOOS=$(*D) GOARCH=$(*F); \
	case $* in \
	linux/amd64 | windows/arm64 | freebsd/amd64) $(GO) build -gcflags='all=-N -l' ./... ;; \
	*) $(GO) vet -gcflags='all=-N -l' $(VET) ./...; \
		$(GO) build -gcflags='all=-N -l' ./tools/gpuinfo ./runtime/examples/llama ;; \
	esac

# With a tag, only runtime/dl and the tests of gpuinfo have other files for arm64 than for amd64.
$(TAGS:%=build-with/%): build-with/%:
	@set -ex; export CGO_ENABLED=0 GOOS=linux; \
	GOARCH=amd64 $(GO) build -tags $* ./...; \
	GOARCH=amd64 $(GO) vet $(VET) -tags $* $$($(GO) list ./... | grep -vE '$(UNTAGGED)'); \
	GOARCH=arm64 $(GO) vet $(VET) -tags $* ./runtime/dl/...

.PHONY: vet-static
vet-static:
	@set -ex; export CGO_ENABLED=0 GOOS=linux; \
	GOARCH=amd64 $(GO) vet $(VET) -tags puregpu_static $(STATIC); \
	GOARCH=arm64 $(GO) vet $(VET) -tags puregpu_static ./runtime/dl/... ./tools/gpuinfo

.PHONY: gputrace-browser
gputrace-browser: ## open gputrace's pages in headless Chromium and operate them by mouse and keys (needs: apt-get install chromium)
	@command -v "$${PUREGPU_TEST_BROWSER:-chromium}" || { echo "no Chromium: install it, or name it in PUREGPU_TEST_BROWSER" >&2; exit 1; }
	mkdir -p $(BUILD)/gputrace
	cd tools/gputrace/browsertest && $(GO) vet ./... && $(GO) test -count=1 ./... -shots "$(CURDIR)/$(BUILD)/gputrace"
	@echo "screenshots are in $(BUILD)/gputrace"

.PHONY: gputrace-bundle
gputrace-bundle: ## bundle the script of gputrace's pages (needs Node.js and npm)
	tools/gputrace/web/build.sh

.PHONY: real-hip
real-hip: ## test packages hip, hiprtc and hipdriver against Debian's libamdhip64, without an AMD GPU
	GO="$(GO)" tools/bundle/hip.sh $(BUILD)/hip

.PHONY: real-libs
real-libs: ## check all bindings against Debian's builds of many library releases and record the result; needs no GPU (downloads 2.2 GB)
	CGO_ENABLED=0 GO="$(GO)" $(GO) run ./tools/reallibs -dir $(BUILD)/reallibs -write
	CGO_ENABLED=0 $(GO) test -count=1 ./tools/reallibs -update

.PHONY: real-libs-short
real-libs-short: ## the same for releases with small packages (downloads 150 MB); writes nothing
	CGO_ENABLED=0 GO="$(GO)" $(GO) run ./tools/reallibs -dir $(BUILD)/reallibs -short -within 5m

.PHONY: real-headers
real-headers: ## prove with C libraries built from the headers of many releases that every call passes the right layout (downloads 130 MB)
	CGO_ENABLED=0 $(GO) run ./tools/reallibs -dir $(BUILD)/reallibs -headers

.PHONY: real-headers-short
real-headers-short: ## the same for HIP, whose headers are small and differ most
	CGO_ENABLED=0 $(GO) run ./tools/reallibs -dir $(BUILD)/reallibs -headers -short -within 5m

.PHONY: bind-headers
bind-headers: ## bind some ninety libraries of Debian and compare bindgen's tables with a C compiler (downloads 100 MB); NAMES="zlib HSA" selects libraries, WRITE=1 writes the table in the guide
	CGO_ENABLED=0 $(GO) run ./tools/reallibs -dir $(BUILD)/reallibs -bind -within 5m $(if $(WRITE),-write) $(NAMES)

.PHONY: test-static
test-static: ## run static programs on an empty system, musl, and Debian 11 to 13 (needs root, downloads 15 MB); STRESS=10m adds 10 minutes of C calls on each
	GO="$(GO)" tools/bundle/systems.sh $(BUILD)/static

.PHONY: test-alpine
test-alpine: ## the musl part of test-static: programs start with and without the tag puregpu_static, and say what a GPU needs
	GO="$(GO)" tools/bundle/systems.sh $(BUILD)/static musl

.PHONY: test-deploy
test-deploy: ## follow the container recipes in the folder deploy, start programs there with a fake driver, and check the Kubernetes manifest (needs root and gcc, downloads 4 MB and Kubernetes' API types)
	GO="$(GO)" tools/bundle/deploy.sh $(BUILD)/deploy

.PHONY: generate
generate: ## generate the bindings from the symbol tables, and the Go functions of kernels
	$(GO) generate ./...

.PHONY: headers
headers: ## put the C headers of all releases into build/headers: Debian's, and those of the folders that tools/bundle/headers.sh names
	tools/bundle/headers.sh $(BUILD)/headers

.PHONY: check-headers
check-headers: ## compare the tables with the headers of each release in build/headers, or HEADERS, by a C compiler, and record the result
	PUREGPU_HEADERS=$(abspath $(or $(HEADERS),$(BUILD)/headers)) $(GO) test ./internal/cproof -count=1 -v -run '^TestOwnTables$$' -update

.PHONY: refresh
refresh: ## take a release into a library's table and bindings: LIB=nccl HEADERS=DIR[,DIR...], and for HIP LIBRARY=FILE
	@test -n "$(LIB)" && test -n "$(HEADERS)" || { echo "usage: make refresh LIB=nccl HEADERS=DIR[,DIR...] [LIBRARY=FILE] [VERSION=V]" >&2; exit 1; }
	$(GO) run ./tools/refresh $(if $(LIBRARY),-library $(LIBRARY)) $(if $(VERSION),-version $(VERSION)) $(LIB) $(HEADERS)

.PHONY: fuzz-extract
fuzz-extract: ## read damaged headers for an hour, or TIME; HEADERS=FILE:FILE adds a vendor's headers
	PUREGPU_FUZZ_HEADERS=$(HEADERS) $(GO) test ./internal/extract -run '^$$' -fuzz FuzzDamaged -fuzztime $(or $(TIME),1h)

.PHONY: fuzz-headers
fuzz-headers: ## make random C headers for a minute, or TIME, and compare the extractor and the generated bit-field methods with gcc or clang; SEED=n repeats a run
	GOGC=400 CGO_ENABLED=0 $(GO) test ./internal/headerfuzz -count=1 -v -timeout 0 -run '^(TestHeaders|TestAccessors)$$' -headers.time $(or $(TIME),60s) $(if $(SEED),-headers.seed $(SEED))

.PHONY: check-generated
check-generated: ## fail if generate changes a file
	GO="$(GO)" tools/bundle/drift.sh

.PHONY: check-tidy
check-tidy: ## fail if go mod tidy would change a go.mod or go.sum
	$(GO) mod tidy -diff
	cd testdata/callbench && $(GO) mod tidy -diff
	cd tools/gputrace/browsertest && $(GO) mod tidy -diff
	cd deploy/deploytest && $(GO) mod tidy -diff

# go run builds these outside this module, so that go.mod does not require their dependencies.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
VULNDB      ?= https://vuln.go.dev

.PHONY: staticcheck
staticcheck: ## run staticcheck from the module proxy (the first time two minutes on two cores); CHECK=-tests=false leaves out the tests
	CGO_ENABLED=0 $(GO) run $(STATICCHECK) $(CHECK) ./...

.PHONY: vulncheck
vulncheck: ## look for calls of functions with known vulnerabilities; without access to the database it says so and does not fail
	@echo "$(GO) run $(GOVULNCHECK) -db $(VULNDB) ./..."; \
	said=$$(CGO_ENABLED=0 $(GO) run $(GOVULNCHECK) -db $(VULNDB) ./... 2>&1) && status=0 || status=$$?; \
	printf '%s\n' "$$said"; \
	case "$$status $$said" in \
	0*) ;; \
	*"fetching vulnerabilities"*) echo "vulncheck: NOTHING IS CHECKED: the database of vulnerabilities, $(VULNDB), cannot be reached from here" ;; \
	*) exit 1 ;; \
	esac

.PHONY: fmt
fmt: ## format the Go files
	$(GO) fmt ./...

.PHONY: size
size: ## measure the bytes and the start-up time that the bindings add to a program
	$(GO) run ./tools/size

.PHONY: gpu-bundle
gpu-bundle: ## put programs and tests into build/gpu, for a machine with a GPU and without Go: build/gpu/run.sh
	GO="$(GO)" tools/bundle/gpu.sh $(BUILD)/gpu

.PHONY: gpu-static
gpu-static: ## the same for static programs (build tag puregpu_static), a subset: build/gpu-static/static.sh
	GO="$(GO)" tools/bundle/gpustatic.sh $(BUILD)/gpu-static

.PHONY: release
release: ## check a release, and write its module zip, SBOM and checksums into build/release; VERSION=v0.1.0 if it is not the first in CHANGELOG.md
	$(GO) run ./tools/release $(VERSION)

.PHONY: clean
clean: ## remove built files
	rm -rf $(BUILD)/release $(BUILD)/gpu $(BUILD)/gpu-static $(BUILD)/static $(BUILD)/deploy $(BUILD)/hip $(BUILD)/reallibs $(BUILD)/windows $(BUILD)/*.test $(BUILD)/gpuinfo-nogpu $(BUILD)/gpuinfo-static-arm64
