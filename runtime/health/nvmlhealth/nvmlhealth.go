// Package nvmlhealth is the source of package health for NVIDIA's GPUs. It reads XID errors, memory
// errors and clocks from NVML.
//
// XID errors need no privileges. They concern the whole GPU, including other programs' work. On a
// GPU divided by MIG, NVML reports to an unprivileged program only the errors that concern all
// instances; the source drops errors that name another instance. Windows and some virtual machines
// have no XID events. [health.Status].NoXIDs then says so, and readings continue.
package nvmlhealth

import (
	"errors"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/internal/nvtopology"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/health"
)

// A Library is the part of [nvml.Library] that a source needs.
type Library interface {
	DeviceGetHandleByPciBusId(pciBusId string) (nvml.Device, error)
	DeviceGetHandleByUUID(uuid string) (nvml.Device, error)
	DeviceGetGpuInstanceId(device nvml.Device) (uint32, error)
	DeviceGetSupportedEventTypes(device nvml.Device) (uint64, error)
	EventSetCreate() (nvml.EventSet, error)
	DeviceRegisterEvents(device nvml.Device, types uint64, set nvml.EventSet) error
	EventSetWait(set nvml.EventSet, timeoutms uint32) (nvml.EventData, error)
	EventSetFree(set nvml.EventSet) error
	DeviceGetTotalEccErrors(device nvml.Device, errorType nvml.MemoryErrorType, counterType nvml.EccCounterType) (uint64, error)
	DeviceGetCurrentClocksEventReasons(device nvml.Device) (uint64, error)
	DeviceGetCurrentClocksThrottleReasons(device nvml.Device) (uint64, error)
}

var _ Library = (*nvml.Library)(nil)

// Open opens NVML and starts it. NVML stays started until the process ends. An error says what is
// missing and where Open searched.
func Open(opt nvml.Options) (health.Source, error) {
	lib, err := nvtopology.Open(opt)
	if err != nil {
		return nil, fmt.Errorf("health of NVIDIA's GPUs: %w", err)
	}
	return New(lib), nil
}

// New makes a source from a started library.
func New(lib Library) health.Source { return source{lib} }

type source struct{ lib Library }

// anyInstance is the instance of an event that names none, and of a session that reports the events
// of all instances.
const anyInstance = 0xFFFFFFFF

// A session watches one GPU with an event set of its own, because a wait for several GPUs fails if
// one of them is lost.
type session struct {
	lib      Library
	device   nvml.Device
	instance uint32 // MIG instance, or anyInstance
	set      nvml.EventSet
	noXIDs   error // why there is no event set, or nil
}

// Watch finds the GPU by its PCI address: events come from whole GPUs, and the UUID of a MIG
// instance does not name its GPU. Without an address, Watch finds a whole GPU by its UUID.
func (s source) Watch(info driver.Info) (health.Session, error) {
	w := &session{lib: s.lib, instance: anyInstance}
	where, err := info.PCI, error(nil)
	if info.PCI != "" {
		w.device, err = s.lib.DeviceGetHandleByPciBusId(info.PCI)
	} else {
		where = uuidText("GPU", info.UUID)
		w.device, err = s.lib.DeviceGetHandleByUUID(where)
	}
	if err != nil {
		return nil, fmt.Errorf("NVML does not show the GPU at %s: %w%s", where, err, advice(err, info))
	}
	if info.MIG {
		// If the instance's number is unknown, the session reports all errors that NVML sends, also
		// those of other instances.
		if mig, err := s.lib.DeviceGetHandleByUUID(uuidText("MIG", info.UUID)); err == nil {
			if id, err := s.lib.DeviceGetGpuInstanceId(mig); err == nil {
				w.instance = id
			}
		}
	}
	if err := w.register(); missing(err) {
		w.noXIDs = fmt.Errorf("NVML reports no XID errors of the GPU at %s on this system (%w): %w; look for \"Xid\" in the system's log", where, err, errors.ErrUnsupported)
	} else if err != nil {
		return nil, fmt.Errorf("XID errors of the GPU at %s: %w%s", where, err, advice(err, info))
	}
	return w, nil
}

// register makes an event set and registers the GPU's XID errors with it.
func (w *session) register() error {
	types, err := w.lib.DeviceGetSupportedEventTypes(w.device)
	if err != nil {
		return fmt.Errorf("nvmlDeviceGetSupportedEventTypes: %w", err)
	}
	if types&nvml.EventTypeXidCriticalError == 0 {
		return fmt.Errorf("nvmlDeviceGetSupportedEventTypes: no nvmlEventTypeXidCriticalError among %#x: %w", types, nvml.ErrorNotSupported)
	}
	set, err := w.lib.EventSetCreate()
	if err != nil {
		return fmt.Errorf("nvmlEventSetCreate: %w", err)
	}
	if err := w.lib.DeviceRegisterEvents(w.device, nvml.EventTypeXidCriticalError, set); err != nil {
		err = fmt.Errorf("nvmlDeviceRegisterEvents: %w", err)
		if free := w.lib.EventSetFree(set); free != nil {
			return errors.Join(err, fmt.Errorf("nvmlEventSetFree: %w", free))
		}
		return err
	}
	w.set = set
	return nil
}

