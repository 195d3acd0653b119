package kernelobject

import (
	"fmt"
	"strings"
	"testing"
)

// addJSON is Triton 3.4's metadata of a kernel, with some fields left out.
const addJSON = `{"hash": "0e", "target": {"backend": "cuda", "arch": 90, "warp_size": 32}, "num_warps": 4, "num_ctas": 1, "num_stages": 3,
"maxnreg": null, "cluster_dims": [1, 1, 1], "ptx_version": null, "launch_cooperative_grid": false, "shared": 1024, "tmem_size": 0,
"global_scratch_size": 0, "global_scratch_align": 1, "profile_scratch_size": 0, "profile_scratch_align": 1, "name": "add", "tensordesc_meta": []}`

// addIR holds the first lines of the kernel's intermediate code.
const addIR = `#loc = loc("/tmp/add.py":9:0)
#loc10 = loc("x_ptr"(#loc))
module {
  tt.func private @other(%arg0: i32) { tt.return }
  tt.func public @add(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x_ptr"(#loc)), %arg1: !tt.ptr<bf16, 1> {tt.divisibility = 16 : i32} loc("y_ptr"("/tmp/a,b.py":9:0)), %n: i32 {tt.divisibility = 16 : i32} loc("n"(#loc)), %arg3: f32 loc("/tmp/add.py":9:0), %d: !tt.tensordesc<tensor<64x64xf16>>, %p: !tt.ptr<!tt.ptr<i8>>) attributes {noinline = false} {
`

func TestTriton(t *testing.T) {
	m, err := ReadTriton([]byte(addJSON))
	if got, want := fmt.Sprintf("%+v, %v", m, err), "&{Name:add Backend:cuda Threads:128 Shared:1024 Cluster:[1 1 1] Cooperative:false GlobalScratch:0 ProfileScratch:0 TensorMaps:false Signature:[]}, <nil>"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	params, err := TritonIR([]byte(addIR), "add")
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", params)
	want := fmt.Sprintf("%+v", []TritonParam{{"x_ptr", "f32", true, "!tt.ptr<f32>"}, {"y_ptr", "bf16", true, "!tt.ptr<bf16, 1>"}, {"n", "i32", false, "i32"},
		{"", "f32", false, "f32"}, {"d", "", false, "!tt.tensordesc<tensor<64x64xf16>>"}, {"p", "ptr", true, "!tt.ptr<!tt.ptr<i8>>"}})
	if got != want {
		t.Errorf("parameters\n%s\nwant\n%s", got, want)
	}
	m, err = ReadTriton([]byte(`{"name": "k", "num_warps": 2, "shared": 0, "num_ctas": 2, "target": ["cuda", 80], "signature": {"x": "*fp16", "1": "u1", "B": "constexpr", "y": "*ki64", "z": "fp8e4nv"}, "global_scratch_size": 256, "tensordesc_meta": [{"a": 1}]}`))
	if got, want := fmt.Sprintf("%+v, %v", m, err), "&{Name:k Backend: Threads:64 Shared:0 Cluster:[2 1 1] Cooperative:false GlobalScratch:256 ProfileScratch:0 TensorMaps:true Signature:[{Name:x Type:f16 Pointer:true Text:*fp16} {Name: Type:i1 Pointer:false Text:u1} {Name:y Type:i64 Pointer:true Text:*ki64} {Name:z Type:f8e4m3 Pointer:false Text:fp8e4nv}]}, <nil>"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestTritonErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "metadata of Triton: ",
		"[1]":                "metadata of Triton: ",
		"{}":                 "name, num_warps or shared is missing",
		`{"name": "kernel"}`: "name, num_warps or shared is missing",
		`{"name": "k", "num_warps": 0, "shared": 1}`:                               "kernel k: 0 warps",
		`{"name": "k", "num_warps": 4, "shared": -1}`:                              "shared is -1",
		`{"name": "k", "num_warps": 4, "shared": 1, "num_ctas": 100}`:              "a cluster of 100 blocks",
		`{"name": "k", "num_warps": 4, "shared": 1, "signature": {"x": 1}}`:        "the type of parameter x is not a string",
		`{"name": "k", "num_warps": 4, "shared": 0, "target": {"warp_size": 1e3}}`: "warps of",
	} {
		if m, err := ReadTriton([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", text, m, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                               "no tt.func @add",
		"tt.func public @addition()":     "no tt.func @add",
		"tt.func @add(":                  "cut off",
		"tt.func @add(%x: i32":           "cut off",
		"tt.func @add(i32)":              "is not a parameter",
		`tt.func @add(%x: i32 loc("`:     "cut off",
		"tt.func @add(%x: !tt.ptr<i32,)": "cut off",
	} {
		if p, err := TritonIR([]byte(text), "add"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, p, err, want)
		}
	}
}

func FuzzTriton(f *testing.F) {
	f.Add([]byte(addJSON), []byte(addIR))
	f.Add([]byte(`{"name": "add", "num_warps": 4, "shared": 0, "signature": {"x": "*fp32", "0": "i32"}}`), []byte(`tt.func @add(%a: i32 {x = "\"" : i32}) -> i32`))
	f.Fuzz(func(t *testing.T, meta, ir []byte) {
		if m, err := ReadTriton(meta); err == nil && (m.Threads < 32 || m.Threads > 4096 || len(m.Signature) > len(meta)) {
			t.Errorf("%+v", m)
		}
		if p, err := TritonIR(ir, "add"); err == nil && len(p) > len(ir) {
			t.Errorf("%d parameters of %d bytes", len(p), len(ir))
		}
	})
}
