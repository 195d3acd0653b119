package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/gen"
	"github.com/puregpu/puregpu/internal/extract"
	"github.com/puregpu/puregpu/symbols"
)

// A headerFolder is a folder with a release's headers of a library.
type headerFolder struct {
	library string // key of the library
	dir     string
	release string // the release, if the headers do not contain it; "" takes the folder's name
}

// version returns the release of headers that do not contain their release, and nil for other
// headers.
func (h headerFolder) version(d *symbols.Description) ([]symbols.Version, error) {
	if d.Headers.Version.Header != "" || !d.Headers.Release.IsZero() {
		return nil, nil
	}
	v, err := symbols.ParseVersion(cmp.Or(h.release, filepath.Base(h.dir)))
	if err != nil {
		return nil, fmt.Errorf("%s: the headers of %s do not contain their release: name the folder after it, such as 12.4: %w", h.dir, h.library, err)
	}
	return []symbols.Version{v}, nil
}

// prepare reads a release's headers and pairs the release's functions with those of the library's
// package.
func (h headerFolder) prepare() (*library, *symbols.Library, *symbols.Table, []call, error) {
	lib := libraryNamed(h.library)
	if lib == nil {
		return nil, nil, nil, nil, fmt.Errorf("unknown library %s", h.library)
	}
	ours, err := symbols.Load(lib.pkg)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	functions, err := gen.Functions(lib.pkg)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	in := extract.Input{Report: func(string) {}}
	if in.Versions, err = h.version(ours.Description); err != nil {
		return nil, nil, nil, nil, err
	}
	root, err := os.OpenRoot(h.dir)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	defer root.Close()
	in.Releases = append(in.Releases, root.FS())
	theirs, err := extract.Table(ours.Description, in)
	if err != nil {
		return nil, nil, nil, nil, fmt.Errorf("%s: %w", h.dir, err)
	}
	return lib, ours, theirs, lib.calls(functions, ours.Description, ours.Table, theirs), nil
}

// includes returns the lines of C that include a library's headers.
func includes(d *symbols.Description) string {
	var b strings.Builder
	h := &d.Headers
	if h.Typedefs != nil {
		fmt.Fprintf(&b, "#define %s 1 /* old ABIs too */\n", h.Typedefs.Define)
	}
	if h.Old != "" {
		fmt.Fprintf(&b, "#define %s 1 /* old ABIs by their own names */\n", h.Old)
	}
	for _, line := range h.Prelude {
		b.WriteString(line + "\n")
	}
	for _, name := range h.Included() {
		fmt.Fprintf(&b, "#if __has_include(<%s>)\n#include <%s>\n#endif\n", name, name)
	}
	return b.String()
}

