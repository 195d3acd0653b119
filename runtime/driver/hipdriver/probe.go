package hipdriver

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

// fromStream is the release since which all that is put into a stream takes its device from there: of that and later releases the
// sources were read. No documentation says so.
const fromStream = 5_06_00000

// probe reports whether any thread can submit, whatever its current device is. The library's release must promise it, and each
// submitting method must do its work for a thread on which another device is current, or none was set; but for kernels, since
// there is none that every device could run. An error means that the device is of no use.
func (d *device) probe(devices int) (anywhere bool, err error) {
	if d.lib.Version() < fromStream {
		return false, nil
	}
	var t trial
	defer func() {
		if end := t.destroy(d); end != nil {
			anywhere, err = false, errors.Join(err, end)
		}
	}()
	if err := t.create(d); err != nil {
		if errors.Is(err, driver.ErrLost) {
			return false, err
		}
		return false, nil // whoever makes such a thing will be told
	}
	// This thread has the device, which another one that comes from nowhere may have by accident.
	elsewhere := func(f func(*device) error) error {
		result := make(chan error, 1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			result <- d.withoutDevice(devices, func() error { return f(d) })
		}()
		return <-result
	}
	err = elsewhere(t.submit)
	for _, s := range t.streams {
		if wait := d.lib.StreamSynchronize(hip.Stream(s)); wait != nil {
			return false, d.fail("open", wait, "wait for the first work")
		}
	}
	if err == nil {
		err = elsewhere(t.check)
	}
	if errors.Is(err, driver.ErrLost) {
		return false, err
	}
	return err == nil, nil
}

// withoutDevice runs f on the calling thread, which is locked, while another device is current, if there is one.
func (d *device) withoutDevice(devices int, f func() error) (err error) {
	before, err := d.lib.GetDevice()
	if err != nil {
		return d.fail("open", err, "the thread's current device")
	}
	if before != d.id || devices == 1 {
		return f()
	}
	if err := d.lib.SetDevice((d.id + 1) % int32(devices)); err != nil {
		return d.fail("open", err, "make another device current")
	}
	defer func() {
		if restore := d.lib.SetDevice(before); restore != nil {
			err = errors.Join(err, d.fail("open", restore, "restore the thread's current device"))
		}
	}()
	return f()
}

// A trial is what it takes to submit one of everything.
type trial struct {
	streams [2]driver.Stream
	event   driver.Event
	timer   driver.Event
	dev     driver.Mem
	host    driver.Mem
	graph   driver.Graph
	exec    driver.Exec // or 0
}

const trialSize = 64

// create makes the trial's objects on a bound thread. After an error those made so far are to be destroyed.
func (t *trial) create(d *device) (err error) {
	for i := range t.streams {
		if t.streams[i], err = d.NewStream(); err != nil {
			return err
		}
	}
	if t.event, err = d.NewEvent(); err != nil {
		return err
	}
	if t.timer, err = d.NewTimer(); err != nil {
		return err
	}
	if t.dev, err = d.Alloc(driver.DeviceMem, trialSize); err != nil {
		return err
	}
	if t.host, err = d.Alloc(driver.HostMem, trialSize); err != nil {
		return err
	}
	if d.caps.Graphs {
		if t.graph, err = d.NewGraph(); err == nil {
			if _, err = d.AddNode(t.graph, nil, &driver.NodeOp{Kind: driver.FillNode, Dst: t.dev.Ptr + trialSize - 4, Pattern: 0x04040404, Width: 4, Count: 1}); err == nil {
				t.exec, err = d.Instantiate(t.graph)
			}
		}
	}
	return err
}

// submit tries every submitting method but Launch and Elapsed.
func (t *trial) submit(d *device) error {
	const n = trialSize / 4
	first, second := t.streams[0], t.streams[1]
	at := func(quarter driver.Ptr) driver.Ptr { return t.dev.Ptr + quarter*n }
	for _, try := range []func() error{
		func() error { return d.Fill(first, at(0), 0, 1, n) },
		func() error { return d.Fill(first, at(1), 0x0101, 2, n/2) },
		func() error { return d.Fill(first, at(2), 0x02020202, 4, n/4) },
		func() error { return d.FillStrided(first, at(3), 0x03030303, 8, n/8) },
		func() error { return d.FillStrided(first, at(3)+4, 0x03030303, 8, n/8) },
		func() error {
			if t.exec == 0 {
				return nil
			}
			return d.LaunchGraph(first, t.exec)
		},
		func() error { return d.Record(t.event, first) },
		func() error { return d.StreamWait(second, t.event) },
		func() error { _, err := d.Query(t.event); return err },
		func() error { return d.Copy(second, at(0), at(2), 4) },
		func() error { return d.Download(second, t.host.Host, at(0), trialSize) },
		func() error { return d.Upload(second, at(0), t.host.Host, trialSize) },
		func() error { return d.Record(t.timer, second) },
	} {
		if err := try(); err != nil {
			return err
		}
	}
	return nil
}

// check looks at what submit has done, once it is done.
func (t *trial) check(d *device) error {
	var want []byte
	for i := range byte(4) {
		want = append(want, bytes.Repeat([]byte{i}, trialSize/4)...)
	}
	copy(want, []byte{2, 2, 2, 2})
	if t.exec != 0 {
		copy(want[trialSize-4:], []byte{4, 4, 4, 4})
	}
	if got := unsafe.Slice((*byte)(t.host.Host), trialSize); !bytes.Equal(got, want) {
		return fmt.Errorf("the first work has written %x", got)
	}
	_, err := d.Elapsed(t.timer, t.timer)
	return err
}

// destroy destroys what there is.
func (t *trial) destroy(d *device) error {
	var errs []error
	if t.exec != 0 {
		errs = append(errs, d.DestroyExec(t.exec))
	}
	if t.graph != 0 {
		errs = append(errs, d.DestroyGraph(t.graph))
	}
	if t.host.Host != nil {
		errs = append(errs, d.Free(t.host))
	}
	if t.dev.Ptr != 0 {
		errs = append(errs, d.Free(t.dev))
	}
	for _, e := range []driver.Event{t.event, t.timer} {
		if e != 0 {
			errs = append(errs, d.DestroyEvent(e))
		}
	}
	for _, s := range t.streams {
		if s != 0 {
			errs = append(errs, d.DestroyStream(s))
		}
	}
	return errors.Join(errs...)
}
