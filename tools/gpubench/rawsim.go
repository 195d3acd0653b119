package main

import (
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
)

// rawSim is a device of a driver, for the simulated one.
type rawSim struct {
	d      driver.Device
	stream [rawStreams]driver.Stream
	event  [rawEvents]driver.Event
	mem    driver.Mem
}

func newRawSim(d driver.Driver, index int) (*rawSim, error) {
	dev, err := d.Open(index)
	if err != nil {
		return nil, err
	}
	a := &rawSim{d: dev}
	if err := a.create(); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *rawSim) create() (err error) {
	if err = a.d.Bind(); err != nil {
		return err
	}
	for i := range a.stream {
		if a.stream[i], err = a.d.NewStream(); err != nil {
			return err
		}
	}
	for i := range a.event {
		if a.event[i], err = a.d.NewEvent(); err != nil {
			return err
		}
	}
	a.mem, err = a.d.Alloc(driver.DeviceMem, fillSize)
	return err
}

func (a *rawSim) fill(stream int) error {
	return a.d.Fill(a.stream[stream], a.mem.Ptr, fillPattern, 4, fillSize/4)
}

func (a *rawSim) record(event, stream int) error {
	return a.d.Record(a.event[event], a.stream[stream])
}

func (a *rawSim) query(event int) (bool, error) { return a.d.Query(a.event[event]) }

func (a *rawSim) wait(stream, event int) error {
	return a.d.StreamWait(a.stream[stream], a.event[event])
}

func (a *rawSim) close() error {
	var errs []error
	if a.mem.Size != 0 {
		errs = append(errs, a.d.Free(a.mem))
	}
	for _, e := range a.event {
		if e != 0 {
			errs = append(errs, a.d.DestroyEvent(e))
		}
	}
	for _, s := range a.stream {
		if s != 0 {
			errs = append(errs, a.d.DestroyStream(s))
		}
	}
	return errors.Join(append(errs, a.d.Close())...)
}
