# Targets for people and for CI. `make` alone lists them. Needs Go and, where a target says so, gcc.

GO      ?= go
BUILD   := build
CROSS   := aarch64-linux-gnu-gcc
QEMU    := qemu-aarch64 -L /usr/aarch64-linux-gnu
# A process that is forked under qemu waits for ever if another thread of qemu had a lock of glib's allocator of slices at that time: this has glib
# use malloc, whose locks a fork sees to.
export G_SLICE := always-malloc
SUDO    := $(shell test "$$(id -u)" = 0 || echo sudo)
APT_GET := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get

PLATFORMS := linux/amd64 linux/arm64 windows/amd64 windows/arm64 darwin/arm64 freebsd/amd64
TAGS      := puregpu_syscalln nogpu
# What of the tag puregpu_static is another than without it.
STATIC    := ./runtime/dl/... ./cuda ./nccl ./runtime/driver/cudadriver ./runtime/drivers ./tools/gpuinfo
# Packages that call no library are the same under every tag, and programs call what the packages do.
UNTAGGED  := puregpu/(runtime/(blas|collective|compile|dnn|fft|gpu|health|interop|random|solver|sparse|trace|internal/(blockpool|engine|memory|points|recording|sema|testkit|work)|rendezvous|smallfloat|driver/simdriver)|symbols|internal/(explore(/.*)?|apitest|extract|cproof|headerfuzz|programs|kernelobject|testkernels|traceformat)|tools/(bindgen|extract|refresh|symbols|ctxprobe|gpubench|gputrace|faults|kernelgen|release|shape|explore(/.*)?))$$
# Packages that do their work on one goroutine: under the race detector nothing is to be seen of them.
SERIAL    := puregpu/(cublas|cublaslt|cudnn|cufft|curand|cusparse|cusolver|cufile|hipblas|hipfft|hiprand|internal/(mathtest|toolkittest)|runtime/internal/(points|work)|runtime/(blas|dnn|fft|random|smallfloat|solver|sparse)|symbols|internal/(apitest|extract|cproof|headerfuzz|programs|kernelobject|traceformat)|tools/(bindgen|extract|refresh|symbols|ctxprobe|faults|kernelgen|release|shape|reallibs|explore|explore/internal/.*))$$

# The core: its tests are run with and without the race detector, and none is left out.
CORE      := ./runtime/gpu ./runtime/collective ./runtime/interop ./runtime/internal/engine ./runtime/internal/memory ./runtime/internal/recording ./runtime/internal/sema
NOTCORE   := $(GO) list ./... | grep -vE 'runtime/(collective|gpu|interop|internal/(engine|memory|recording|sema))$$'

# The bindings, which call what the platform has.
BINDINGS  := ./cuda ./nccl ./nvml ./nvrtc ./nvjitlink ./cublas ./cublaslt ./cudnn ./cufft ./curand ./cusparse ./cusolver ./cufile ./cupti ./hip ./hiprtc ./hipblas ./hipfft ./hiprand

# How long the tests of one package may take. Go's default of ten minutes is too short for the largest
# ones on a busy machine. A test that hangs still ends.
TIMEOUT   ?= 40m

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## list the targets
	@awk -F ': .*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: generate ## generate the bindings, then run the examples on the GPU there is, or say what is missing
	@$(GO) run ./runtime/examples/first
	@$(GO) run ./runtime/examples/compile
	@$(GO) run ./runtime/examples/pipeline
	@$(GO) run ./runtime/examples/mlp
	@$(GO) run ./runtime/examples/allreduce
	@$(GO) run ./runtime/examples/serve -selftest
	@$(GO) run ./examples/math
	@for p in saxpy ncclrank; do $(GO) run ./runtime/examples/$$p 2>/dev/null || echo "$$p: not run: it needs a GPU of NVIDIA's"; done
	@$(GO) run ./tools/gpuinfo

