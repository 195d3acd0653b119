package main

import (
	"fmt"
	"strconv"
	"strings"

	. "github.com/dave/jennifer/jen"
)

const (
	cudaPath    = "github.com/puregpu/puregpu/cuda"
	compilePath = "github.com/puregpu/puregpu/runtime/compile"
	driverPath  = "github.com/puregpu/puregpu/runtime/driver"
	simPath     = "github.com/puregpu/puregpu/runtime/driver/simdriver"
	gpuPath     = "github.com/puregpu/puregpu/runtime/gpu"
	smallPath   = "github.com/puregpu/puregpu/runtime/smallfloat"
)

// A goType is the Go type of a parameter or an element.
type goType struct {
	expr string // such as float32, [4]float32, Vec3, or example.com/geometry.Vec3
	size int    // bytes, 0 if only the Go compiler knows it
}

// The types of package smallfloat.
var (
	float16    = goType{smallPath + ".Float16", 2}
	bfloat16   = goType{smallPath + ".BFloat16", 2}
	float8E4M3 = goType{smallPath + ".Float8E4M3", 1}
	float8E5M2 = goType{smallPath + ".Float8E5M2", 1}
)

func twoOf(t goType) goType { return goType{"[2]" + t.expr, 2 * t.size} }

// scalars maps C types to Go types.
var scalars = map[string]goType{
	"bool": {"bool", 1}, "_Bool": {"bool", 1},
	"char": {"int8", 1}, "signed char": {"int8", 1}, "unsigned char": {"uint8", 1}, "uchar": {"uint8", 1},
	"short": {"int16", 2}, "unsigned short": {"uint16", 2}, "ushort": {"uint16", 2},
	"int": {"int32", 4}, "unsigned int": {"uint32", 4}, "uint": {"uint32", 4},
	"long": {"int64", 8}, "unsigned long": {"uint64", 8}, "ulong": {"uint64", 8},
	"long long": {"int64", 8}, "unsigned long long": {"uint64", 8},
	"int8_t": {"int8", 1}, "uint8_t": {"uint8", 1}, "int16_t": {"int16", 2}, "uint16_t": {"uint16", 2},
	"int32_t": {"int32", 4}, "uint32_t": {"uint32", 4}, "int64_t": {"int64", 8}, "uint64_t": {"uint64", 8},
	"size_t": {"uint64", 8}, "ssize_t": {"int64", 8}, "ptrdiff_t": {"int64", 8}, "intptr_t": {"int64", 8}, "uintptr_t": {"uint64", 8},
	"float": {"float32", 4}, "double": {"float64", 8},
	"half": float16, "__half": float16, "_Float16": float16,
	"__nv_bfloat16": bfloat16, "nv_bfloat16": bfloat16, "__hip_bfloat16": bfloat16, "hip_bfloat16": bfloat16, "__bf16": bfloat16,
	"__nv_fp8_e4m3": float8E4M3, "__hip_fp8_e4m3": float8E4M3, "__nv_fp8_e5m2": float8E5M2, "__hip_fp8_e5m2": float8E5M2,
	"half2": twoOf(float16), "__half2": twoOf(float16),
	"__nv_bfloat162": twoOf(bfloat16), "nv_bfloat162": twoOf(bfloat16), "__hip_bfloat162": twoOf(bfloat16),
	"cuComplex": {"complex64", 8}, "cuFloatComplex": {"complex64", 8}, "cuDoubleComplex": {"complex128", 16},
	"cudaTextureObject_t": {"uint64", 8}, "cudaSurfaceObject_t": {"uint64", 8}, "CUtexObject": {"uint64", 8}, "CUsurfObject": {"uint64", 8},
	"CUdeviceptr": {driverPath + ".Ptr", 8}, "CUtensorMap": {cudaPath + ".TensorMap", 128},
	"dim3": {"[3]uint32", 12},
}

func init() { // adds the vectors of CUDA and HIP
	for name, elem := range map[string]string{
		"char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32", "long": "int64", "ulong": "uint64",
		"longlong": "int64", "ulonglong": "uint64", "float": "float32", "double": "float64",
	} {
		for n := 1; n <= 4; n++ {
			scalars[name+strconv.Itoa(n)] = goType{fmt.Sprintf("[%d]%s", n, elem), n * basic[elem]}
		}
	}
}