// opaque returns the struct tags of some handles, by the handles' names. Some of these handles have
// only a tag in C. The others have a typedef that names the struct, not a pointer to it, such as
// typedef struct ncclParamHandle ncclParamHandle_t in NCCL 2.30.4. In such a typedef a macro may
// follow the name.
func opaque(dir string, d *symbols.Description, t *symbols.Table) (map[string]string, error) {
	out := map[string]string{}
	for i, name := range d.Headers.Files {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if i > 0 && errors.Is(err, fs.ErrNotExist) { // some releases have only the first header
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, h := range t.Handles {
			if h.Name == h.Tag && !h.Struct || regexp.MustCompile(`typedef\s+struct\s+`+h.Tag+`\s+`+h.Name+`(\s+\w+)*\s*;`).Match(text) {
				out[h.Name] = h.Tag
			}
		}
	}
	return out, nil
}

// tagged returns typedefs, in C, for structs and unions that have only a tag in the headers.
func tagged(t *symbols.Table) string {
	var b strings.Builder
	for _, s := range t.Structs {
		if s.TagOnly {
			fmt.Fprintf(&b, "typedef %s %s %s;\n", map[bool]string{true: "union", false: "struct"}[s.Union], s.Name, s.Name)
		}
	}
	return b.String()
}

// compile compiles a recorder.
func compile(ctx context.Context, dir, text, file string, d *symbols.Description, headers string) error {
	stubs, err := d.StandIns()
	if err != nil {
		return err
	}
	maps.Copy(stubs, d.Headers.Stubs)
	for name, stub := range stubs { // stubs stand for missing headers of other libraries
		path := filepath.Join(dir, "stubs", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(stub), 0o666)); err != nil {
			return err
		}
	}
	c := filepath.Join(dir, "recorder.c")
	cc := cmp.Or(os.Getenv("PUREGPU_TEST_CC"), "gcc")
	args := func(stubsFirst bool) []string {
		all := []string{"-std=gnu11", "-O0", "-w", "-fPIC", "-shared", "-o", file}
		if stubsFirst {
			all = append(all, "-I"+filepath.Join(dir, "stubs"))
		}
		if headers != "" {
			all = append(all, "-I"+headers)
		}
		if !stubsFirst { // gcc would ignore a folder of -I that is also one of -idirafter
			all = append(all, "-idirafter", filepath.Join(dir, "stubs"))
		}
		return append(all, c)
	}
	// A table does not say whether an enumeration has only a tag in C. If the compiler rejects the
	// enumeration's name, add a typedef.
	for try := 0; ; try++ {
		if err := os.WriteFile(c, []byte(text), 0o666); err != nil {
			return err
		}
		var out []byte
		for _, stubsFirst := range []bool{false, true} { // the second time stubs replace headers, which may not be C
			cmd := exec.CommandContext(ctx, cc, args(stubsFirst)...)
			cmd.Env = append(os.Environ(), "LC_ALL=C")
			said, err := cmd.CombinedOutput()
			if err == nil {
				return nil
			}
			if !stubsFirst {
				out = said
			}
		}
		tags := map[string]bool{}
		for _, m := range unknownType.FindAllSubmatch(out, -1) {
			tags[string(m[1])] = true
		}
		if try > 0 || len(tags) == 0 {
			return fmt.Errorf("%s does not compile %s:\n%.3000s", cc, c, out)
		}
		var names strings.Builder
		for _, tag := range slices.Sorted(maps.Keys(tags)) {
			fmt.Fprintf(&names, "typedef enum %s %s;\n", tag, tag)
		}
		text = strings.Replace(text, recorderRuntime, names.String()+recorderRuntime, 1)
	}
}

var unknownType = regexp.MustCompile(`unknown type name '(\w+)'`)

// staged returns h if it has the headers of the first implementation of the API. For another
// implementation it writes a changed copy of the header to a folder below tmp, and returns that
// folder. The copy and its types have the names that they have in the first implementation.
func (h headerFolder) staged(tmp string) (headerFolder, error) {
	lib := libraryNamed(h.library)
	if lib == nil || lib.lib == "" {
		return h, nil
	}
	d, err := symbols.Describe(lib.pkg)
	if err != nil {
		return h, err
	}
	for _, m := range d.Implementations {
		if m.Lib != lib.lib {
			continue
		}
		text, err := os.ReadFile(filepath.Join(h.dir, filepath.FromSlash(m.Header)))
		if err != nil {
			return h, err
		}
		for own, name := range m.Types {
			text = regexp.MustCompile(`\b`+own+`\b`).ReplaceAllLiteral(text, []byte(name))
		}
		h.dir = filepath.Join(tmp, "headers")
		return h, errors.Join(os.MkdirAll(h.dir, 0o777), os.WriteFile(filepath.Join(h.dir, d.Headers.Files[0]), text, 0o666))
	}
	return h, fmt.Errorf("%s has no implementation %s", lib.pkg, lib.lib)
}

