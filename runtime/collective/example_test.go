package collective_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// check ends the example on an error.
func check(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		log.Fatal(err)
	}
}

// at returns a list of one point.
func at(s *gpu.Semaphore, v uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: v}} }

// Four devices of one process add their numbers. Each device receives the sum.
func Example() {
	ctx := context.Background()
	group, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 4}), gpu.Options{})
	check(err)
	defer group.Close()
	ranks, err := collective.NewAll(ctx, group.Devices(), collective.Options{Timeout: time.Minute})
	check(err)
	streams, sums := make([]*gpu.Stream, len(ranks)), make([][]byte, len(ranks))
	for i, rank := range ranks {
		dev := rank.Device()
		streams[i], sums[i] = dev.Queue(0).NewStream(), make([]byte, 4)
		b, err := dev.Alloc(gpu.DeviceMem, 4)
		check(err)
		x := b.All()
		check(streams[i].Do(
			gpu.Fill(x, []byte{byte(i + 1), 0, 0, 0}),
			rank.Group(collective.AllReduce(x, x, collective.Uint32, collective.Sum())),
			gpu.Download(sums[i], x),
		))
	}
	for i, rank := range ranks {
		check(streams[i].Wait(ctx))
		fmt.Println(rank.Rank(), "of", rank.Count(), binary.LittleEndian.Uint32(sums[i]))
	}
	// Output:
	// 0 of 4 10
	// 1 of 4 10
	// 2 of 4 10
	// 3 of 4 10
}

// A recording fills gradients and reduces them in one group of two operations.
func ExampleCommunicator_Group() {
	ctx := context.Background()
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	check(err)
	defer dev.Close()
	id, err := collective.NewID(dev)
	check(err)
	c, err := collective.New(ctx, dev, collective.Options{ID: id, Count: 1})
	check(err)
	grads, err := dev.Alloc(gpu.DeviceMem, 16)
	check(err)
	step, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	check(err)
	_, err = step.Add(gpu.Fill(grads.All(), []byte{0, 0, 128, 63})) // 1.0
	check(err)
	_, err = step.Add(c.Group(
		collective.AllReduce(grads.Range(0, 8), grads.Range(0, 8), collective.Float32, collective.Avg()),
		collective.AllReduce(grads.Range(8, 8), grads.Range(8, 8), collective.Float32, collective.PreMulSum(0.5))))
	check(err, step.End())
	stream, got := dev.Queue(0).NewStream(), make([]byte, 16)
	check(stream.Do(gpu.Execute(step), gpu.Download(got, grads.All())), stream.Wait(ctx))
	fmt.Println(got)
	// Output:
	// [0 0 128 63 0 0 128 63 0 0 0 63 0 0 0 63]
}

// Semaphores order a group and the work of a queue. If the context ended before the group was done,
// the communicator would be aborted.
func ExampleCommunicator_GroupContext() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	group, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 2}), gpu.Options{})
	check(err)
	defer group.Close()
	ranks, err := collective.NewAll(ctx, group.Devices(), collective.Options{})
	check(err)
	got, points := make([][]byte, 2), []gpu.Point{}
	for i, rank := range ranks {
		b, err := rank.Device().Alloc(gpu.DeviceMem, 4)
		check(err)
		s, err := gpu.NewSemaphore(0)
		check(err)
		got[i], points = make([]byte, 4), append(points, gpu.Point{Semaphore: s, Value: 3})
		q, x := rank.Device().Queue(0), b.All()
		check(
			q.Submit(gpu.Order{Signal: at(s, 1)}, gpu.Fill(x, []byte{byte(i + 1)})),
			q.Submit(gpu.Order{Wait: at(s, 1), Signal: at(s, 2)}, rank.GroupContext(ctx, collective.Broadcast(x, x, collective.Uint8, 1))),
			q.Submit(gpu.Order{Wait: at(s, 2), Signal: at(s, 3)}, gpu.Download(got[i], x)),
		)
	}
	check(gpu.WaitAll(ctx, points...))
	fmt.Println(got)
	// Output:
	// [[2 2 2 2] [2 2 2 2]]
}

