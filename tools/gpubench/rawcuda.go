package main

import (
	"errors"

	"github.com/puregpu/puregpu/cuda"
)

// rawCUDA is the bindings themselves.
type rawCUDA struct {
	l      *cuda.Library
	dev    cuda.Device
	ctx    cuda.Context
	stream [rawStreams]cuda.Stream
	event  [rawEvents]cuda.Event
	mem    cuda.DevicePtr
}

func newRawCUDA(l *cuda.Library, index int) (_ *rawCUDA, err error) {
	a := &rawCUDA{l: l}
	if a.dev, err = l.DeviceGet(int32(index)); err != nil {
		return nil, err
	}
	if a.ctx, err = l.DevicePrimaryCtxRetain(a.dev); err != nil {
		return nil, err
	}
	if err = a.create(); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *rawCUDA) create() (err error) {
	if err = a.l.CtxSetCurrent(a.ctx); err != nil {
		return err
	}
	for i := range a.stream {
		if a.stream[i], err = a.l.StreamCreate(cuda.StreamNonBlocking); err != nil {
			return err
		}
	}
	for i := range a.event {
		if a.event[i], err = a.l.EventCreate(cuda.EventDisableTiming); err != nil {
			return err
		}
	}
	a.mem, err = a.l.MemAlloc(fillSize)
	return err
}

func (a *rawCUDA) fill(stream int) error {
	return a.l.MemsetD32Async(a.mem, fillPattern, fillSize/4, a.stream[stream])
}

func (a *rawCUDA) record(event, stream int) error {
	return a.l.EventRecord(a.event[event], a.stream[stream])
}

func (a *rawCUDA) query(event int) (bool, error) {
	err := a.l.EventQuery(a.event[event])
	if err == cuda.ErrorNotReady {
		return false, nil
	}
	return err == nil, err
}

func (a *rawCUDA) wait(stream, event int) error {
	return a.l.StreamWaitEvent(a.stream[stream], a.event[event], 0)
}

func (a *rawCUDA) close() error {
	var errs []error
	if a.mem != 0 {
		errs = append(errs, a.l.MemFree(a.mem))
	}
	for _, e := range a.event {
		if e != 0 {
			errs = append(errs, a.l.EventDestroy(e))
		}
	}
	for _, s := range a.stream {
		if s != 0 {
			errs = append(errs, a.l.StreamDestroy(s))
		}
	}
	return errors.Join(append(errs, a.l.DevicePrimaryCtxRelease(a.dev))...)
}
