package main

// schema is the version of the JSON that -json prints. A field that changes or is removed raises
// the version; an added field does not.
const schema = 1

// A Report is all findings of gpuinfo. -json prints it.
type Report struct {
	Schema    int       `json:"schema"`
	Program   Program   `json:"program"`
	Libraries []Library `json:"libraries"`        // all that gpuinfo searches for, also those not found: see probes
	Devices   []Device  `json:"devices"`          // of all libraries
	Links     []Link    `json:"links,omitempty"`  // between devices of one library, both ways
	System    *System   `json:"system,omitempty"` // with -explain
	Advice    []string  `json:"advice,omitempty"` // what to do next, with -explain
}

// A System describes the operating system.
type System struct {
	Name      string   `json:"name"`                // "Debian GNU/Linux 12 (bookworm)"
	Kernel    string   `json:"kernel,omitempty"`    // release of the kernel
	Container string   `json:"container,omitempty"` // the container that gpuinfo runs in: "Docker, Kubernetes"
	NVIDIA    string   `json:"nvidia,omitempty"`    // release of NVIDIA's driver in the kernel; absent if it is not loaded
	AMD       string   `json:"amd,omitempty"`       // release of AMD's, or "loaded"
	Nodes     []string `json:"nodes,omitempty"`     // device nodes: mode, owner, and whether gpuinfo may open them
	User      string   `json:"user,omitempty"`      // user and group numbers that gpuinfo runs as
	Variables []string `json:"variables,omitempty"` // relevant environment variables: "CUDA_VISIBLE_DEVICES=0"
	Headers   string   `json:"headers,omitempty"`   // folder with the toolkit's headers for NVRTC

	noLibrary string // what to do if the kernel has NVIDIA's driver, and no library is found
}

// A Program describes the build of gpuinfo itself.
type Program struct {
	Version      string `json:"version"`                // of puregpu: "v0.1.0", "(devel)" or "(unknown)"
	Revision     string `json:"revision,omitempty"`     // of version control; absent if unknown
	RevisionTime string `json:"revisionTime,omitempty"` // as RFC 3339
	Modified     bool   `json:"modified,omitempty"`     // the revision's files were changed
	Go           string `json:"go"`                     // version of Go
	OS           string `json:"os"`                     // GOOS
	Arch         string `json:"arch"`                   // GOARCH
	FastCalls    bool   `json:"fastCalls"`              // C calls go through trampolines, not through package purego
}

// A Library is the report about a library that gpuinfo searched for.
type Library struct {
	Name          string    `json:"name"`                    // "CUDA driver"
	Package       string    `json:"package"`                 // of puregpu: cuda, nccl, nvml, nvrtc, nvjitlink, cublas, cublaslt, cufft, curand, cusparse, cusolver, cudnn, cufile, cupti, hip, hiprtc, hipblas, hipfft or hiprand
	Found         bool      `json:"found"`                   // opened, with all required functions
	Error         string    `json:"error,omitempty"`         // why it was not opened, or why it or its devices cannot be used
	Path          string    `json:"path,omitempty"`          // file loaded
	Asked         string    `json:"asked,omitempty"`         // the name passed to the system loader
	Source        string    `json:"source,omitempty"`        // the reason for that name
	Version       string    `json:"version,omitempty"`       // as text; absent if unknown
	VersionNumber int       `json:"versionNumber,omitempty"` // as the library reports it; absent if unknown
	NotReady      string    `json:"notReady,omitempty"`      // why the chosen file cannot be used now
	Attempts      []Attempt `json:"attempts,omitempty"`      // the other candidates
	Sets          []Set     `json:"sets,omitempty"`          // of functions; the first is required
	Missing       []Missing `json:"missing,omitempty"`       // functions that the library lacks
	DriverVersion string    `json:"driverVersion,omitempty"` // of the operating system's driver for its devices; absent if unknown
	Explain       string    `json:"explain,omitempty"`       // text for a bug report, with -explain

	hidden bool // the chosen file works, and the environment hides its devices
}

// An Attempt is a candidate that was not chosen.
type Attempt struct {
	Path    string `json:"path"`
	Source  string `json:"source"`
	File    string `json:"file,omitempty"`    // the loaded file
	Version string `json:"version,omitempty"` // the version that it reported
	Found   bool   `json:"found"`             // the file exists, but was refused or is not ready
	Error   string `json:"error"`
}

// A Set is a group of functions that one release of a library added.
type Set struct {
	Name   string `json:"name"`
	Status string `json:"status"` // present, partial or missing
	Since  string `json:"since"`  // release that brought it
	Have   int    `json:"have"`   // functions found
	Total  int    `json:"total"`  // functions in the set
}

// A Missing is a function that a library lacks.
type Missing struct {
	Name  string `json:"name"` // exported name
	Set   string `json:"set"`
	Since string `json:"since"`
}

// A Device is a GPU as one library sees it.
type Device struct {
	Package           string           `json:"package"`                     // cuda or hip
	Index             int              `json:"index"`                       // number that the library gives it
	Name              string           `json:"name"`                        // "NVIDIA H100 80GB HBM3"
	UUID              string           `json:"uuid,omitempty"`              // as the vendor's tools print it
	PCIAddress        string           `json:"pciAddress,omitempty"`        // domain:bus:device.function, in hexadecimal
	ComputeCapability string           `json:"computeCapability,omitempty"` // "9.0"
	MIG               bool             `json:"mig,omitempty"`               // an instance of a divided GPU
	TotalMemory       uint64           `json:"totalMemory,omitempty"`       // bytes
	FreeMemory        *uint64          `json:"freeMemory,omitempty"`        // bytes; with -memory
	Attributes        map[string]int64 `json:"attributes"`                  // by the names in attributes.go; one that the library does not know is absent
	Errors            []string         `json:"errors,omitempty"`            // the failed queries
}

// A Link is the way from one device of a library to the memory of another one.
type Link struct {
	Package string `json:"package"`           // cuda or hip
	From    int    `json:"from"`              // index of a device
	To      int    `json:"to"`                // index of another
	Kind    string `json:"kind,omitempty"`    // none, P2P if unknown, PCIe, NVLink or xGMI
	NVLinks int    `json:"nvlinks,omitempty"` // number of NVLinks from either device to the other or to switches between them; absent if none or unknown
	PCIe    string `json:"pcie,omitempty"`    // the path on PCI Express: PIX, PXB, PHB, NODE or SYS, as in nvidia-smi topo -m; absent if unknown
	Rank    *int32 `json:"rank,omitempty"`    // rank of its speed among the library's links, 0 the fastest; absent if unknown
	Hops    int    `json:"hops,omitempty"`    // absent if unknown
	Atomics bool   `json:"atomics"`           // atomic operations of kernels work over it
	Arrays  bool   `json:"arrays"`            // arrays can be used over it
	Error   string `json:"error,omitempty"`   // why the other fields are unknown
}
