package nccl

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// releases lists the length of ncclConfig_t and the new fields in each release that changed it.
var releases = []struct {
	version dl.Version
	size    uint64
	brought []string
}{
	{21403, 24, []string{"Blocking"}},
	{21602, 24, nil},
	{21701, 40, []string{"CgaClusterSize", "MinCTAs", "MaxCTAs", "NetName"}},
	{21801, 48, []string{"SplitShare"}},
	{22505, 48, nil},
	{22602, 48, []string{"TrafficClass"}}, // the field is in former padding
	{22703, 72, []string{"CommName", "CollnetEnable", "CTAPolicy", "ShrinkShare", "NvlsCTAs"}},
	{22803, 80, []string{"NChannelsPerNetPeer", "NvlinkCentricSched"}},
	{22902, 88, []string{"GraphUsageMode", "NumRmaCtx"}},
	{23003, 96, []string{"MaxP2pPeers"}},
	{23007, 96, []string{"GraphStreamOrdering"}}, // the field is in former padding
}

// fields has a function for each field of Config, which sets the field.
var fields = map[string]func(*Config){
	"Blocking":            func(c *Config) { c.Blocking = 0 },
	"CgaClusterSize":      func(c *Config) { c.CgaClusterSize = 2 },
	"MinCTAs":             func(c *Config) { c.MinCTAs = 1 },
	"MaxCTAs":             func(c *Config) { c.MaxCTAs = 1 },
	"NetName":             func(c *Config) { c.NetName = new(byte) },
	"SplitShare":          func(c *Config) { c.SplitShare = 1 },
	"TrafficClass":        func(c *Config) { c.TrafficClass = 3 },
	"CommName":            func(c *Config) { c.CommName = new(byte) },
	"CollnetEnable":       func(c *Config) { c.CollnetEnable = 1 },
	"CTAPolicy":           func(c *Config) { c.CTAPolicy = 1 },
	"ShrinkShare":         func(c *Config) { c.ShrinkShare = 1 },
	"NvlsCTAs":            func(c *Config) { c.NvlsCTAs = 1 },
	"NChannelsPerNetPeer": func(c *Config) { c.NChannelsPerNetPeer = 1 },
	"NvlinkCentricSched":  func(c *Config) { c.NvlinkCentricSched = 1 },
	"GraphUsageMode":      func(c *Config) { c.GraphUsageMode = 1 },
	"NumRmaCtx":           func(c *Config) { c.NumRmaCtx = 1 },
	"MaxP2pPeers":         func(c *Config) { c.MaxP2pPeers = 1 },
	"GraphStreamOrdering": func(c *Config) { c.GraphStreamOrdering = 1 },
}

func TestNewConfigFitsTheLibrary(t *testing.T) {
	for _, r := range releases {
		c := newConfig(r.version)
		if c.Size != r.size || c.Version != uint32(r.version) || c.Magic != 0xcafebeef {
			t.Errorf("NCCL %s: size %d, version %d, magic %#x; want %d, %d", FormatVersion(r.version), c.Size, c.Version, c.Magic, r.size, r.version)
		}
		for i := range configFields {
			if f := &configFields[i]; f.set(&c) {
				t.Errorf("NCCL %s: a new config has %s set", FormatVersion(r.version), f.name)
			}
		}
		if err := checkConfig(&c, r.version); err != nil {
			t.Errorf("NCCL %s: %v", FormatVersion(r.version), err)
		}
	}
	// A library newer than the bindings gets the newest layout that they know.
	if c := newConfig(99999); c.Size != uint64(unsafe.Sizeof(c)) || c.Version != tableVersion {
		t.Errorf("NCCL 9.99.99: size %d, version %d", c.Size, c.Version)
	}
	// A library without settings gets the shortest layout.
	if c := newConfig(21003); c.Size != 24 {
		t.Errorf("NCCL 2.10.3: size %d", c.Size)
	}
}

func TestCheckConfigRefusesFieldsThatAreTooNew(t *testing.T) {
	seen := 0
	for i, r := range releases {
		for _, name := range r.brought {
			seen++
			for j, lib := range releases {
				c := newConfig(lib.version)
				fields[name](&c)
				err := checkConfig(&c, lib.version)
				if j >= i {
					if err != nil {
						t.Errorf("NCCL %s: %v", FormatVersion(lib.version), err)
					}
					continue
				}
				want := "nccl: config field " + name + " needs NCCL " + FormatVersion(r.version) + ", and the library is " + FormatVersion(lib.version)
				if err == nil || err.Error() != want {
					t.Errorf("NCCL %s: error %v, want %s", FormatVersion(lib.version), err, want)
				}
			}
		}
	}
	if seen != len(fields) {
		t.Errorf("%d fields tried of %d", seen, len(fields))
	}
}

func TestCheckConfig(t *testing.T) {
	if err := checkConfig(nil, 22803); err != nil {
		t.Errorf("no config: %v", err)
	}
	if err := checkConfig(new(Config), 22803); err == nil || !strings.Contains(err.Error(), "not made by NewConfig") {
		t.Errorf("a zero config: %v", err)
	}
	c := newConfig(0)
	fields["NvlinkCentricSched"](&c)
	if err := checkConfig(&c, 0); err != nil {
		t.Errorf("a library of unknown version: %v", err)
	}
}

func TestNewSimInfo(t *testing.T) {
	s := new(Library).NewSimInfo()
	if s.Size != uint64(unsafe.Sizeof(s)) || s.Magic != 0x74685283 || s.Version != tableVersion || s.EstimatedTime != UndefFloat {
		t.Errorf("%+v", s)
	}
}
