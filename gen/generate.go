package gen

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	. "github.com/dave/jennifer/jen"

	"github.com/puregpu/puregpu/symbols"
)

// Libraries lists the embedded libraries.
func Libraries() []string { return symbols.Names() }

// Generate returns the generated files of a library's binding package, keyed by name.
func Generate(lib *symbols.Library) (map[string][]byte, error) {
	p, err := lower(lib)
	if err != nil {
		return nil, err
	}
	return p.generate()
}

// load lowers one of the embedded libraries.
func load(library string) (*pkg, error) {
	lib, err := symbols.Load(library)
	if err != nil {
		return nil, err
	}
	return lower(lib)
}

func (p *pkg) generate() (map[string][]byte, error) {
	result, err := p.emitResult()
	if err != nil {
		return nil, err
	}
	library, err := p.emitLibrary()
	if err != nil {
		return nil, err
	}
	spec := p.emitSpec()
	if err := p.emitGrown(spec); err != nil {
		return nil, err
	}
	files := p.emitNames()
	maps.Copy(files, map[string]*File{
		"zconst.go": p.emitConstants(), "zfuncs.go": p.emitFunctions(), "zlayout.go": p.emitLayout(), "zlibrary.go": library,
		"zsymbols.go": spec, "ztypes.go": p.emitTypes(),
	})
	if result != nil {
		files["zresult.go"] = result
	}
	out := map[string][]byte{}
	for name, f := range files {
		if out[name], err = render(f); err != nil {
			return nil, fmt.Errorf("gen: %s/%s: %w", p.desc.Library, name, err)
		}
	}
	return out, nil
}

// GenerateWithProof returns the generated files and the files of a test that proves the package's
// ABI.
func GenerateWithProof(lib *symbols.Library) (map[string][]byte, error) {
	p, err := lower(lib)
	if err != nil {
		return nil, err
	}
	files, err := p.generate()
	if err != nil {
		return nil, err
	}
	proof, err := p.emitProof()
	maps.Copy(files, proof)
	return files, err
}

// Run generates the files of a library's package in dir and returns the names of the files that
// differ. If write is set, Run also writes the files; otherwise it only compares.
func Run(dir string, lib *symbols.Library, write bool) ([]string, error) {
	files, err := Generate(lib)
	if err != nil {
		return nil, err
	}
	return Write(dir, files, write)
}

// Write compares files with the folder dir, and returns the names of the files that differ.
// If write is set, Write also writes the changed files into dir.
func Write(dir string, files map[string][]byte, write bool) ([]string, error) {
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		old, err := os.ReadFile(path)
		if err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		changed = append(changed, path)
		if write {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return nil, err
			}
			if err := os.WriteFile(path, files[name], 0o644); err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}
