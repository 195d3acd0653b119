package nccl

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

const (
	configMagic  = 0xcafebeef // NCCL_CONFIG_INITIALIZER
	simInfoMagic = 0x74685283 // NCCL_SIM_INFO_INITIALIZER
)

// configSizes says how long ncclConfig_t was from which release on, newest first. Two fields were put into padding, so
// that a size alone does not tell a layout.
var configSizes = []struct {
	since dl.Version
	size  uint64
}{
	{22803, uint64(unsafe.Sizeof(Config{}))},
	{22703, 72},
	{21801, 48},
	{21701, 40},
	{21403, 24},
}

// configFields says which release brought each field.
var configFields = []struct {
	since dl.Version
	name  string
	set   func(*Config) bool
}{
	{21403, "Blocking", func(c *Config) bool { return c.Blocking != ConfigUndefInt }},
	{21701, "CgaClusterSize", func(c *Config) bool { return c.CgaClusterSize != ConfigUndefInt }},
	{21701, "MinCTAs", func(c *Config) bool { return c.MinCTAs != ConfigUndefInt }},
	{21701, "MaxCTAs", func(c *Config) bool { return c.MaxCTAs != ConfigUndefInt }},
	{21701, "NetName", func(c *Config) bool { return c.NetName != nil }},
	{21801, "SplitShare", func(c *Config) bool { return c.SplitShare != ConfigUndefInt }},
	{22602, "TrafficClass", func(c *Config) bool { return c.TrafficClass != ConfigUndefInt }},
	{22703, "CommName", func(c *Config) bool { return c.CommName != nil }},
	{22703, "CollnetEnable", func(c *Config) bool { return c.CollnetEnable != ConfigUndefInt }},
	{22703, "CTAPolicy", func(c *Config) bool { return c.CTAPolicy != ConfigUndefInt }},
	{22703, "ShrinkShare", func(c *Config) bool { return c.ShrinkShare != ConfigUndefInt }},
	{22703, "NvlsCTAs", func(c *Config) bool { return c.NvlsCTAs != ConfigUndefInt }},
	{22803, "NChannelsPerNetPeer", func(c *Config) bool { return c.NChannelsPerNetPeer != ConfigUndefInt }},
	{22803, "NvlinkCentricSched", func(c *Config) bool { return c.NvlinkCentricSched != ConfigUndefInt }},
}

// NewConfig returns settings with every field left to the library, in the layout that the open library knows: what
// NCCL_CONFIG_INITIALIZER is in C. Set the fields that matter and pass it to [Library.CommInitRankConfig] or
// [Library.CommSplit]. The library copies the settings during the call, but not what CommName points to, which must stay
// as long as the communicator.
func (l *Library) NewConfig() Config { return newConfig(l.Version()) }

func newConfig(v dl.Version) Config {
	c := Config{
		Magic: configMagic, Version: uint32(min(v, tableVersion)),
		Blocking: ConfigUndefInt, CgaClusterSize: ConfigUndefInt, MinCTAs: ConfigUndefInt, MaxCTAs: ConfigUndefInt,
		SplitShare: ConfigUndefInt, TrafficClass: ConfigUndefInt, CollnetEnable: ConfigUndefInt, CTAPolicy: ConfigUndefInt,
		ShrinkShare: ConfigUndefInt, NvlsCTAs: ConfigUndefInt, NChannelsPerNetPeer: ConfigUndefInt, NvlinkCentricSched: ConfigUndefInt,
	}
	if v == 0 { // unknown: what the table was made from
		c.Version = tableVersion
	}
	c.Size = configSizes[len(configSizes)-1].size
	for _, s := range configSizes {
		if dl.Version(c.Version) >= s.since {
			c.Size = s.size
			break
		}
	}
	return c
}

// CheckConfig reports a field of c that is set and that the open library is too old to know: the library would ignore it
// without a word.
func (l *Library) CheckConfig(c *Config) error { return checkConfig(c, l.Version()) }

func checkConfig(c *Config, v dl.Version) error {
	if c == nil {
		return nil
	}
	if c.Magic != configMagic {
		return fmt.Errorf("nccl: config was not made by NewConfig: its magic number is %#x", c.Magic)
	}
	for _, f := range configFields {
		if f.set(c) && v != 0 && v < f.since {
			return fmt.Errorf("nccl: config field %s needs NCCL %s, and the library is %s", f.name, FormatVersion(f.since), FormatVersion(v))
		}
	}
	return nil
}

// NewSimInfo returns the record that [Library.GroupSimulateEnd] fills: what NCCL_SIM_INFO_INITIALIZER is in C.
func (l *Library) NewSimInfo() SimInfo {
	v := uint32(tableVersion)
	if have := l.Version(); have != 0 {
		v = uint32(min(have, tableVersion))
	}
	return SimInfo{Size: uint64(unsafe.Sizeof(SimInfo{})), Magic: simInfoMagic, Version: v, EstimatedTime: UndefFloat}
}