// basic has the sizes of Go types that need no -type, by their goType.expr.
var basic = map[string]int{
	"bool": 1, "int8": 1, "uint8": 1, "byte": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
	"float32": 4, "float64": 8, "complex64": 8, "complex128": 16,
	driverPath + ".Ptr": 8, gpuPath + ".Range": 8, "*" + gpuPath + ".Buffer": 8, cudaPath + ".TensorMap": 128,
	float16.expr: 2, bfloat16.expr: 2, float8E4M3.expr: 1, float8E5M2.expr: 1,
}

// shortPaths maps the names of packages on the command line to their import paths.
var shortPaths = map[string]string{"driver.": driverPath + ".", "gpu.": gpuPath + ".", "cuda.": cudaPath + ".", "smallfloat.": smallPath + "."}

// parseGoType reads a Go type from the command line.
func parseGoType(s string) (goType, error) {
	elem, stars := s, ""
	if e, ok := strings.CutPrefix(elem, "*"); ok {
		elem, stars = e, "*"
	}
	for short, path := range shortPaths {
		if name, ok := strings.CutPrefix(elem, short); ok {
			elem = path + name
		}
	}
	if n, rest, ok := strings.Cut(elem, "]"); ok && strings.HasPrefix(elem, "[") {
		count, err := strconv.Atoi(n[1:])
		if err != nil || count <= 0 || count > 1<<20 {
			return goType{}, fmt.Errorf("%q is no array type: [N]T", s)
		}
		of, err := parseGoType(rest)
		return goType{fmt.Sprintf("[%d]%s", count, of.expr), count * of.size}, err
	}
	if of, ok := strings.CutPrefix(elem, gpuPath+".Slice["); ok {
		of, err := parseGoType(strings.TrimSuffix(of, "]"))
		return goType{gpuPath + ".Slice[" + of.expr + "]", 8}, err
	}
	name := elem[strings.LastIndexByte(elem, '.')+1:]
	expr := stars + elem
	if !isName(name) || goReserved[name] && basic[expr] == 0 || stars != "" && basic[expr] == 0 {
		return goType{}, fmt.Errorf("%q is not a Go type for a kernel: give float32, [4]float32, Vec3 of the package itself, or example.com/geometry.Vec3", s)
	}
	return goType{expr, basic[expr]}, nil
}

// code writes a type.
func (t goType) code() *Statement { return typeCode(t.expr) }

func typeCode(expr string) *Statement {
	if e, ok := strings.CutPrefix(expr, "*"); ok {
		return Op("*").Add(typeCode(e))
	}
	if strings.HasPrefix(expr, "[") {
		n, rest, _ := strings.Cut(expr, "]")
		return Op(n + "]").Add(typeCode(rest))
	}
	if of, ok := strings.CutPrefix(expr, gpuPath+".Slice["); ok {
		return Qual(gpuPath, "Slice").Index(typeCode(strings.TrimSuffix(of, "]")))
	}
	if i := strings.LastIndexByte(expr, '.'); i >= 0 {
		return Qual(expr[:i], expr[i+1:])
	}
	return Id(expr)
}

// isMemory reports whether an argument of the type is the address of memory.
func (t goType) isMemory() bool {
	return t.expr == gpuPath+".Range" || t.expr == "*"+gpuPath+".Buffer" || strings.HasPrefix(t.expr, gpuPath+".Slice[")
}

// twin returns the type for a Go twin. The simulated GPU passes memory as an address, and a bool as
// a byte.
func (t goType) twin() goType {
	switch {
	case t.isMemory():
		return goType{driverPath + ".Ptr", 8}
	case t.expr == "bool": // any byte is valid
		return goType{"uint8", 1}
	}
	return t
}

// normalize puts the words of a C integer type into one order.
func normalize(typ string) string {
	words := strings.Fields(typ)
	var unsigned, signed, short, long int
	rest := ""
	for _, w := range words {
		switch w {
		case "unsigned":
			unsigned++
		case "signed":
			signed++
		case "short":
			short++
		case "long":
			long++
		case "int":
		default:
			if rest != "" {
				return typ
			}
			rest = w
		}
	}
	if unsigned+signed+short+long == 0 {
		return typ
	}
	name := "int"
	switch {
	case rest == "char" && unsigned > 0:
		return "unsigned char"
	case rest == "char" && signed > 0:
		return "signed char"
	case rest != "": // such as long double
		return typ
	case short > 0:
		name = "short"
	case long == 1:
		name = "long"
	case long > 1:
		name = "long long"
	}
	if unsigned > 0 {
		return "unsigned " + name
	}
	return name
}
