package control_test

import (
	"context"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/control"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A switch chooses what fills the memory.
func ExampleSwitch() {
	dev := try(gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{}))
	defer dev.Close()
	value := try(gpu.AllocSlice[uint32](dev, gpu.HostMem, 1))
	out := try(dev.Alloc(gpu.HostMem, 4))
	fill := func(pattern byte) gpu.Op {
		c := try(dev.NewCommandBuffer(gpu.CommandOptions{}))
		try(c.Add(gpu.Fill(out.All(), []byte{pattern})))
		if err := c.End(); err != nil {
			log.Fatal(err)
		}
		return gpu.Execute(c)
	}
	c := try(dev.NewCommandBuffer(gpu.CommandOptions{}))
	at := try(c.Add(control.Switch(value, fill('?'), fill('a'), fill('b'))))
	if err := c.End(); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("the host runs it because %q\n", try(control.Host(c, at)))
	s := dev.Queue(0).NewStream()
	for v := range 3 {
		value.Host()[0] = uint32(v)
		s.Do(gpu.Execute(c))
		if err := s.Wait(context.Background()); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", out.Bytes())
	}
	// Output:
	// the host runs it because ""
	// aaaa
	// bbbb
	// ????
}
