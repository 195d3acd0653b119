package growing_test

import (
	"context"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/growing"
)

// A recording writes to the start of a cache and copies to its end, while the cache grows. Nothing
// is recorded again, and nothing is moved.
func Example() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	check(err)
	defer dev.Close()
	cache, err := growing.Reserve(dev, 64<<30, growing.Options{})
	check(err)
	defer cache.Close()
	check(cache.Grow(1))

	c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	check(err)
	to, err := c.Binding()
	check(err)
	_, err = c.Add(gpu.Copy(to.Range(0, 4), cache.Buffer().Range(0, 4)))
	check(err)
	check(c.End())

	s := dev.Queue(0).NewStream()
	s.Fill(cache.Buffer().Range(0, 4), []byte{7})
	check(cache.Grow(1 << 20)) // maps one page, which has more bytes
	check(cache.Grow(8 << 20))
	last := cache.Buffer().Range(cache.Size()-4, 4)
	got := make([]byte, 4)
	s.Do(gpu.Execute(c, last), gpu.Download(got, last))
	check(s.Wait(context.Background()))
	fmt.Println(got, cache.Size()>>20, "of", cache.Max()>>20, "MiB")
	// Output:
	// [7 7 7 7] 8 of 65536 MiB
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
