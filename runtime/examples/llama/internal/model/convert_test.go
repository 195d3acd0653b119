package model_test

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint/checkpointtest"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// converted writes a random checkpoint whose numbers have the type in the parameter to, and opens
// the checkpoint. With F8E4M3 only the matrices of the layers have that type. Of the matrices, q, k
// and v have a scale for each row, and the rest have one scale.
func converted(t testing.TB, c checkpoint.Config, to checkpoint.DType) *checkpoint.Checkpoint {
	t.Helper()
	dir := t.TempDir()
	if err := checkpointtest.Write(dir, c, 1, 1); err != nil {
		t.Fatal(err)
	}
	weights := newReference(t, opened(t, dir)).weights
	header, data := map[string]any{}, []byte(nil)
	put := func(name string, kind checkpoint.DType, shape []int, numbers []float64) {
		begin := len(data)
		for _, x := range numbers {
			switch f := float32(x); kind {
			case checkpoint.BF16:
				data = binary.LittleEndian.AppendUint16(data, uint16(smallfloat.ToBFloat16(f)))
			case checkpoint.F16:
				data = binary.LittleEndian.AppendUint16(data, uint16(smallfloat.ToFloat16(f)))
			case checkpoint.F8E4M3:
				data = append(data, byte(smallfloat.ToFloat8E4M3(f)))
			default:
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
			}
		}
		header[name] = map[string]any{"dtype": kind.String(), "shape": shape, "data_offsets": []int{begin, len(data)}}
	}
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		w, kind := weights[name], to
		shape := []int{w.rows, w.cols}
		if w.rows == 1 {
			shape = shape[1:]
		}
		if to == checkpoint.F8E4M3 {
			if kind = checkpoint.BF16; strings.HasSuffix(name, "_proj") {
				kind = to
				scales := make([]float64, w.rows)
				for i := range w.data {
					scales[i/w.cols] = max(scales[i/w.cols], math.Abs(w.data[i])/448)
				}
				if !strings.Contains(name, "self_attn") || strings.Contains(name, "o_proj") {
					scales = []float64{slices.Max(scales)}
				}
				for i := range w.data {
					w.data[i] /= float64(float32(scales[i/w.cols%len(scales)]))
				}
				put(name+".weight_scale", checkpoint.F32, []int{len(scales)}, scales)
			}
		}
		put(name+".weight", kind, shape, w.data)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), append(file, data...), 0o666); err != nil {
		t.Fatal(err)
	}
	return opened(t, dir)
}
