package drivers

import (
	"context"
	"errors"
	"reflect"
	"runtime/debug"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/driver/hipdriver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/rendezvous"
)

// TestZeroValues calls all methods of zero values with zero values. None panics or blocks, and all
// functions of a library return that it is not open.
func TestZeroValues(t *testing.T) {
	for _, zero := range []any{
		new(dl.Library), new(cuda.Library), new(hip.Library), new(nccl.Library), new(dl.SetStatus), new(dl.Attempt), new(dl.Frame),
		new(dl.OpenError), new(dl.TooOldError), new(dl.SymbolError), new(dl.LengthError), new(dl.ShortError),
		new(cudadriver.Driver), new(hipdriver.Driver), new(simdriver.Driver), new(simdriver.Injected), new(simdriver.Kernel), new(simdriver.Grid),
		new(simdriver.AccessError), new(rendezvous.File), new(rendezvous.TCP), new(rendezvous.Func), new(rendezvous.NCCLCommID), new(rendezvous.Place),
	} {
		v := reflect.ValueOf(zero)
		library := v.Type().Elem().Name() == "Library"
		for i := range v.NumMethod() {
			m, name := v.Method(i), v.Type().Elem().String()+"."+v.Type().Method(i).Name
			n := m.Type().NumIn()
			if m.Type().IsVariadic() {
				n--
			}
			args := make([]reflect.Value, n)
			for i := range args {
				args[i] = reflect.Zero(m.Type().In(i))
				if args[i].Type() == reflect.TypeFor[context.Context]() {
					args[i] = reflect.ValueOf(t.Context())
				}
			}
			done := make(chan []reflect.Value, 1)
			go func() {
				var out []reflect.Value
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s panics: %v\n%s", name, p, debug.Stack())
					}
					done <- out
				}()
				out = m.Call(args)
			}()
			select {
			case out := <-done:
				if len(out) == 0 {
					continue
				}
				err, ok := out[len(out)-1].Interface().(error)
				if method := v.Type().Method(i).Name; library && ok && method != "Open" && !errors.Is(err, dl.ErrNotOpen) {
					t.Errorf("%s: %v", name, err)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s does not return", name)
			}
		}
	}
	for _, lib := range []*cuda.Library{nil, new(cuda.Library)} {
		if _, err := cudadriver.New(lib); !errors.Is(err, dl.ErrNotOpen) {
			t.Error(err)
		}
	}
	for _, lib := range []*hip.Library{nil, new(hip.Library)} {
		if _, err := hipdriver.New(lib); !errors.Is(err, dl.ErrNotOpen) {
			t.Error(err)
		}
	}
}
