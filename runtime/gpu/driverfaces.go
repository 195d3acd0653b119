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
func facesOf(drv driver.Device) (f driverFaces) {
	caps := drv.Caps()
	if caps.Pools {
		f.pooling, _ = drv.(driver.Pools)
	}
	if caps.Graphs {
		f.graphs, _ = drv.(driver.Graphs)
	}
	if caps.Native {
		f.natives, _ = drv.(driver.Natives)
	}
	if caps.Capture {
		f.capturer, _ = drv.(driver.Capturer)
	}
	if caps.Adopt {
		f.adopter, _ = drv.(driver.Adopter)
	}
	if caps.Timers {
		f.timers, _ = drv.(driver.Timers)
	}
	if caps.Peers {
		f.peers, _ = drv.(driver.Peers)
	}
	if r := caps.PriorityRange; r[0] != r[1] {
		f.priorities, _ = drv.(driver.Priorities)
	}
	if caps.IPCMem {
		f.ipcMem, _ = drv.(driver.IPCMem)
	}
	if caps.MemSharing {
		f.memSharing, _ = drv.(driver.MemSharing)
	}
	if caps.PoolSharing {
		f.sharing, _ = drv.(driver.PoolSharing)
	}
	if caps.IPCEvents {
		f.ipcEvents, _ = drv.(driver.IPCEvents)
	}
	return f
}
