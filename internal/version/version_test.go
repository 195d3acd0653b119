package version

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestInfo(t *testing.T) {
	settings := []debug.BuildSetting{
		{Key: "CGO_ENABLED", Value: "0"}, {Key: "vcs.revision", Value: "1a2b3c"},
		{Key: "vcs.time", Value: "2026-11-22T22:28:28Z"}, {Key: "vcs.modified", Value: "true"},
	}
	other := debug.Module{Path: "example.com/app", Version: "v3.0.0"}
	for _, test := range []struct {
		name  string
		build *debug.BuildInfo
		want  string // the text before Go's version
	}{
		{"nothing known", nil, "puregpu (unknown)"},
		{"release", &debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.1.0"}}, "puregpu v0.1.0"},
		{"working tree", &debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}}, "puregpu (devel)"},
		{"no version", &debug.BuildInfo{Main: debug.Module{Path: module}}, "puregpu (devel)"},
		{"changed working tree", &debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}, Settings: settings},
			"puregpu (devel) (revision 1a2b3c of 2026-11-22T22:28:28Z, modified)"},
		{"clean working tree", &debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.1.1-0.2026"}, Settings: settings[:3]},
			"puregpu v0.1.1-0.2026 (revision 1a2b3c of 2026-11-22T22:28:28Z)"},
		{"revision without a time", &debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}, Settings: settings[:2]},
			"puregpu (devel) (revision 1a2b3c)"},
		{"part of another module, whose revision it is", &debug.BuildInfo{
			Main: other, Deps: []*debug.Module{{Path: "example.com/x", Version: "v9.0.0"}, {Path: module, Version: "v0.2.0"}}, Settings: settings},
			"puregpu v0.2.0"},
		{"replaced by a fork", &debug.BuildInfo{
			Main: other, Deps: []*debug.Module{{Path: module, Version: "v0.2.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v0.2.1"}}}},
			"puregpu v0.2.1"},
		{"replaced by a folder", &debug.BuildInfo{
			Main: other, Deps: []*debug.Module{{Path: module, Version: "v0.2.0", Replace: &debug.Module{Path: "../puregpu"}}}},
			"puregpu (devel)"},
		{"not in the build", &debug.BuildInfo{Main: other}, "puregpu (unknown)"},
	} {
		want := test.want + ", " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
		if got := from(test.build).String(); got != want {
			t.Errorf("%s: %q, want %q", test.name, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	if got := Read().String(); !strings.HasPrefix(got, "puregpu (devel)") && !strings.HasPrefix(got, "puregpu v") {
		t.Errorf("a test of puregpu says that it is of %q", got)
	}
}