// missing reports whether an error says that a function or a feature is missing.
func missing(err error) bool {
	return errors.Is(err, nvml.ErrorNotSupported) || errors.Is(err, nvml.ErrorFunctionNotFound) || errors.Is(err, dl.ErrSymbol)
}

// advice returns advice to append to an error.
func advice(err error, info driver.Info) string {
	switch {
	case errors.Is(err, nvml.ErrorNoPermission):
		return "; this user or container may not use that GPU: see the permissions of /dev/nvidia*, and which GPUs the container was given"
	case errors.Is(err, nvml.ErrorNotFound) && info.MIG:
		return "; the device is an instance of MIG, whose events come from the whole GPU, and the container was not given that"
	case errors.Is(err, nvml.ErrorGPUIsLost):
		return "; the GPU does not answer: restart the machine"
	}
	return ""
}

// uuidText formats a UUID as NVML does.
func uuidText(kind string, id [16]byte) string {
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", kind, id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// longestPause is the longest time between two polls for events.
const longestPause = 20 * time.Millisecond

// Wait polls for events, with pauses. Wait does not block in NVML: on an H200 with driver 580,
// nvmlEventSetWait takes a whole processor when two threads of a process wait in it. A poll takes
// about a microsecond.
func (w *session) Wait(timeout time.Duration) (health.XID, bool, error) {
	if w.noXIDs != nil {
		return 0, false, w.noXIDs
	}
	end := time.Now().Add(timeout)
	for pause := time.Millisecond; ; pause = min(2*pause, longestPause) {
		e, err := w.lib.EventSetWait(w.set, 0)
		switch {
		case err != nil && !errors.Is(err, nvml.ErrorTimeout):
			return 0, false, fmt.Errorf("nvmlEventSetWait: %w", err)
		case err == nil && e.EventType == nvml.EventTypeXidCriticalError && !w.elsewhere(e.GpuInstanceId):
			return health.XID(e.EventData), true, nil
		case err == nil && time.Now().Before(end): // an event of another MIG instance
			continue
		}
		left := time.Until(end)
		if left <= 0 {
			return 0, false, nil
		}
		time.Sleep(min(pause, left))
	}
}

// elsewhere reports whether an event concerns a MIG instance other than the session's.
func (w *session) elsewhere(instance uint32) bool {
	return instance != anyInstance && w.instance != anyInstance && instance != w.instance
}

// throttles maps NVML's bits to the reasons why a GPU with work runs below its full clocks.
var throttles = [...]struct {
	bit uint64
	is  health.Throttle
}{
	{nvml.ClocksEventReasonSwPowerCap, health.PowerCap},
	{nvml.ClocksEventReasonSwThermalSlowdown, health.SoftwareThermal},
	{nvml.ClocksThrottleReasonHwThermalSlowdown, health.HardwareThermal},
	{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, health.PowerBrake},
	{nvml.ClocksThrottleReasonHwSlowdown, health.HardwareSlow},
	{nvml.ClocksEventReasonSyncBoost, health.SyncBoost},
}

func (w *session) Read() (r health.Reading, err error) {
	count := func(kind nvml.MemoryErrorType, to *uint64) error {
		n, err := w.lib.DeviceGetTotalEccErrors(w.device, kind, nvml.VolatileECC)
		if untold(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("nvmlDeviceGetTotalEccErrors: %w", err)
		}
		*to, r.ECC = n, true
		return nil
	}
	if err := errors.Join(count(nvml.MemoryErrorTypeCorrected, &r.Corrected), count(nvml.MemoryErrorTypeUncorrected, &r.Uncorrected)); err != nil {
		return health.Reading{}, err
	}
	reasons, err := w.lib.DeviceGetCurrentClocksEventReasons(w.device)
	if errors.Is(err, dl.ErrSymbol) { // the function had another name before CUDA 12.2
		reasons, err = w.lib.DeviceGetCurrentClocksThrottleReasons(w.device)
	}
	if untold(err) {
		return r, nil
	} else if err != nil {
		return health.Reading{}, fmt.Errorf("nvmlDeviceGetCurrentClocksEventReasons: %w", err)
	}
	r.Clocks = true
	for _, t := range throttles {
		if reasons&t.bit != 0 {
			r.Throttle |= t.is
		}
	}
	return r, nil
}

// untold reports whether an error says that the GPU does not report a value, or not to this user.
func untold(err error) bool { return missing(err) || errors.Is(err, nvml.ErrorNoPermission) }

// Close frees the event set.
func (w *session) Close() error {
	if w.noXIDs != nil {
		return nil
	}
	if err := w.lib.EventSetFree(w.set); err != nil {
		return fmt.Errorf("nvmlEventSetFree: %w", err)
	}
	return nil
}
