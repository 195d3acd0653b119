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

// number returns the address of an int32 field of a config.
func (f *configField) number(c *Config) *int32 {
	return (*int32)(unsafe.Add(unsafe.Pointer(c), f.offset))
}

// set reports whether the field has a value in c.
func (f *configField) set(c *Config) bool {
	if f.pointer {
		return *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(c), f.offset)) != nil
	}
	return *f.number(c) != ConfigUndefInt
}

// NewConfig returns settings that leave the choice of every field to the library, like
// NCCL_CONFIG_INITIALIZER in C. Their layout is the one that the open library knows, or the newest
// one of this package if the library is newer or its release is unknown. Set fields, and pass the
// settings to [Library.CommInitRankConfig] or [Library.CommSplit]. The library copies the settings
// during the call, except the text behind CommName, which must stay as long as the communicator.
func (l *Library) NewConfig() Config { return newConfig(l.Version()) }

func newConfig(v dl.Version) Config {
	if v == 0 || v > tableVersion { // the release is unknown, or newer than the table
		v = tableVersion
	}
	c := Config{Magic: configMagic, Version: uint32(v), Size: configLayouts[0].size}
	for _, l := range configLayouts {
		if v >= l.since {
			c.Size = l.size
		}
	}
	for i := range configFields {
		if f := &configFields[i]; !f.pointer {
			*f.number(&c) = ConfigUndefInt
		}
	}
	return c
}

// CheckConfig returns an error if c sets a field that the open library is too old to know: the
// library would silently ignore the field. If the library's release is unknown, c may set every
// field. CheckConfig also returns an error if NewConfig did not make c.
func (l *Library) CheckConfig(c *Config) error { return checkConfig(c, l.Version()) }

func checkConfig(c *Config, v dl.Version) error {
	if c == nil {
		return nil
	}
	if c.Magic != configMagic {
		return fmt.Errorf("nccl: config was not made by NewConfig: its magic number is %#x", c.Magic)
	}
	for i := range configFields {
		f := &configFields[i]
		if f.set(c) && v != 0 && v < f.since {
			return fmt.Errorf("nccl: config field %s needs NCCL %s, and the library is %s", f.name, FormatVersion(f.since), FormatVersion(v))
		}
	}
	return nil
}

// NewSimInfo returns a record for [Library.GroupSimulateEnd] to fill, like
// NCCL_SIM_INFO_INITIALIZER in C.
func (l *Library) NewSimInfo() SimInfo {
	v := uint32(tableVersion)
	if have := l.Version(); have != 0 {
		v = uint32(min(have, tableVersion))
	}
	return SimInfo{Size: uint64(unsafe.Sizeof(SimInfo{})), Magic: simInfoMagic, Version: v, EstimatedTime: UndefFloat}
}
