package main

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// wakeBench times how long a parked waiter takes to wake. The rows are, from the first:
//  1. the host signals, and then waits itself
//  2. the host signals, and goes on computing
//  3. the device signals after some hundreds of microseconds
//  4. the device signals after some tens of milliseconds, when polling has slowed down
//  5. the device signals after a fill that the host releases; the time counts from the release
//  6. row 3 on a device with default options, where the waiter may poll and need not park
//  7. the call of Signal in row 2
//
// The raw side of rows 2 and 7 is a C thread that waits for a condition variable, if -c names the C
// loops. Rows 8 and 9 are plain Go: the wake-up of a goroutine that waits for a channel, and the
// send.
func wakeBench() bench {
	const n, long = 100, 10
	const fills = 8
	const channel, send = 7, 8 // indexes of the last two rows
	return bench{
		rows: []row{
			{name: "wake/host signals and waits, p50", unit: ns},
			{name: "wake/host signals and computes, p50", unit: ns, goal: goal{max: 15_000, device: true}},
			{name: "wake/device is done, p50", unit: ns, goal: goal{max: 15_000, device: true}},
			{name: "wake/device is done after long, p50", unit: ns},
			{name: "wake/host releases a fill, p50", unit: ns},
			{name: "wake/device is done, one waiter, p50", unit: ns},
			{name: "wake/the host's signal to a parked waiter, p50", unit: ns, goal: goal{max: 1000, device: true}},
			{name: "wake/a channel of Go's, and computes, p50", unit: ns},
			{name: "wake/a send to a parked goroutine, p50", unit: ns},
		},
		rounds: 7,
		open: func(e *env) (sides, error) {
			r, err := newRig(e, 1)
			if err != nil {
				return sides{}, err
			}
			parks, err := openRig(e.drv, e.index, gpu.Options{Spin: -1})
			if err != nil {
				return sides{}, errors.Join(err, r.close())
			}
			closeBoth := func() error { return errors.Join(r.close(), parks.close()) }
			gate, err1 := semaphores(1)
			d, err2 := newDone(e, parks)
			lone, err3 := newDone(e, r)
			if err := errors.Join(err1, err2, err3); err != nil {
				return sides{}, errors.Join(err, closeBoth())
			}
			times, calls := make([]time.Duration, n), make([]time.Duration, 0, n)
			host := func(then func()) func() error {
				return func() error {
					start := time.Now()
					err := r.sem.Signal(r.v)
					calls = append(calls, time.Since(start))
					then()
					return err
				}
			}
			measure := func(prepare, signal func() error) (float64, error) {
				for i := range times {
					r.v++
					if err := prepare(); err != nil {
						return 0, err
					}
					var err error
					if times[i], err = wakeUp(e, r, signal); err != nil {
						return 0, err
					}
				}
				return p50(times), nil
			}
			nothing := func() error { return nil }
			var raw func([]float64) error
			if e.opt.cloop != "" {
				c, err := openLoop(e.opt.cloop)
				if err != nil {
					return sides{}, errors.Join(err, closeBoth())
				}
				woken, calls := make([]time.Duration, n), make([]time.Duration, n)
				raw = func(f []float64) error {
					err := c.wake(woken, calls)
					f[1], f[6] = p50(woken), p50(calls)
					return err
				}
			}
			return sides{
				raw: raw,
				pure: func(f []float64) (err error) {
					if f[0], err = measure(nothing, host(func() {})); err != nil {
						return err
					}
					calls = calls[:0]
					if f[1], err = measure(nothing, host(func() { compute(200 * time.Microsecond) })); err != nil {
						return err
					}
					f[6] = p50(calls)
					calls = calls[:0]
					for i := range times {
						var call time.Duration
						times[i], call = wakeByChannel()
						calls = append(calls, call)
					}
					f[channel], f[send] = p50(times), p50(calls)
					calls = calls[:0]
					for i := range times {
						if times[i], err = d.wakeUp(fills); err != nil {
							return err
						}
					}
					f[2] = p50(times)
					for i := range times[:long] {
						if times[i], err = d.wakeUp(50 * fills); err != nil {
							return err
						}
					}
					f[3] = p50(times[:long])
					f[4], err = measure(
						func() error { return r.fill(r.q, gate[0], r.v, r.sem, r.v) },
						func() error { return gate[0].Signal(r.v) })
					for i := range times {
						if err == nil {
							times[i], err = lone.wakeUp(fills)
						}
					}
					f[5] = p50(times)
					return err
				},
				close: closeBoth,
			}, nil
		},
	}
}