.PHONY: test
test: ## vet and test everything: without cgo, and with the race detector (needs gcc)
	@echo "on two cores this takes seven to ten minutes, and longer the first time"
	$(GO) vet ./...
	cd testdata/callbench && $(GO) vet ./...
	cd tools/gputrace/browsertest && $(GO) vet ./...
	@$(MAKE) -k -j2 test-plain test-race

.PHONY: test-tags
test-tags: ## test under each build tag what is another under it
	@set -e; for tag in $(TAGS); do \
		set -x; \
		CGO_ENABLED=0 $(GO) test -timeout $(TIMEOUT) -short -tags $$tag $$($(GO) list ./... | grep -vE '$(UNTAGGED)'); \
		{ set +x; } 2>/dev/null; \
	done
	CGO_ENABLED=0 $(GO) test -timeout $(TIMEOUT) -short -tags puregpu_static $(STATIC)

# The longest tests keep one core busy for half of the time: side by side the two use both. To test copies of the examples, and to
# build them for other systems, is left to build-matrix; and to the half without the race detector what -short leaves out.
# A package that fails does not keep the others from being tested.
.PHONY: test-plain test-race
test-plain:
	@failed=0; export CGO_ENABLED=0; set -x; \
	$(GO) test -timeout $(TIMEOUT) -skip '^TestCopyOut$$/^(tests|other_systems)$$' $$($(NOTCORE)) || failed=1; \
	$(GO) test -timeout $(TIMEOUT) $(CORE) || failed=1; \
	exit $$failed
test-race:
	@failed=0; export CGO_ENABLED=1; set -x; \
	$(GO) test -timeout $(TIMEOUT) -race $(CORE) || failed=1; \
	$(GO) test -timeout $(TIMEOUT) -race -short $$($(NOTCORE) | grep -vE '$(SERIAL)') || failed=1; \
	exit $$failed

# `go list` sorts versions as Go does, release candidates included. The module proxy has the toolchains.
.PHONY: test-newest-go
test-newest-go: ## vet, build and test with the newest Go that the module proxy has, release candidates included; docs/new-go.md says what to do if it fails
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
soak: ## submit a million random operations to simulated GPUs, under the race detector if there is gcc, and fail calls of traced work; SEED=n repeats a run
	@set -e; race=; export CGO_ENABLED=0; \
	if command -v gcc >/dev/null; then race=-race CGO_ENABLED=1; fi; \
	set -x; \
	CGO_ENABLED=0 $(GO) test -count=1 -timeout=1h -run='^TestFaults$$' ./runtime/internal/engine -gpu.soak; \
	$(GO) test $$race -count=1 -timeout=2h -v -run='^TestRandom$$' ./runtime/internal/engine -gpu.soak $(if $(SEED),-gpu.seed=$(SEED))

.PHONY: faults
faults: ## put each mended fault back, and see that a test catches it (needs gcc); docs/faults.md says more
	@echo "on two cores that have nothing else to do this takes about half an hour"
	$(GO) run ./tools/faults
	$(GO) run ./tools/faults -dir internal/headerfuzz/testdata/faults

.PHONY: shape
shape: ## print figures of the core's packages: lines, fields of structs, complexity of functions, mutexes that do not say what they protect
	@$(GO) run ./tools/shape

.PHONY: locks
locks: ## run short tests with watched mutexes: no circle in their order, and at most two of the scheduler's held at a time
	$(GO) run ./tools/locks -depth 2

.PHONY: explore
explore: ## run the runtime in as many orders of its goroutines as TIME allows (10m); RACE=1 with the race detector, SEED=n as before
	$(GO) run ./tools/explore -time $(or $(TIME),10m) $(if $(RACE),-race) $(if $(SEED),-seed $(SEED)) $(if $(RUN),-run '$(RUN)')

