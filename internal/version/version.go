// Package version returns the version of puregpu that a program was built from, for printing and
// for bug reports.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// module is the path of puregpu's own module.
const module = "github.com/puregpu/puregpu"

// Unknown is the version of a program built without module information.
const Unknown = "(unknown)"

// Info holds the facts about a program's build.
type Info struct {
	Module   string // puregpu's version: "v0.1.0", "(devel)" for a working tree, or Unknown
	Revision string // revision in version control, if the build has it
	Time     string // time of the revision, as RFC 3339
	Modified bool   // the working tree had changes
	Go       string // "go1.26.0"
	OS, Arch string
}

// Read returns the build information of the running program.
func Read() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = nil
	}
	return from(build)
}

// from extracts build information; build may be nil. The build's revision is the main module's. So
// the result has a revision only if puregpu is the main module.
func from(build *debug.BuildInfo) Info {
	i := Info{Module: Unknown, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if build == nil {
		return i
	}
	if build.Main.Path != module {
		for _, d := range build.Deps {
			if d.Path == module {
				i.Module = moduleVersion(d)
			}
		}
		return i
	}
	i.Module = moduleVersion(&build.Main)
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Revision = s.Value
		case "vcs.time":
			i.Time = s.Value
		case "vcs.modified":
			i.Modified = s.Value == "true"
		}
	}
	return i
}

// moduleVersion returns the version of m or of its replacement. A replacement by a folder has no
// version.
func moduleVersion(m *debug.Module) string {
	v := m.Version
	if m.Replace != nil {
		v = m.Replace.Version
	}
	if v == "" {
		return "(devel)"
	}
	return v
}

// String returns one line: "puregpu v0.1.0 (revision 1a2b3c of 2026-11-22T22:28:28Z), go1.26.0
// linux/amd64".
func (i Info) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "puregpu %s", i.Module)
	if i.Revision != "" {
		fmt.Fprintf(&b, " (revision %s", i.Revision)
		if i.Time != "" {
			fmt.Fprintf(&b, " of %s", i.Time)
		}
		if i.Modified {
			b.WriteString(", modified")
		}
		b.WriteByte(')')
	}
	fmt.Fprintf(&b, ", %s %s/%s", i.Go, i.OS, i.Arch)
	return b.String()
}