// lockedBench times the round trip of a fill on a goroutine that is locked to its thread, and on
// one that is not. The second pair of rows uses fills of some tens of microseconds.
func lockedBench() bench {
	const n = 300
	asFree := goal{max: 1.1, of: ofBase, device: true}
	return bench{
		rows: []row{
			{name: "wake/fill, free goroutine, p50", unit: ns},
			{name: "wake/fill, locked goroutine, p50", unit: ns, goal: asFree, base: 0},
			{name: "wake/longer fill, free goroutine, p50", unit: ns},
			{name: "wake/longer fill, locked goroutine, p50", unit: ns, goal: asFree, base: 2},
		},
		rounds: 15,
		open: func(e *env) (sides, error) {
			r, err := newRig(e, 1)
			if err != nil {
				return sides{}, err
			}
			d, err := newDone(e, r)
			if err != nil {
				return sides{}, errors.Join(err, r.close())
			}
			times := make([]time.Duration, n)
			trips := []func() error{
				func() error { return r.roundTrip(e) },
				func() error {
					r.v++
					if err := r.q.Submit(r.order(nil, 0, r.sem, r.v), gpu.Fill(d.long, pattern)); err != nil {
						return err
					}
					return r.sem.Wait(e.ctx, r.v)
				},
			}
			return sides{
				pure: func(f []float64) (err error) {
					for i, trip := range trips {
						if f[2*i], err = typical(times, trip); err != nil {
							return err
						}
						runtime.LockOSThread()
						f[2*i+1], err = typical(times, trip)
						runtime.UnlockOSThread()
						if err != nil {
							return err
						}
					}
					return nil
				},
				close: r.close,
			}, nil
		},
	}
}

// A done measures how long a waiting goroutine takes to notice that the device is done. Fills of
// the memory in long keep the device busy. A last fill writes the buffer word, which another
// goroutine polls.
type done struct {
	e    *env
	r    *rig
	long gpu.Range // takes a while to fill
	word *gpu.Buffer
	n    uint32
}

func newDone(e *env, r *rig) (*done, error) {
	size := uint64(128 << 20)
	if e.opt.sim {
		size = 1 << 20
	}
	long, err := r.dev.Alloc(gpu.DeviceMem, size)
	if err != nil {
		return nil, err
	}
	word, err := r.dev.Alloc(gpu.HostMem, 4)
	return &done{e: e, r: r, long: long.All(), word: word}, err
}

// wakeUp parks a goroutine until the device has done fills of some tens of microseconds each. It
// returns the time from the end of the fills until the goroutine runs.
func (d *done) wakeUp(fills uint64) (time.Duration, error) {
	r := d.r
	r.v++
	d.n++
	first, err := gpu.NewSemaphore(0)
	if err != nil {
		return 0, err
	}
	for i := range fills {
		if err := r.q.Submit(r.order(first, i, first, i+1), gpu.Fill(d.long, pattern)); err != nil {
			return 0, err
		}
	}
	if err := r.q.Submit(r.order(first, fills, r.sem, r.v), gpu.Fill(d.word.All(), binary.NativeEndian.AppendUint32(nil, d.n))); err != nil {
		return 0, err
	}
	woken := make(chan waking, 1)
	go wait(d.e, r, woken)
	word := (*uint32)(unsafe.Pointer(unsafe.SliceData(d.word.Bytes())))
	for atomic.LoadUint32(word) != d.n && d.e.ctx.Err() == nil {
	}
	end := time.Now()
	w := <-woken
	return max(w.at.Sub(end), 0), w.err // the waiter may notice the end before this goroutine does
}

type waking struct {
	at  time.Time
	err error
}

// wait waits until r.sem is at r.v.
func wait(e *env, r *rig, woken chan<- waking) {
	err := r.sem.Wait(e.ctx, r.v)
	woken <- waking{time.Now(), err}
}

// wakeUp parks a goroutine until r.sem is at r.v. It returns the time from the call of signal until
// the goroutine runs.
func wakeUp(e *env, r *rig, signal func() error) (time.Duration, error) {
	woken := make(chan waking, 1)
	go wait(e, r, woken)
	time.Sleep(300 * time.Microsecond) // longer than a waiter polls, so that the waiter is parked
	start := time.Now()
	if err := signal(); err != nil {
		return 0, err
	}
	w := <-woken
	return w.at.Sub(start), w.err
}

// wakeByChannel wakes a goroutine by a Go channel and goes on computing, like row 2 of wakeBench.
// It returns the time until the waiting goroutine runs, and the time of the send and of the start
// of a goroutine behind the send. Without this start Go leaves the waiter for some 80 µs in the
// queue of the processor that computes.
func wakeByChannel() (woken, call time.Duration) {
	ch, at := make(chan struct{}, 1), make(chan time.Time, 1)
	go func() {
		<-ch
		at <- time.Now()
	}()
	time.Sleep(300 * time.Microsecond)
	start := time.Now()
	ch <- struct{}{}
	go func() {}()
	call = time.Since(start)
	compute(200 * time.Microsecond)
	return (<-at).Sub(start), call
}

// compute keeps the goroutine's thread busy.
func compute(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}
