package engine_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// usesMutex returns the mutex of a buffer's Uses.
func usesMutex(b *gpu.Buffer) mutex {
	mu := reflect.ValueOf(b).Elem().FieldByName("uses").FieldByName("mu")
	return reflect.NewAt(mu.Type(), mu.Addr().UnsafePointer()).Interface().(mutex)
}

// TestUseBeforeCheck frees memory while a fill of this memory adds its mark to the uses. The fill
// then checks that the memory is allocated, and must fail. The free may have found the fill's mark,
// although the stream gets no fill. The free must still succeed.
func TestUseBeforeCheck(t *testing.T) {
	d := simdriver.New(simdriver.Config{})
	dev, err := gpu.Open(d, 0, gpu.Options{Queues: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	p, err := dev.NewPool(gpu.PoolOptions{Portable: true})
	if err != nil {
		t.Fatal(err)
	}
	there, used, freed := new(gpu.Semaphore), new(gpu.Semaphore), new(gpu.Semaphore)
	b, err := testkit.AllocIn(dev.Queue(0), gpu.Order{Signal: []gpu.Point{there.At(1)}}, p, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := there.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	uses := usesMutex(b)
	uses.Lock() // blocks the fill, and then the free
	result := make(chan error, 2)
	go func() {
		result <- dev.Queue(1).Submit(gpu.Order{Signal: []gpu.Point{used.At(1)}}, gpu.Fill(b.All(), []byte{1}))
	}()
	untilIn("(*Uses).Add(")
	go func() { result <- dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{freed.At(1)}}, gpu.Free(b)) }()
	untilIn("(*Uses).Left(")
	uses.Unlock()
	for range 2 {
		if err := <-result; err != nil {
			t.Fatal(err)
		}
	}
	if err := used.Wait(t.Context(), 1); !errors.Is(err, gpu.ErrUnallocated) {
		t.Errorf("the fill found the memory freed: %v", err)
	}
	if n := d.Counters().Devices[0].Calls[simdriver.OpFill]; n != 0 {
		t.Errorf("%d fills", n)
	}
	if err := freed.Wait(t.Context(), 1); err != nil {
		t.Errorf("the dealloca: %v", err)
	}
}
