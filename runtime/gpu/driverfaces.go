package gpu

import "github.com/puregpu/puregpu/runtime/driver"

// driverFaces are what a driver's device has besides driver.Device; nil is what it has not.
type driverFaces struct {
	pooling    driver.Pools
	graphs     driver.Graphs
	natives    driver.Natives
	capturer   driver.Capturer
	adopter    driver.Adopter
	timers     driver.Timers
	peers      driver.Peers
	priorities driver.Priorities
	ipcMem     driver.IPCMem
	ipcEvents  driver.IPCEvents
	memSharing driver.MemSharing
	sharing    driver.PoolSharing
}

// facesOf returns what a device has, as its Caps say.
func facesOf(drv driver.Device, caps *driver.Caps) driverFaces {
	priorities := caps.PriorityRange
	return driverFaces{
		pooling:    face[driver.Pools](drv, caps.Pools),
		graphs:     face[driver.Graphs](drv, caps.Graphs),
		natives:    face[driver.Natives](drv, caps.Native),
		capturer:   face[driver.Capturer](drv, caps.Capture),
		adopter:    face[driver.Adopter](drv, caps.Adopt),
		timers:     face[driver.Timers](drv, caps.Timers),
		peers:      face[driver.Peers](drv, caps.Peers),
		priorities: face[driver.Priorities](drv, priorities[0] != priorities[1]),
		ipcMem:     face[driver.IPCMem](drv, caps.IPCMem),
		ipcEvents:  face[driver.IPCEvents](drv, caps.IPCEvents),
		memSharing: face[driver.MemSharing](drv, caps.MemSharing),
		sharing:    face[driver.PoolSharing](drv, caps.PoolSharing),
	}
}

// face returns one of them, if the device has it.
func face[T any](drv driver.Device, has bool) (f T) {
	if has {
		f, _ = drv.(T)
	}
	return f
}
