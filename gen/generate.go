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

// Libraries lists what can be generated.
func Libraries() []string { return symbols.Names() }

// Generate returns the generated files of a binding package, by their paths from the module's root.
func Generate(library string) (map[string][]byte, error) {
	p, err := load(library)
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
	conf, err := configFor(library)
	if err != nil {
		return nil, err
	}
	return lower(conf, lib)
}

func (p *pkg) generate() (map[string][]byte, error) {
	result, err := p.emitResult()
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for name, f := range map[string]*File{
		"zconst.go": p.emitConstants(), "zfuncs.go": p.emitFunctions(), "zlayout.go": p.emitLayout(),
		"zresult.go": result, "zsymbols.go": p.emitSpec(), "ztypes.go": p.emitTypes(),
	} {
		if out[p.conf.pkg+"/"+name], err = render(f); err != nil {
			return nil, fmt.Errorf("gen: %s/%s: %w", p.conf.pkg, name, err)
		}
	}
	return out, nil
}

// Run generates a library's files under root. With write it writes those that changed; without it only compares. It
// returns the names of the files that differ.
func Run(root, library string, write bool) ([]string, error) {
	files, err := Generate(library)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(root, filepath.FromSlash(name))
		old, err := os.ReadFile(path)
		if err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		changed = append(changed, name)
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
