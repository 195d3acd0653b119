package symbols

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

func decodeSmall(t *testing.T, change func(*Table, *Overlay)) *Library {
	t.Helper()
	table, overlay := small()
	if change != nil {
		change(table, overlay)
	}
	if err := Lenders(nil).checkTable("t", table); err != nil {
		t.Fatal(err)
	}
	if err := checkOverlay("o", table, overlay); err != nil {
		t.Fatal(err)
	}
	return join(table, overlay, nil)
}

func symbolsOf(funcs []Func) string {
	var names []string
	for _, f := range funcs {
		names = append(names, f.Symbol)
	}
	return strings.Join(names, " ")
}

func TestLoadEmbeddedLibraries(t *testing.T) {
	core := map[string]string{"cuda": "cuInit", "cufile": "cuFileRead", "hipblas": "hipblasSgemm", "hipfft": "hipfftPlan1d", "hiprand": "hiprandGenerate", "cusolver": "cusolverDnSpotrf", "cupti": "cuptiActivityEnable", "cusparse": "cusparseSpMV", "cublaslt": "cublasLtCreate", "cublas": "cublasSgemm", "cudnn": "cudnnBackendExecute", "curand": "curandGenerate", "cufft": "cufftPlan1d", "hip": "hipInit", "hiprtc": "hiprtcVersion", "nccl": "ncclGetVersion", "nvjitlink": "nvJitLinkCreate", "nvml": "nvmlInit", "nvrtc": "nvrtcVersion"}
	for _, name := range Names() {
		l, err := Load(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if l.Library != name || l.Version.IsZero() || len(l.Funcs)+len(l.Skipped) != len(l.Functions) {
			t.Errorf("%s: library %q %v has %d bound and %d other functions of %d", name, l.Library, l.Version, len(l.Funcs), len(l.Skipped), len(l.Functions))
		}
		if got := l.Lookup(core[name]); len(got) == 0 || got[0].Set != 0 {
			t.Errorf("%s: %s is not in the required core", name, core[name])
		}
		names := map[string]bool{}
		for _, s := range l.Sets {
			if s.Name == "" || s.Since.IsZero() || names[s.Name] {
				t.Errorf("%s: set %q since %v is nameless, undated or there twice", name, s.Name, s.Since)
			}
			names[s.Name] = true
		}
		for _, f := range l.Funcs {
			if s := l.Sets[f.Set]; f.Since.Compare(s.Since) > 0 {
				t.Errorf("%s: %s came with %v, later than its set %s of %v", name, f.Symbol, f.Since, s.Name, s.Since)
			}
			if f.Doc == "" {
				t.Errorf("%s: %s has no summary", name, f.Symbol)
			}
		}
	}
}

func TestLoadDecodesOnce(t *testing.T) {
	var wg sync.WaitGroup
	var got [4]*Library
	for i := range got {
		wg.Go(func() { got[i], _ = Load("nccl") })
	}
	wg.Wait()
	for _, l := range got {
		if l == nil || l != got[0] {
			t.Fatalf("concurrent calls of Load give %p and %p", got[0], l)
		}
	}
}

func TestLoadOfAnUnknownLibraryListsThoseThereAre(t *testing.T) {
	_, err := Load("opencl")
	wantError(t, err, `no library "opencl"; there are [cublas cublaslt cuda cudnn cufft cufile cupti curand cusolver cusparse hip hipblas hipfft hiprand hiprtc nccl nvjitlink nvml nvrtc]`)
}

func TestLookupGivesEveryABIByEitherName(t *testing.T) {
	cuda, err := Load("cuda")
	if err != nil {
		t.Fatal(err)
	}
	hip, err := Load("hip")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		lib  *Library
		name string
		want string
	}{
		{cuda, "cuCtxCreate", "cuCtxCreate cuCtxCreate_v2 cuCtxCreate_v3 cuCtxCreate_v4"},
		{cuda, "cuCtxCreate_v3", "cuCtxCreate cuCtxCreate_v2 cuCtxCreate_v3 cuCtxCreate_v4"},
		{cuda, "cuInit", "cuInit"},
		{cuda, "cuInit_v2", ""},
		{cuda, "", ""},
		{hip, "hipGetDevicePropertiesR0600", "hipGetDevicePropertiesR0600 hipGetDeviceProperties"},
		{hip, "hipGetDeviceProperties", "hipGetDevicePropertiesR0600 hipGetDeviceProperties"},
	}
	for _, tt := range tests {
		if got := symbolsOf(tt.lib.Lookup(tt.name)); got != tt.want {
			t.Errorf("Lookup(%q) gives %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestOneABIOfANameIsCurrent(t *testing.T) {
	cuda, err := Load("cuda")
	if err != nil {
		t.Fatal(err)
	}
	for api, want := range map[string]string{
		"cuCtxCreate": "cuCtxCreate_v4", "cuMemAlloc": "cuMemAlloc_v2", "cuInit": "cuInit",
		"cuCtxGetDevice": "cuCtxGetDevice", // no macro maps the plain name to cuCtxGetDevice_v2
	} {
		var current []string
		for _, f := range cuda.Lookup(api) {
			if f.Current {
				current = append(current, f.Symbol)
			}
		}
		if !slices.Equal(current, []string{want}) {
			t.Errorf("%s means %v, want %s", api, current, want)
		}
	}
}

func TestLookupFindsWhatIsNotBound(t *testing.T) {
	l := decodeSmall(t, func(_ *Table, o *Overlay) {
		o.Functions = append(o.Functions, FunctionNote{Name: "xMake_v2", Skip: true, Reason: "never shipped"})
	})
	if got := symbolsOf(l.Lookup("xMake")); got != "xMake xMake_v2" {
		t.Errorf("Lookup gives %q", got)
	}
	if len(l.Skipped) != 1 || l.Skipped[0].Note != "never shipped" {
		t.Errorf("skipped functions are %+v", l.Skipped)
	}
}

func TestLookupByAnAPINameThatIsAnOldSymbol(t *testing.T) {
	l := decodeSmall(t, func(table *Table, _ *Overlay) { table.Functions[1].API = "xMakeOld" })
	if got := symbolsOf(l.Lookup("xMake")); got != "xMake xMake_v2" {
		t.Errorf("Lookup gives %q", got)
	}
}

func TestLaterFunctionsContinueTheirSet(t *testing.T) {
	l := decodeSmall(t, nil)
	var got []string
	for _, s := range l.Sets {
		got = append(got, fmt.Sprint(s.Name, " ", s.Since))
	}
	want := []string{"core 1.0", "streams 1.0", "streams-2.0 2.0"}
	if !slices.Equal(got, want) {
		t.Fatalf("sets are %q, want %q", got, want)
	}
	if doc := l.Sets[2].Doc; doc != "queues of work: what came with 2.0" {
		t.Errorf("continuation is described as %q", doc)
	}
	for _, f := range l.Funcs {
		want := map[string]int{"xInit": 0, "xMake": 1, "xMake_v2": 2, "xRead": 1}[f.Symbol]
		if f.Set != want {
			t.Errorf("%s is in set %d, want %d", f.Symbol, f.Set, want)
		}
	}
}

func TestContinuationIsDatedByTheOverlay(t *testing.T) {
	l := decodeSmall(t, func(_ *Table, o *Overlay) {
		o.Functions = append(o.Functions, FunctionNote{Name: "xRead", Since: Version{1, 4, 0}, Reason: "missing from 1.3"})
	})
	if f := l.Lookup("xRead")[0]; l.Sets[f.Set].Name != "streams-1.4" {
		t.Errorf("xRead is in %q", l.Sets[f.Set].Name)
	}
}

func TestContinuationSetsOfCUDA(t *testing.T) {
	cuda, err := Load("cuda")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range cuda.Funcs {
		s := cuda.Sets[f.Set]
		base, release, ok := strings.Cut(s.Name, "-"+s.Since.String())
		if !ok || release != "" {
			continue
		}
		found = true
		if f.Since != s.Since {
			t.Errorf("%s of %v is in %s", f.Symbol, f.Since, s.Name)
		}
		i := slices.IndexFunc(cuda.Sets, func(s Set) bool { return s.Name == base })
		if i < 0 || cuda.Sets[i].Since.Compare(s.Since) >= 0 {
			t.Errorf("%s continues nothing older", s.Name)
		}
	}
	if !found {
		t.Error("no set is a continuation")
	}
}

func TestRequiredCoreIsTheFirstSet(t *testing.T) {
	for _, name := range Names() {
		l, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if l.Sets[0].Name != "core" {
			t.Errorf("%s: Sets[0] is %q", name, l.Sets[0].Name)
		}
	}
}

func TestNotesOfASymbolHaveTheLastWord(t *testing.T) {
	yes, no := true, false
	l := decodeSmall(t, func(_ *Table, o *Overlay) {
		o.Params = append(o.Params,
			ParamNote{Name: "xMake.out", Dir: InOut, Null: &yes, Fixed: 2, Type: "uintptr", Reason: "all ABIs"},
			ParamNote{Name: "xMake_v2.out", Null: &no, Reason: "this one"})
		o.Docs = append(o.Docs, DocNote{Name: "xMake_v2", Text: "makes a stream with flags"})
		o.Functions = append(o.Functions,
			FunctionNote{Name: "xMake", Callback: Yes, Reason: "all ABIs"},
			FunctionNote{Name: "xMake_v2", Registers: true, Reason: "this one"})
	})
	f := l.Lookup("xMake")
	if a := f[0].Args[0]; a.Dir != InOut || !a.Null || a.Fixed != 2 || a.GoType != "uintptr" {
		t.Errorf("xMake: out is %+v", a)
	}
	if a := f[1].Args[0]; a.Dir != InOut || a.Null || a.Fixed != 2 || a.GoType != "uintptr" {
		t.Errorf("xMake_v2: out is %+v, want all but Null from the API's note", a)
	}
	if f[0].Doc != "makes a stream" || f[1].Doc != "makes a stream with flags" {
		t.Errorf("summaries are %q and %q", f[0].Doc, f[1].Doc)
	}
	if !f[0].Callback || f[0].Note != "all ABIs" || !f[1].Registers || f[1].Note != "this one" {
		t.Errorf("notes are %+v and %+v", f[0], f[1])
	}
}

func TestNotesOfTypesAndNames(t *testing.T) {
	l := decodeSmall(t, func(_ *Table, o *Overlay) {
		o.Docs = append(o.Docs, DocNote{Name: "xResult", Text: "tells how a call went"})
	})
	if n, ok := l.TypeNote("xResult"); !ok || n.Kind != "result" {
		t.Errorf("TypeNote gives %+v, %t", n, ok)
	}
	if n, ok := l.NameNote("xLoose"); !ok || n.Go != "Loose" {
		t.Errorf("NameNote gives %+v, %t", n, ok)
	}
	if got := l.TypeDoc("xResult"); got != "tells how a call went" {
		t.Errorf("TypeDoc gives %q", got)
	}
	if _, ok := l.TypeNote("xPoint"); ok {
		t.Error("xPoint has no note")
	}
}

// TestFunctionsAreAsOldAsTheirSet checks that a function without a since-version gets the
// since-version of its set.
func TestFunctionsAreAsOldAsTheirSet(t *testing.T) {
	l := decodeSmall(t, func(tab *Table, o *Overlay) {
		for i := range tab.Functions {
			tab.Functions[i].Since = Version{}
		}
		o.Sets[1].Since = Version{1, 5, 0}
	})
	for _, f := range l.Funcs {
		want := Version{1, 0, 0}
		if f.Set != 0 {
			want = Version{1, 5, 0}
		}
		if f.Since != want {
			t.Errorf("%s, of set %s, is there since %v, want %v", f.Symbol, l.Sets[f.Set].Name, f.Since, want)
		}
	}
}
