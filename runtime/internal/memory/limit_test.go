package memory

import "testing"

// TestTooLarge checks which sizes a pool can never allocate.
func TestTooLarge(t *testing.T) {
	for name, x := range map[string]struct {
		pool         *Pool
		most, larger uint64
	}{
		"portable, rounded up": {&Pool{opt: PoolOptions{MaxSize: 300, Portable: true}}, 512, 513},
		"over a buffer":        {&Pool{opt: PoolOptions{MaxSize: 600, Portable: true}, over: new(Buffer)}, 512, 513},
		"native":               {&Pool{opt: PoolOptions{MaxSize: 300}}, 512, 513},
		"without a limit":      {new(Pool), 1 << 40, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if x.pool.tooLarge(x.most) {
				t.Errorf("%d bytes are too large", x.most)
			}
			if x.larger > 0 && !x.pool.tooLarge(x.larger) {
				t.Errorf("%d bytes are not too large", x.larger)
			}
		})
	}
}
