package gpu

import (
	"errors"
	"fmt"
)

// Trim gives back what the device keeps for later submissions and does not use now, as after many
// that were in flight at a time: events, but for as many as [Options].Events says, pinned memory
// for transfers, and records. [Device.Stats] counts them. It may be called at any time, and blocks
// while the driver takes them, which may wait for the device's work. Memory of pools is for
// [Pool.Trim].
func (d *Device) Trim() error {
	if err := d.ready("trim"); err != nil {
		return err
	}
	d.native.TrimRecords()
	err := d.native.Do(func() error { return errors.Join(d.native.Events.Trim(), d.memory.Stage.Trim()) })
	if err != nil {
		d.native.Check(err)
		return fmt.Errorf("gpu: trim %s: %w", d.native.Info.Name, err)
	}
	return nil
}
