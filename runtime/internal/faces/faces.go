// Package faces finds the optional interfaces of a driver's device.
package faces

import "github.com/puregpu/puregpu/runtime/driver"

// Faces are the optional interfaces of a driver's device. A nil field is an interface that the
// device does not have.
type Faces struct {
	Pools       driver.Pools
	Graphs      driver.Graphs
	Conditions  driver.Conditionals
	Natives     driver.Natives
	Capturer    driver.Capturer
	Adopter     driver.Adopter
	Timers      driver.Timers
	Peers       driver.Peers
	Priorities  driver.Priorities
	IPCMem      driver.IPCMem
	IPCEvents   driver.IPCEvents
	MemSharing  driver.MemSharing
	PoolSharing driver.PoolSharing
	VirtualMem  driver.VirtualMem
}

// Of returns the interfaces that a device has according to its Caps.
func Of(drv driver.Device, caps *driver.Caps) Faces {
	priorities := caps.PriorityRange
	return Faces{
		Pools:       face[driver.Pools](drv, caps.Pools),
		Graphs:      face[driver.Graphs](drv, caps.Graphs),
		Conditions:  face[driver.Conditionals](drv, caps.Conditionals),
		Natives:     face[driver.Natives](drv, caps.Native),
		Capturer:    face[driver.Capturer](drv, caps.Capture),
		Adopter:     face[driver.Adopter](drv, caps.Adopt),
		Timers:      face[driver.Timers](drv, caps.Timers),
		Peers:       face[driver.Peers](drv, caps.Peers),
		Priorities:  face[driver.Priorities](drv, priorities[0] != priorities[1]),
		IPCMem:      face[driver.IPCMem](drv, caps.IPCMem),
		IPCEvents:   face[driver.IPCEvents](drv, caps.IPCEvents),
		MemSharing:  face[driver.MemSharing](drv, caps.MemSharing),
		PoolSharing: face[driver.PoolSharing](drv, caps.PoolSharing),
		VirtualMem:  face[driver.VirtualMem](drv, caps.VirtualMem),
	}
}

// face returns the device as the interface T if has is true, and otherwise nil.
func face[T any](drv driver.Device, has bool) (f T) {
	if has {
		f, _ = drv.(T)
	}
	return f
}