.PHONY: test-abi
test-abi: setup-abi ## prove every function's ABI against a C library, here and for arm64 under qemu
	CGO_ENABLED=0 $(GO) test -count=1 -timeout $(TIMEOUT) -run Echo -v ./gen
	CGO_ENABLED=0 $(GO) test -count=1 -timeout $(TIMEOUT) ./runtime/dl
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) test -c -o $(BUILD)/abi-arm64.test ./gen
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) test -c -o $(BUILD)/dl-arm64.test ./runtime/dl
	cd gen && PUREGPU_TEST_CC=$(CROSS) $(QEMU) ../$(BUILD)/abi-arm64.test -test.run Echo -test.v -test.timeout $(TIMEOUT)
	cd runtime/dl && PUREGPU_TEST_CC=$(CROSS) $(QEMU) ../../$(BUILD)/dl-arm64.test -test.short -test.timeout $(TIMEOUT)
	@# With the tag puregpu_static no library opens on arm64: it is an error that says so, and programs go on. They need no libraries of arm64's.
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) test -c -tags puregpu_static -o $(BUILD)/dl-static-arm64.test ./runtime/dl
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) build -tags puregpu_static -o $(BUILD)/gpuinfo-static-arm64 ./tools/gpuinfo
	cd runtime/dl && qemu-aarch64 ../../$(BUILD)/dl-static-arm64.test -test.short -test.timeout $(TIMEOUT)
	cd runtime/dl && qemu-aarch64 ../../$(BUILD)/dl-static-arm64.test -test.run '^TestStub$$' -test.v | grep -e '--- PASS: TestStub'
	said=$$(qemu-aarch64 $(BUILD)/gpuinfo-static-arm64) && echo "$$said" | grep -m 1 'No CUDA driver: .* with puregpu_static linux/amd64'

.PHONY: test-arm64
test-arm64: setup-abi ## run the whole simulated runtime, the drivers and the bindings for arm64 under qemu (an hour and a quarter on two busy cores): for once a night; test-abi has package dl; SHORT=1 for the short form
	@echo "on two busy cores this takes an hour and a quarter; with more beside it, cases of the conformance suite, which have a minute each, end too early"
	@$(GO) list ./runtime/... $(BINDINGS) | grep -vE 'puregpu/runtime/(dl|examples)(/|$$)' | \
		CGO_ENABLED=0 GOOS=linux GOARCH=arm64 PUREGPU_TEST_CC=$(CROSS) xargs tools/bundle/arm64.sh $(GO) test -count=1 -p 2 -timeout 2h $(if $(SHORT),-short) -exec '$(QEMU)'

.PHONY: test-windows
test-windows: ## prove every function's ABI, and test the loader, the simulated runtime and rendezvous, for windows/amd64 under Wine (160 MB to fetch; some 25 minutes on two busy cores); PACKAGES="runtime/gpu" for some
	GO="$(GO)" sh tools/bundle/windows.sh $(BUILD)/windows $(PACKAGES)

.PHONY: setup-abi
setup-abi: ## install what test-abi needs: qemu and a cross compiler
	@if ! command -v qemu-aarch64 >/dev/null || ! command -v $(CROSS) >/dev/null || ! test -e /usr/aarch64-linux-gnu/lib/libc.so.6; then \
		$(APT_GET) update && $(APT_GET) install -y --no-install-recommends qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross; \
	fi

.PHONY: bench-call
bench-call: ## compare C calls with cgo's (needs gcc)
	cd testdata/callbench && $(GO) run .

.PHONY: build-matrix $(PLATFORMS:%=build-for/%) $(TAGS:%=build-with/%)
build-matrix: ## build for every platform and tag, and vet for those that others do not stand for; check that nogpu makes static programs
	@$(MAKE) -j2 --output-sync=target $(PLATFORMS:%=build-for/%) $(TAGS:%=build-with/%) vet-static
	CGO_ENABLED=0 GOOS=linux $(GO) build -tags nogpu -o $(BUILD)/gpuinfo-nogpu ./tools/gpuinfo
	@if readelf -lW $(BUILD)/gpuinfo-nogpu | grep -E '^ *(INTERP|DYNAMIC) '; then \
		echo "$(BUILD)/gpuinfo-nogpu is dynamic: with the tag nogpu nothing may be linked in that loads libraries" >&2; exit 1; \
	fi
	@echo "$(BUILD)/gpuinfo-nogpu is static"
	CGO_ENABLED=0 $(GO) test -timeout $(TIMEOUT) -run '^TestCopyOut$$' ./runtime/examples

