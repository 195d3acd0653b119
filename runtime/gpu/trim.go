package gpu

import (
	"errors"
	"fmt"
)

// Trim frees unused objects that the device keeps for later submissions: pinned memory for
// transfers, records, timepoints and events. Of the unused events it keeps as many as
// [Options].Events says. [Device.Stats] counts these objects. Trim may be called at any time, from
// any goroutine. Trim blocks while the driver frees the objects, and the driver may wait for the
// device's work. For the memory of pools, use [Pool.Trim].
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