// Rank 1 never submits the all-reduce. The timeout fails the all-reduce on rank 0, with an error
// that says which communicator failed and why.
func ExampleError() {
	ctx := context.Background()
	group, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 2}), gpu.Options{})
	check(err)
	defer group.Close()
	ranks, err := collective.NewAll(ctx, group.Devices(), collective.Options{Name: "gradients", Timeout: 20 * time.Millisecond})
	check(err)
	dev := ranks[0].Device()
	b, err := dev.Alloc(gpu.DeviceMem, 64)
	check(err)
	stream := dev.Queue(0).NewStream()
	check(stream.Do(ranks[0].Group(collective.AllReduce(b.All(), b.All(), collective.Float32, collective.Sum()))))
	err = stream.Wait(ctx)
	var failed *collective.Error
	fmt.Println(errors.As(err, &failed), failed.Name, failed.Rank, failed.Count)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), failed)
	// Output:
	// true gradients 0 2
	// true gpu: communicator gradients, rank 0 of 2, on Simulated GPU 0: a group was not done 20ms after it was issued (have all ranks submitted it?): context deadline exceeded
}

// Two ranks suspend their communicator and resume it. While it is suspended, its device memory is
// free for other uses. All ranks must call Suspend, and all must call Resume.
func ExampleCommunicator_Suspend() {
	ctx := context.Background()
	group, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 2, CommMemory: 64 << 20}), gpu.Options{})
	check(err)
	defer group.Close()
	ranks, err := collective.NewAll(ctx, group.Devices(), collective.Options{Plain: true})
	check(err)
	onAll := func(f func(*collective.Communicator, context.Context) error) {
		var all sync.WaitGroup
		for _, rank := range ranks {
			all.Go(func() { check(f(rank, ctx)) })
		}
		all.Wait()
	}
	tell := func() {
		stats, err := ranks[0].Stats()
		check(err)
		free, _, err := ranks[0].Device().MemInfo()
		check(err)
		fmt.Printf("suspended: %t, %d MiB of the communicator's, %d MiB free\n", stats.Suspended, stats.Suspendable>>20, free>>20)
	}
	tell()
	onAll((*collective.Communicator).Suspend)
	tell()
	onAll((*collective.Communicator).Resume)
	tell()
	// Output:
	// suspended: false, 64 MiB of the communicator's, 960 MiB free
	// suspended: true, 64 MiB of the communicator's, 1024 MiB free
	// suspended: false, 64 MiB of the communicator's, 960 MiB free
}

// A third rank joins two ranks that have a communicator. All three make a new communicator. Then
// the first two close the old one.
func ExampleNew_moreRanks() {
	ctx := context.Background()
	group, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 3}), gpu.Options{}, 0, 1, 2)
	check(err)
	defer group.Close()
	// Normally each rank is a process.
	join := func(id collective.ID, devices ...*gpu.Device) []*collective.Communicator {
		ranks := make([]*collective.Communicator, len(devices))
		var all sync.WaitGroup
		for i, dev := range devices {
			all.Go(func() {
				var err error
				ranks[i], err = collective.New(ctx, dev, collective.Options{ID: id, Rank: i, Count: len(devices)})
				check(err)
			})
		}
		all.Wait()
		return ranks
	}
	devices := group.Devices()
	id, err := collective.NewID(devices[0])
	check(err)
	old := join(id, devices[:2]...)
	id, err = collective.NewID(devices[0])
	check(err)
	ranks := join(id, devices...)
	for _, rank := range old {
		check(rank.Close())
	}
	fmt.Println(old[1].Rank(), "of", old[1].Count(), "became", ranks[1].Rank(), "of", ranks[1].Count())
	// Output:
	// 1 of 2 became 1 of 3
}