$(PLATFORMS:%=build-for/%): build-for/%:
	@set -ex; export CGO_ENABLED=0 GOOS=$(*D) GOARCH=$(*F); \
	$(GO) build ./...; \
	case $* in \
	linux/amd64 | windows/arm64 | freebsd/amd64) ;; \
	*) $(GO) vet ./... ;; \
	esac

# To vet compiles what is imported, and checks the types of the rest: for the second processor that is enough.
$(TAGS:%=build-with/%): build-with/%:
	@set -ex; export CGO_ENABLED=0 GOOS=linux; \
	GOARCH=amd64 $(GO) build -tags $* ./...; \
	for arch in amd64 arm64; do \
		GOARCH=$$arch $(GO) vet -tags $* $$($(GO) list ./... | grep -vE '$(UNTAGGED)'); \
	done

.PHONY: vet-static
vet-static:
	@set -ex; export CGO_ENABLED=0 GOOS=linux; \
	for arch in amd64 arm64; do GOARCH=$$arch $(GO) vet -tags puregpu_static $(STATIC); done

.PHONY: gputrace-browser
gputrace-browser: ## open gputrace's pages in headless Chromium (needs it: apt-get install chromium) and operate them by mouse and keys
	@command -v "$${PUREGPU_TEST_BROWSER:-chromium}" || { echo "no Chromium: install it, or name it in PUREGPU_TEST_BROWSER" >&2; exit 1; }
	mkdir -p $(BUILD)/gputrace
	cd tools/gputrace/browsertest && $(GO) vet ./... && $(GO) test -count=1 ./... -shots "$(CURDIR)/$(BUILD)/gputrace"
	@echo "screenshots are in $(BUILD)/gputrace"

.PHONY: gputrace-bundle
gputrace-bundle: ## bundle the script of gputrace's pages anew (needs Node.js and npm)
	tools/gputrace/web/build.sh

.PHONY: real-hip
real-hip: ## test packages hip, hiprtc and hipdriver against Debian's libamdhip64, which needs no AMD GPU to be opened
	GO="$(GO)" tools/bundle/hip.sh $(BUILD)/hip

.PHONY: real-libs
real-libs: ## hold all bindings against Debian's builds of many releases of their libraries, which need no GPU (2.2 GB to fetch), and record them
	CGO_ENABLED=0 GO="$(GO)" $(GO) run ./tools/reallibs -dir $(BUILD)/reallibs -write
	CGO_ENABLED=0 $(GO) test -count=1 ./tools/reallibs -update

.PHONY: real-libs-short
real-libs-short: ## the same for the releases that are small to fetch (150 MB); nothing is written
	CGO_ENABLED=0 GO="$(GO)" $(GO) run ./tools/reallibs -dir $(BUILD)/reallibs -short -within 5m

.PHONY: real-headers
real-headers: ## prove against C libraries made of the headers of many releases that no call passes another layout (130 MB to fetch)
	CGO_ENABLED=0 $(GO) run ./tools/reallibs -dir $(BUILD)/reallibs -headers

.PHONY: real-headers-short
real-headers-short: ## the same for HIP, whose headers are small to fetch and differ most
	CGO_ENABLED=0 $(GO) run ./tools/reallibs -dir $(BUILD)/reallibs -headers -short -within 5m

.PHONY: bind-headers
bind-headers: ## bind some ninety libraries whose headers Debian has, and compare with a C compiler what bindgen makes of them (100 MB to fetch); NAMES="zlib HSA" for some, WRITE=1 for the table in the guide
	CGO_ENABLED=0 $(GO) run ./tools/reallibs -dir $(BUILD)/reallibs -bind -within 5m $(if $(WRITE),-write) $(NAMES)

.PHONY: test-static
test-static: ## run static programs on other systems: none, musl, Debian 11 to 13 (needs root, fetches 15 MB); STRESS=10m calls C as long on each
	GO="$(GO)" tools/bundle/systems.sh $(BUILD)/static

