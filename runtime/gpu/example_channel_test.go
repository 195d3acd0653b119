package gpu_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// Four devices of one process sum what each has, in between other work of theirs, and nobody waits but the host, at the end.
func ExampleChannel_Submit() {
	ctx := context.Background()
	group, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 4}), gpu.Options{})
	check(err)
	defer group.Close()
	channels, err := group.NewChannels(ctx, gpu.ChannelOptions{Timeout: time.Minute})
	check(err)
	got, points := make([][]byte, 4), []gpu.Point{}
	for i, c := range channels {
		dev, q := c.Device(), c.Device().Queue(0)
		b, err := dev.Alloc(gpu.DeviceMem, 8)
		check(err)
		s, err := gpu.NewSemaphore(0)
		check(err)
		got[i], points = make([]byte, 8), append(points, gpu.Point{Semaphore: s, Value: 3})
		check(
			q.Submit(gpu.Order{Signal: at(s, 1)}, gpu.Fill(b.All(), []byte{byte(i + 1), 0, 0, 0})),
			c.Submit(ctx, gpu.Order{Wait: at(s, 1), Signal: at(s, 2)}, gpu.AllReduce(b.All(), b.All(), gpu.Uint32, gpu.Sum())),
			q.Submit(gpu.Order{Wait: at(s, 2), Signal: at(s, 3)}, gpu.Download(got[i], b.All())),
		)
	}
	check(gpu.WaitAll(ctx, points...))
	for i, c := range channels {
		fmt.Println(c.Rank(), "of", c.Count(), binary.LittleEndian.Uint32(got[i]))
	}
	// Output:
	// 0 of 4 10
	// 1 of 4 10
	// 2 of 4 10
	// 3 of 4 10
}

// A step of training, recorded: gradients are reduced as one group, and what comes behind it sees the sums.
func ExampleChannel_Group() {
	ctx := context.Background()
	dev := simulated()
	defer dev.Close()
	id, err := dev.NewChannelID()
	check(err)
	c, err := dev.NewChannel(ctx, gpu.ChannelOptions{ID: id, Count: 1})
	check(err)
	grads, err := dev.Alloc(gpu.DeviceMem, 16)
	check(err)
	step, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	check(err)
	_, err = step.Add(gpu.Fill(grads.All(), []byte{0, 0, 128, 63})) // 1.0
	check(err)
	_, err = step.Add(c.Group(
		gpu.AllReduce(grads.Range(0, 8), grads.Range(0, 8), gpu.Float32, gpu.Avg()),
		gpu.AllReduce(grads.Range(8, 8), grads.Range(8, 8), gpu.Float32, gpu.PreMulSum(0.5))))
	check(err, step.End())
	s, err := gpu.NewSemaphore(0)
	check(err)
	got := make([]byte, 16)
	check(
		dev.Queue(0).Submit(gpu.Order{Signal: at(s, 1)}, gpu.Execute(step)),
		dev.Queue(0).Submit(gpu.Order{Wait: at(s, 1), Signal: at(s, 2)}, gpu.Download(got, grads.All())),
		s.Wait(ctx, 2),
	)
	fmt.Println(got)
	// Output:
	// [0 0 128 63 0 0 128 63 0 0 0 63 0 0 0 63]
}

// A rank whose counterpart never comes: nothing hangs, and the error says which channel ended, and why.
func ExampleChannelError() {
	ctx := context.Background()
	group, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 2}), gpu.Options{})
	check(err)
	defer group.Close()
	channels, err := group.NewChannels(ctx, gpu.ChannelOptions{Name: "gradients", Timeout: 20 * time.Millisecond})
	check(err)
	b, err := channels[0].Device().Alloc(gpu.DeviceMem, 64)
	check(err)
	s, err := gpu.NewSemaphore(0)
	check(err, channels[0].Submit(ctx, gpu.Order{Signal: at(s, 1)}, gpu.AllReduce(b.All(), b.All(), gpu.Float32, gpu.Sum())))
	err = s.Wait(ctx, 1)
	var failed *gpu.ChannelError
	fmt.Println(errors.As(err, &failed), failed.Name, failed.Rank, failed.Count)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), failed)
	// Output:
	// true gradients 0 2
	// true gpu: channel gradients, rank 0 of 2, on Simulated GPU 0: a group was not done 20ms after it was issued: context deadline exceeded
}

// A program takes the memory of a channel for something else, and gives it back. All ranks do so at once.
func ExampleChannel_Suspend() {
	ctx := context.Background()
	group, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 2, CommMemory: 64 << 20}), gpu.Options{})
	check(err)
	defer group.Close()
	channels, err := group.NewChannels(ctx, gpu.ChannelOptions{Plain: true})
	check(err)
	onAll := func(f func(*gpu.Channel, context.Context) error) {
		var ranks sync.WaitGroup
		for _, c := range channels {
			ranks.Go(func() { check(f(c, ctx)) })
		}
		ranks.Wait()
	}
	tell := func() {
		stats, err := channels[0].Stats()
		check(err)
		free, _, err := channels[0].Device().MemInfo()
		check(err)
		fmt.Printf("suspended: %t, %d MiB of the channel's, %d MiB free\n", stats.Suspended, stats.Suspendable>>20, free>>20)
	}
	tell()
	onAll((*gpu.Channel).Suspend)
	tell()
	onAll((*gpu.Channel).Resume)
	tell()
	// Output:
	// suspended: false, 64 MiB of the channel's, 960 MiB free
	// suspended: true, 64 MiB of the channel's, 1024 MiB free
	// suspended: false, 64 MiB of the channel's, 960 MiB free
}

// A third rank joins the other two: all make a new channel, and the old one goes on until they have.
func ExampleDevice_NewChannel_moreRanks() {
	ctx := context.Background()
	group, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 3}), gpu.Options{}, 0, 1, 2)
	check(err)
	defer group.Close()
	join := func(id gpu.ChannelID, devices ...*gpu.Device) []*gpu.Channel { // as each rank would in a process of its own
		channels := make([]*gpu.Channel, len(devices))
		var ranks sync.WaitGroup
		for i, dev := range devices {
			ranks.Go(func() {
				var err error
				channels[i], err = dev.NewChannel(ctx, gpu.ChannelOptions{ID: id, Rank: i, Count: len(devices)})
				check(err)
			})
		}
		ranks.Wait()
		return channels
	}
	devices := group.Devices()
	id, err := devices[0].NewChannelID()
	check(err)
	old := join(id, devices[:2]...)
	id, err = devices[0].NewChannelID()
	check(err)
	all := join(id, devices...)
	for _, c := range old {
		check(c.Close())
	}
	fmt.Println(old[1].Rank(), "of", old[1].Count(), "became", all[1].Rank(), "of", all[1].Count())
	// Output:
	// 1 of 2 became 1 of 3
}