// prove compiles a recorder of a release from the release's own headers, calls the recorder's
// functions in a separate process, and prints the results.
func (h headerFolder) prove(ctx context.Context, w io.Writer, tmp string) error {
	where := h.dir
	h, err := h.staged(tmp)
	if err != nil {
		return err
	}
	lib, ours, theirs, all, err := h.prepare()
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s %v", lib.name, theirs.Version)
	if err := os.MkdirAll(tmp, 0o777); err != nil {
		return err
	}
	file := filepath.Join(tmp, "librecorder.so")
	if lib.file != "" {
		file = filepath.Join(tmp, fmt.Sprintf(lib.file, theirs.Version.Major, theirs.Version.Minor, theirs.Version.Patch))
	}
	handles, err := opaque(h.dir, ours.Description, theirs)
	if err != nil {
		return err
	}
	if err := compile(ctx, tmp, lib.source(includes(ours.Description)+tagged(theirs), handles, ours.Description, theirs.Version, all), file, ours.Description, h.dir); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "-calls", h.library, h.dir, h.release, file)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, lastLines(said.String(), 30))
	}
	c := new(called)
	if err := json.Unmarshal(out.Bytes(), c); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	differing := slices.Collect(func(yield func(string) bool) {
		for i := range all {
			if len(all[i].differ) > 0 && !yield(all[i].fn.Symbol) {
				return
			}
		}
	})
	fmt.Fprintf(w, "%s: of %d functions shared with the headers in %s %d get the right arguments, %d of these although they differ, and %d are refused\n",
		name, len(all), where, len(c.Compared), len(c.Differ), len(c.Refused))
	for i := range all {
		if !slices.Contains(differing, all[i].fn.Symbol) {
			continue
		}
		what := "differs and takes what it is given"
		if slices.Contains(c.Refused, all[i].fn.Symbol) {
			what = "is refused"
		}
		fmt.Fprintf(w, "\t%s %s: %s\n", all[i].fn.Symbol, what, strings.Join(all[i].differ, "; "))
	}
	var errs []error
	for _, x := range c.Wrong {
		errs = append(errs, fmt.Errorf("%s: %s", name, x))
	}
	if len(c.Compared) == 0 {
		errs = append(errs, fmt.Errorf("%s: no function was compared", name))
	}
	return errors.Join(errs...)
}

// proveAll calls prove for headers in folders and for headers of units. It fetches the units first,
// until the context named fetching ends. It reports a unit that it cannot fetch. That is an error
// only if there are no headers at all.
func proveAll(ctx, fetching context.Context, w io.Writer, dir string, folders []headerFolder, chosen []unit) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	var absent []string
	for _, u := range chosen {
		root, err := u.fetch(fetching, dir)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			absent = append(absent, fmt.Sprintf("%s: %v", u.name, strings.ReplaceAll(err.Error(), "\n", "\n\t")))
			continue
		}
		for _, h := range u.headers {
			main := symbolsHeader(h)
			found, err := find(root, filepath.Base(main))
			if err != nil {
				return err
			}
			folders = append(folders, headerFolder{h, strings.TrimSuffix(found, "/"+main), u.name[strings.LastIndexByte(u.name, '-')+1:]})
		}
	}
	var errs []error
	for i, h := range folders {
		if err := h.prove(ctx, w, filepath.Join(dir, "recorders", fmt.Sprint(i))); err != nil {
			errs = append(errs, err)
		}
	}
	for _, a := range absent {
		fmt.Fprintln(w, "could not be had:", a)
	}
	if len(folders) == 0 {
		errs = append(errs, errors.New("no headers could be fetched"))
	}
	return errors.Join(errs...)
}

// symbolsHeader returns the name of a library's first header in #include lines.
func symbolsHeader(key string) string {
	lib := libraryNamed(key)
	d, err := symbols.Describe(lib.pkg)
	if err != nil {
		return key + ".h"
	}
	for _, m := range d.Implementations {
		if m.Lib == lib.lib && m.Header != "" {
			return m.Header
		}
	}
	return d.Headers.Files[0]
}
