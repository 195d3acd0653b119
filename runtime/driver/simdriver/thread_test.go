package simdriver_test

import (
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func TestThreads(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		t.Skip("threads cannot be told apart here")
	}
	d := simdriver.New(simdriver.Config{Devices: 2, Strict: true})
	v, w := must(d.Open(0))(t), must(d.Open(1))(t)
	onThread(func() {
		if i, ok := d.Current(); ok {
			t.Errorf("device %d is current on a new thread", i)
		}
		_, err := v.NewStream()
		refused(t, err, simdriver.ErrInvalidContext, "no device is current")
		check(t, v.Bind())
		if i, ok := d.Current(); i != 0 || !ok {
			t.Errorf("device %d, %v is current", i, ok)
		}
		s, e := stream(t, v), event(t, v)
		m := alloc(t, v, driver.DeviceMem, 64)
		check(t, v.Fill(s, m.Ptr, 0, 1, 1))
		p, g, timer := pool(t, v, 0), graph(t, v), timer(t, v)
		fill := node(t, v, g, fillOp(m.Ptr, 0, 1))
		x, async := instantiate(t, v, g), allocAsync(t, v, s, p, 64)
		check(t, v.Record(timer, s))
		check(t, drain(t, v, s))

		check(t, w.Bind())
		if i, ok := d.Current(); i != 1 || !ok {
			t.Errorf("device %d, %v is current", i, ok)
		}
		// Calls that make, find or free an object fail, because another device is current.
		for op, err := range map[simdriver.Op]error{
			simdriver.OpNewStream:     second(v.NewStream()),
			simdriver.OpDestroyStream: v.DestroyStream(s),
			simdriver.OpNewEvent:      second(v.NewEvent()),
			simdriver.OpDestroyEvent:  v.DestroyEvent(e),
			simdriver.OpAlloc:         second(v.Alloc(driver.DeviceMem, 1)),
			simdriver.OpFree:          v.Free(m),
			simdriver.OpRegister:      second(v.Register(ptr(0), 8)),
			simdriver.OpUnregister:    v.Unregister(ptr(0)),
			simdriver.OpLoad:          second(v.Load(simdriver.Image())),
			simdriver.OpUnload:        v.Unload(1),
			simdriver.OpClose:         v.Close(),

			simdriver.OpDefaultPool:    second(pools(v).DefaultPool()),
			simdriver.OpCurrentPool:    second(pools(v).CurrentPool()),
			simdriver.OpSetCurrentPool: pools(v).SetCurrentPool(p),
			simdriver.OpNewPool:        second(pools(v).NewPool(driver.PoolDesc{})),
			simdriver.OpDestroyPool:    pools(v).DestroyPool(p),
			simdriver.OpPoolAttr:       second(pools(v).PoolAttr(p, driver.PoolUsed)),
			simdriver.OpSetPoolAttr:    pools(v).SetPoolAttr(p, driver.PoolThreshold, 0),
			simdriver.OpTrimPool:       pools(v).TrimPool(p, 0),
			simdriver.OpAccessPool:     pools(v).AccessPool(p, w, true),
			simdriver.OpNewGraph:       second(graphs(v).NewGraph()),
			simdriver.OpDestroyGraph:   graphs(v).DestroyGraph(g),
			simdriver.OpAddNode:        second(graphs(v).AddNode(g, nil, &driver.NodeOp{})),
			simdriver.OpInstantiate:    second(graphs(v).Instantiate(g)),
			simdriver.OpDestroyExec:    graphs(v).DestroyExec(x),
			simdriver.OpBeginCapture:   capturer(v).BeginCapture(s),
			simdriver.OpEndCapture:     second(capturer(v).EndCapture(s)),
			simdriver.OpNewTimer:       second(timers(v).NewTimer()),
			simdriver.OpEnablePeer:     v.(driver.Peers).EnablePeer(w),
			simdriver.OpLink:           second(v.(driver.Links).Link(w)),
			simdriver.OpOccupancy:      second(v.(driver.Occupancy).Occupancy(0, 1, 0)),
		} {
			refused(t, err, simdriver.ErrInvalidContext, string(op), "but device 1 is current")
		}
		for op, err := range commCalls(comms(v), s, 0) {
			refused(t, err, simdriver.ErrInvalidContext, string(op), "but device 1 is current")
		}
		_, _, err = v.(driver.MemInfo).MemInfo()
		refused(t, err, simdriver.ErrInvalidContext, string(simdriver.OpMemInfo), "but device 1 is current")
		refused(t, comms(v).CommError(0), simdriver.ErrInvalidHandle) // CommError and CommRank may be called on any thread
		_, _, err = comms(v).CommRank(0)
		refused(t, err, simdriver.ErrInvalidHandle)
		for op, err := range map[simdriver.Op]error{
			simdriver.OpFill:       v.Fill(s, m.Ptr, 0, 1, 1),
			simdriver.OpCopy:       v.Copy(s, m.Ptr, m.Ptr, 1),
			simdriver.OpUpload:     v.Upload(s, m.Ptr, ptr(0), 8),
			simdriver.OpDownload:   v.Download(s, ptr(0), m.Ptr, 8),
			simdriver.OpPrefetch:   v.(driver.Prefetcher).Prefetch(s, 0, 0, driver.DeviceMem),
			simdriver.OpRecord:     v.Record(e, s),
			simdriver.OpQuery:      second(v.Query(e)),
			simdriver.OpStreamWait: v.StreamWait(s, e),

			simdriver.OpAllocAsync:  second(pools(v).AllocAsync(s, p, 64)),
			simdriver.OpFreeAsync:   pools(v).FreeAsync(s, async),
			simdriver.OpSetNode:     graphs(v).SetNode(x, fill, new(fillOp(m.Ptr, 0, 1))),
			simdriver.OpLaunchGraph: graphs(v).LaunchGraph(s, x),
			simdriver.OpElapsed:     second(timers(v).Elapsed(timer, timer)),
		} {
			if err != nil {
				t.Errorf("%s from another device's thread: %v", op, err)
			}
		}
		check(t, v.Bind())
		check(t, drain(t, v, s))
		check(t, v.DestroyStream(s))
		v.Close()
		if i, ok := d.Current(); ok {
			t.Errorf("device %d is current after Close", i)
		}
		check(t, w.Bind())
		check(t, w.Close())
	})
}

// onThread calls f on a new OS thread, which then ends.
func onThread(f func()) {
	done := make(chan bool)
	go func() {
		runtime.LockOSThread()
		defer close(done)
		f()
	}()
	<-done
}
