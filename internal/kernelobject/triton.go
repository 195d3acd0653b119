package kernelobject

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Triton holds the metadata that Triton writes beside a kernel's code: its launch parameters, and
// in some releases its signature.
type Triton struct {
	Name        string
	Backend     string // cuda or hip; "" in old releases
	Threads     int    // threads of a block
	Shared      uint64 // dynamic shared memory, bytes
	Cluster     [3]int // blocks of a cluster, 1 each without clusters; the grid must be multiplied by these
	Cooperative bool

	GlobalScratch  uint64 // bytes of global memory for each block; the address of this memory is one of the last parameters
	ProfileScratch uint64 // bytes of global memory that a profiler uses for each block; the address of this memory is one of the last parameters
	TensorMaps     bool   // some parameters are tensor maps that the host makes

	Signature []TritonParam // nil if unknown
}

// A TritonParam is a parameter of a kernel. Parameters that became constants are not included.
type TritonParam struct {
	Name    string // "" if unknown
	Type    string // type of a number or of an address's element: i1 to i64, u8 to u64, f16, bf16, f32, f64, f8e4m3 (OCP), f8e5m2, f8 (any other), ptr; "" if unknown
	Pointer bool
	Text    string // the type in Triton's spelling
}

// maxTriton is the largest size of a kernel's metadata or intermediate code, in bytes.
const maxTriton = 16 << 20

