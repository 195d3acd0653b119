// Package rtc compiles a [driver.Source] with NVRTC or hipRTC, whose APIs have the same functions.
// The drivers choose the options and fetch the compiled image.
package rtc

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/compilelog"
)

// A Library has the functions of package nvrtc or hiprtc that Compile calls. P is the type of a
// program.
type Library[P any] interface {
	CreateProgram(src, name string, headers, includeNames []*byte) (P, error)
	DestroyProgram(*P) error
	AddNameExpression(p P, expression string) error
	CompileProgram(p P, options []*byte) error
	GetProgramLogSize(P) (uint64, error)
	GetProgramLog(P, []byte) error
	GetLoweredName(p P, expression string) (string, error)
}

// Compile compiles a source with options, which replace src.Options. The function output fetches
// the image of the compiled program. The returned code has the log even if the source does not
// compile.
func Compile[P any](lib Library[P], src *driver.Source, options []string, output func(P) ([]byte, error)) (code driver.Code, err error) {
	names := slices.Sorted(maps.Keys(src.Headers))
	var headers []string
	for _, name := range names {
		headers = append(headers, src.Headers[name])
	}
	includeNames, err := dl.CStrings(names...)
	if err != nil {
		return code, fmt.Errorf("names of headers: %w", err)
	}
	headerTexts, err := dl.CStrings(headers...)
	if err != nil {
		return code, fmt.Errorf("headers: %w", err)
	}
	optionTexts, err := dl.CStrings(options...)
	if err != nil {
		return code, fmt.Errorf("options: %w", err)
	}
	p, err := lib.CreateProgram(src.Text, src.Name, headerTexts, includeNames)
	if err != nil {
		return code, err
	}
	defer lib.DestroyProgram(&p)
	for _, name := range src.Names {
		if err := lib.AddNameExpression(p, name); err != nil {
			return code, fmt.Errorf("name expression %q: %w", name, err)
		}
	}
	err = lib.CompileProgram(p, optionTexts)
	if log, logErr := Fetch(p, lib.GetProgramLogSize, lib.GetProgramLog); logErr == nil {
		code.Log = Text(log)
	}
	if err != nil {
		return code, err
	}
	code.Names = map[string]string{}
	for _, name := range src.Names {
		lowered, err := lib.GetLoweredName(p, name)
		if err != nil {
			return code, fmt.Errorf("name expression %q: %w", name, err)
		}
		code.Names[name] = lowered
	}
	code.Image, err = output(p)
	return code, err
}

// Fetch returns a result of a program. size returns the length of the result, and get copies the
// content of the result.
func Fetch[P any](p P, size func(P) (uint64, error), get func(P, []byte) error) ([]byte, error) {
	n, err := size(p)
	if err != nil || n == 0 {
		return nil, err
	}
	b := make([]byte, n)
	if err := get(p, b); err != nil {
		return nil, err
	}
	return b, nil
}

// Text returns a log as valid UTF-8, without the NUL that ends the log and the white space around
// the text.
func Text(log []byte) string {
	return strings.TrimSpace(strings.TrimRight(strings.ToValidUTF8(string(log), "?"), "\x00"))
}

// Error makes the error of a source that did not compile.
func Error(by driver.CompilerInfo, source, log string, err error) *driver.CompileError {
	return &driver.CompileError{Source: source, Compiler: strings.TrimSpace(by.Name + " " + by.Version), Target: by.Target,
		Messages: compilelog.Parse(log), Log: log, Err: err}
}

// Build returns a text that distinguishes library files of the same version. The text has the name
// of the file, without symbolic links, and the file's size and time. The name may have more digits
// than the version: libnvrtc.so.12.4.127.
func Build(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	fi, err := os.Stat(path)
	if err != nil {
		return filepath.Base(path)
	}
	return fmt.Sprintf("%s %d %d", filepath.Base(path), fi.Size(), fi.ModTime().UnixNano())
}

// Options returns the option arch and then the source's options. It leaves out arch if the source
// has an option with one of the names, alone or with "=" and a value.
func Options(src *driver.Source, arch string, names ...string) []string {
	named := func(option string) bool {
		name, _, _ := strings.Cut(option, "=")
		return slices.Contains(names, name)
	}
	if slices.ContainsFunc(src.Options, named) {
		return src.Options
	}
	return append([]string{arch}, src.Options...)
}
