package checkpoint_test

import (
	"encoding/json"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
)

// TestReference compares weights and rotary frequencies with those that Hugging Face's libraries
// read. PUREGPU_LLAMA_REFERENCE names the folder of a checkpoint, with reference.json, which
// reference.py writes.
func TestReference(t *testing.T) {
	dir := os.Getenv("PUREGPU_LLAMA_REFERENCE")
	if dir == "" {
		t.Skip("PUREGPU_LLAMA_REFERENCE is not set")
	}
	b, err := os.ReadFile(filepath.Join(dir, "reference.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		InvFreq   []float32 `json:"inv_freq"`
		Attention float64
		Tensors   map[string]struct {
			Shape []int
			CRC32 uint32
		}
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	config := c.Config()
	checkFreq(t, config.InvFreq(), want.InvFreq)
	if !near(config.Rope.Attention, want.Attention) {
		t.Errorf("the attention factor is %v, want %v", config.Rope.Attention, want.Attention)
	}
	if len(want.Tensors) == 0 {
		t.Fatal("reference.json has no tensors")
	}
	for name, w := range want.Tensors {
		tensor, err := c.Tensor(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.Equal(tensor.Shape, w.Shape) {
			t.Errorf("%s has shape %v, want %v", name, tensor.Shape, w.Shape)
		}
		sum := crc32.NewIEEE()
		if _, err := io.Copy(sum, io.NewSectionReader(tensor, 0, tensor.Size)); err != nil {
			t.Fatal(err)
		}
		if sum.Sum32() != w.CRC32 {
			t.Errorf("%s has other bytes", name)
		}
	}
}

func checkFreq(t *testing.T, got, want []float32) {
	if len(got) != len(want) {
		t.Fatalf("%d frequencies, want %d", len(got), len(want))
	}
	for i := range got {
		if !near(float64(got[i]), float64(want[i])) {
			t.Errorf("frequency %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// near reports whether two numbers differ only in the last bits of float32.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b) }