// ReadTriton reads a kernel's metadata, in JSON.
func ReadTriton(text []byte) (*Triton, error) {
	if len(text) > maxTriton {
		return nil, fmt.Errorf("metadata of %d bytes, more than %d", len(text), maxTriton)
	}
	var m struct {
		Name     string `json:"name"`
		NumWarps *int64 `json:"num_warps"`
		NumCTAs  *int64 `json:"num_ctas"`
		WarpSize *int64 `json:"warp_size"`
		Shared   *int64 `json:"shared"`
		Target   struct {
			Backend  string `json:"backend"`
			WarpSize *int64 `json:"warp_size"`
		} `json:"target"`
		ClusterDims    []int64         `json:"cluster_dims"`
		Cooperative    bool            `json:"launch_cooperative_grid"`
		GlobalScratch  *int64          `json:"global_scratch_size"`
		ProfileScratch *int64          `json:"profile_scratch_size"`
		TensorDesc     json.RawMessage `json:"tensordesc_meta"`
		Signature      json.RawMessage `json:"signature"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		// Old releases write the target as a list or a number, which is ignored.
		var bad *json.UnmarshalTypeError
		if !errors.As(err, &bad) || !strings.HasPrefix(bad.Field, "target") {
			return nil, fmt.Errorf("metadata of Triton: %w", err)
		}
	}
	if len(m.Name) > maxName {
		return nil, fmt.Errorf("metadata of Triton: the kernel's name has %d bytes, more than %d", len(m.Name), maxName)
	}
	if m.Name == "" || m.NumWarps == nil || m.Shared == nil {
		return nil, errors.New("not metadata of Triton: name, num_warps or shared is missing")
	}
	t := &Triton{Name: m.Name, Backend: m.Target.Backend, Cluster: [3]int{1, 1, 1}, Cooperative: m.Cooperative}
	warp := int64(32)
	if m.Target.WarpSize != nil {
		warp = *m.Target.WarpSize
	} else if m.WarpSize != nil {
		warp = *m.WarpSize
	}
	if warp != 32 && warp != 64 || *m.NumWarps < 1 || *m.NumWarps > 64 {
		return nil, fmt.Errorf("metadata of Triton's kernel %s: %d warps of %d threads", t.Name, *m.NumWarps, warp)
	}
	t.Threads = int(warp * *m.NumWarps)
	for _, n := range []struct {
		name string
		from *int64
		to   *uint64
		most int64
	}{
		{"shared", m.Shared, &t.Shared, 1 << 24},
		{"global_scratch_size", m.GlobalScratch, &t.GlobalScratch, 1 << 40},
		{"profile_scratch_size", m.ProfileScratch, &t.ProfileScratch, 1 << 40},
	} {
		if n.from == nil {
			continue
		}
		if *n.from < 0 || *n.from > n.most {
			return nil, fmt.Errorf("metadata of Triton's kernel %s: %s is %d", t.Name, n.name, *n.from)
		}
		*n.to = uint64(*n.from)
	}
	if m.NumCTAs != nil {
		m.ClusterDims = append(m.ClusterDims[:min(len(m.ClusterDims), 3)], 1, 1, 1)
		if m.ClusterDims[0] == 1 && m.ClusterDims[1] == 1 && m.ClusterDims[2] == 1 {
			m.ClusterDims[0] = *m.NumCTAs
		}
	}
	for i, n := range m.ClusterDims[:min(len(m.ClusterDims), 3)] {
		if n < 1 || n > 64 {
			return nil, fmt.Errorf("metadata of Triton's kernel %s: a cluster of %d blocks", t.Name, n)
		}
		t.Cluster[i] = int(n)
	}
	desc := bytes.TrimSpace(m.TensorDesc)
	t.TensorMaps = len(desc) > 0 && !bytes.Equal(desc, []byte("null")) && !bytes.Equal(desc, []byte("[]")) && !bytes.Equal(desc, []byte("{}"))
	if len(m.Signature) > 0 && m.Signature[0] == '{' {
		var err error
		if t.Signature, err = jsonSignature(m.Signature); err != nil {
			return nil, fmt.Errorf("metadata of Triton's kernel %s: %w", t.Name, err)
		}
	}
	return t, nil
}

// jsonSignature reads a JSON object whose keys are parameters' names or indices, and whose values
// are their types. It keeps the order of the keys.
func jsonSignature(text []byte) ([]TritonParam, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	all := []TritonParam{}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := k.(string)
		typ, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("the type of parameter %s is not a string", name)
		}
		if typ == "constexpr" {
			continue
		}
		if _, err := strconv.Atoi(name); err == nil {
			name = ""
		}
		p := TritonParam{Name: name, Text: typ}
		elem, pointer := strings.CutPrefix(typ, "*")
		p.Pointer = pointer
		p.Type = tritonType(strings.TrimPrefix(elem, "k")) // the k of *k means constant memory
		all = append(all, p)
	}
	return all, nil
}

// tritonType returns the uniform name of a type, or "" if it is unknown.
func tritonType(name string) string {
	switch name {
	case "i1", "u1", "int1", "B":
		return "i1"
	case "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64":
		return name
	case "fp16", "fp32", "fp64":
		return name[:1] + name[2:]
	case "fp8e4nv", "f8E4M3FN":
		return "f8e4m3"
	case "fp8e5", "f8E5M2":
		return "f8e5m2"
	}
	switch {
	case strings.HasPrefix(name, "fp8"), strings.HasPrefix(name, "f8E"), strings.HasPrefix(name, "f8e"):
		return "f8"
	case strings.HasPrefix(name, "!tt.ptr"), strings.HasPrefix(name, "*"):
		return "ptr"
	}
	return ""
}

// TritonIR reads a kernel's signature from Triton's intermediate code, the files .ttir and .source:
//
//	tt.func public @add(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x_ptr"(#loc)), …)
func TritonIR(text []byte, kernel string) ([]TritonParam, error) {
	if len(text) > maxTriton {
		return nil, fmt.Errorf("intermediate code of %d bytes, more than %d", len(text), maxTriton)
	}
	names := [][]byte{[]byte(kernel), []byte(`"` + kernel + `"`)}
	for rest := text; ; {
		_, after, ok := bytes.Cut(rest, []byte("tt.func"))
		if !ok {
			return nil, fmt.Errorf("the intermediate code has no tt.func @%s", kernel)
		}
		rest = after
		words := bytes.TrimLeft(after, " \t")
		for _, w := range []string{"public", "private"} {
			if b, ok := bytes.CutPrefix(words, []byte(w)); ok {
				words = bytes.TrimLeft(b, " \t")
			}
		}
		b, ok := bytes.CutPrefix(words, []byte("@"))
		if !ok {
			continue
		}
		for _, name := range names {
			if rest, ok := bytes.CutPrefix(b, name); ok {
				if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte("(")); ok {
					return irParams(rest)
				}
			}
		}
	}
}

// irParams reads parameters up to the closing parenthesis.
func irParams(b []byte) ([]TritonParam, error) {
	all := []TritonParam{}
	for {
		b = bytes.TrimLeft(b, " \t\r\n,")
		if len(b) == 0 {
			return nil, errors.New("the signature was cut off")
		}
		if b[0] == ')' {
			return all, nil
		}
		n, err := irPart(b)
		if err != nil {
			return nil, err
		}
		part := string(b[:n])
		b = b[n:]
		value, typ, ok := strings.Cut(part, ":")
		if !ok || !strings.HasPrefix(value, "%") {
			return nil, fmt.Errorf("%.40q is not a parameter", part)
		}
		p := TritonParam{Name: strings.TrimSpace(value[1:])}
		typ = strings.TrimSpace(typ)
		if digits, ok := strings.CutPrefix(p.Name, "arg"); ok && strings.Trim(digits, "0123456789") == "" {
			p.Name = ""
		}
		if _, at, ok := strings.Cut(typ, `loc("`); ok && p.Name == "" {
			p.Name, _, _ = strings.Cut(at, `"`)
			if strings.ContainsAny(p.Name, "/. ") { // it is a file name, not a parameter's name
				p.Name = ""
			}
		}
		for _, end := range []string{" {", " loc("} {
			typ, _, _ = strings.Cut(typ, end)
		}
		p.Text = strings.TrimSpace(typ)
		if elem, ok := strings.CutPrefix(p.Text, "!tt.ptr<"); ok {
			p.Pointer = true
			elem = strings.TrimSuffix(elem, ">")
			elem, _, _ = strings.Cut(elem, ",") // the number of an address space
			p.Type = tritonType(elem)
		} else if p.Type = tritonType(p.Text); p.Type == "ptr" {
			p.Type = ""
		}
		all = append(all, p)
	}
}

// irPart returns the length of a parameter. The parameter ends at a comma or parenthesis outside
// any brackets.
func irPart(b []byte) (int, error) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '(', '{', '[', '<':
			depth++
		case ')', '}', ']', '>':
			if b[i] == '>' && i > 0 && b[i-1] == '-' {
				break
			}
			if depth == 0 {
				return i, nil
			}
			depth--
		case ',':
			if depth == 0 {
				return i, nil
			}
		}
	}
	return 0, errors.New("the signature was cut off")
}