.PHONY: test-alpine
test-alpine: ## the part of test-static with musl, as Alpine has it: programs start, with the tag puregpu_static and without, and say what a GPU needs
	GO="$(GO)" tools/bundle/systems.sh $(BUILD)/static musl

.PHONY: test-deploy
test-deploy: ## follow the container recipes in the folder deploy, start programs there with a fake driver, and check the Kubernetes manifest (needs root and gcc, fetches 4 MB and Kubernetes' API types)
	GO="$(GO)" tools/bundle/deploy.sh $(BUILD)/deploy

.PHONY: generate
generate: ## write the bindings anew from the symbol tables, and the Go functions of kernels
	$(GO) generate ./...

.PHONY: headers
headers: ## lay the C headers of all releases out in build/headers: Debian's, and from the folders that tools/bundle/headers.sh names
	tools/bundle/headers.sh $(BUILD)/headers

.PHONY: check-headers
check-headers: ## prove what the tables say of each release in build/headers, or HEADERS, with a C compiler and those headers, and record it
	PUREGPU_HEADERS=$(abspath $(or $(HEADERS),$(BUILD)/headers)) $(GO) test ./internal/cproof -count=1 -v -run '^TestOwnTables$$' -update

.PHONY: refresh
refresh: ## take a release into a library's table and bindings: LIB=nccl HEADERS=DIR[,DIR...], and for HIP LIBRARY=FILE
	@test -n "$(LIB)" && test -n "$(HEADERS)" || { echo "usage: make refresh LIB=nccl HEADERS=DIR[,DIR...] [LIBRARY=FILE] [VERSION=V]" >&2; exit 1; }
	$(GO) run ./tools/refresh $(if $(LIBRARY),-library $(LIBRARY)) $(if $(VERSION),-version $(VERSION)) $(LIB) $(HEADERS)

.PHONY: fuzz-extract
fuzz-extract: ## damage headers in every way for an hour, or TIME, and read them; HEADERS=FILE:FILE takes a vendor's among them
	PUREGPU_FUZZ_HEADERS=$(HEADERS) $(GO) test ./internal/extract -run '^$$' -fuzz FuzzDamaged -fuzztime $(or $(TIME),1h)

.PHONY: fuzz-headers
fuzz-headers: ## make C headers at random for a minute, or TIME, and compare the extractor and the generated bit-field methods with gcc and clang (needs one of them); SEED=n repeats a run
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

# They are built by themselves, so that go.mod does not require what they need.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
VULNDB      ?= https://vuln.go.dev

.PHONY: staticcheck
staticcheck: ## look for mistakes with staticcheck, which the module proxy has (two minutes on two cores, the first time)
	CGO_ENABLED=0 $(GO) run $(STATICCHECK) ./...

.PHONY: vulncheck
vulncheck: ## look for calls of functions with known vulnerabilities; if their database cannot be reached, it says so and does not fail
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
size: ## compare a program that is linked with the bindings with one that is not: bytes and start-up time
	$(GO) run ./tools/size

.PHONY: gpu-bundle
gpu-bundle: ## put programs and tests into build/gpu, to be run on a machine with a GPU and no Go: build/gpu/run.sh
	GO="$(GO)" tools/bundle/gpu.sh $(BUILD)/gpu

.PHONY: gpu-static
gpu-static: ## the same for static programs (build tag puregpu_static), a part of it: build/gpu-static/static.sh
	GO="$(GO)" tools/bundle/gpustatic.sh $(BUILD)/gpu-static

.PHONY: release
release: ## check what a release needs, and write its module zip, bill of materials and checksums into build/release; VERSION=v0.1.0 if it is not the first of CHANGELOG.md
	$(GO) run ./tools/release $(VERSION)

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BUILD)/release $(BUILD)/gpu $(BUILD)/gpu-static $(BUILD)/static $(BUILD)/deploy $(BUILD)/hip $(BUILD)/reallibs $(BUILD)/windows $(BUILD)/*.test $(BUILD)/gpuinfo-nogpu $(BUILD)/gpuinfo-static-arm64
