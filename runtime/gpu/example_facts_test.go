package gpu_test

import (
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// Each call of MemInfo queries how much memory is free. Info returns the device's constant
// properties.
func ExampleDevice_MemInfo() {
	dev := simulated()
	defer dev.Close()
	mem, err := dev.Alloc(gpu.DeviceMem, 256<<20)
	check(err)
	free, total, err := dev.MemInfo()
	check(err, mem.Close())
	fmt.Printf("%d of %d MiB are free\n", free>>20, total>>20)
	info := dev.Info()
	fmt.Printf("%d multiprocessors at %d MHz, each with %d threads\n", info.Processors, info.Clock/1000, info.ProcessorThreads)
	// Output:
	// 768 of 1024 MiB are free
	// 16 multiprocessors at 1000 MHz, each with 2048 threads
}

// Four devices form two pairs with fast links.
func ExampleDevice_Link() {
	pairs := func(from, to int) driver.Link {
		if from/2 == to/2 {
			return driver.Link{Kind: driver.LinkXGMI, Atomics: true}
		}
		return driver.Link{Kind: driver.LinkPCIe, Rank: 1}
	}
	g, err := gpu.OpenGroup(simdriver.New(simdriver.Config{Devices: 4, Links: pairs}), gpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	for _, from := range g.Devices() {
		for _, to := range g.Devices() {
			link, err := from.Link(to)
			check(err)
			fmt.Printf("%6s", link.Kind)
		}
		fmt.Println()
	}
	// Output:
	//   self  xGMI  PCIe  PCIe
	//   xGMI  self  PCIe  PCIe
	//   PCIe  PCIe  self  xGMI
	//   PCIe  PCIe  xGMI  self
}

// BlockSize returns the best block size for a kernel. GridFor then makes a grid that has a thread
// for each of 100,000 elements.
func ExampleKernel_BlockSize() {
	dev := simulated()
	defer dev.Close()
	code, err := dev.Load(simdriver.Image("double"))
	check(err)
	kernel, err := code.Kernel("double")
	check(err)
	threads, blocks, err := kernel.BlockSize(0, 0) // no dynamic shared memory, any block size
	check(err)
	fmt.Printf("%d blocks of %d threads fill the device\n", blocks, threads)
	fmt.Println(gpu.GridFor(100_000, threads).Blocks)
	held, err := kernel.Occupancy(256, 10<<10)
	check(err, code.Close())
	fmt.Printf("%d blocks of 256 threads with 10 KiB each on a multiprocessor\n", held)
	// Output:
	// 32 blocks of 1024 threads fill the device
	// [98 1 1]
	// 8 blocks of 256 threads with 10 KiB each on a multiprocessor
}
