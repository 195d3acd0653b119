package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/puregpu/puregpu/internal/cproof"
	"github.com/puregpu/puregpu/symbols"
)

// proofFile is the path of the record of the proof, relative to the binding's folder.
const proofFile = "testdata/zproof.json"

// prove compares the table with the headers by a C compiler, and returns the record of the proof.
// Without a compiler or headers it returns the old record if that is of the same table, else nil.
// If -cc names a compiler that is missing, prove returns an error.
func (b *binding) prove(lib *symbols.Library, table []byte) ([]byte, error) {
	old, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(proofFile)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	before := &cproof.Record{}
	if old != nil {
		if before, err = cproof.Decode(old); err != nil {
			return nil, err
		}
	}
	ctx := context.Background()
	cc, err := cproof.Find(ctx, b.compiler)
	switch {
	case errors.Is(err, cproof.ErrNoCompiler) && b.compiler == "" || err == nil && len(b.dirs) == 0:
		if before.Holds(table) {
			return old, nil // proven earlier, on a machine with the headers and a compiler
		}
		why := "there are no headers"
		if err != nil {
			why = err.Error()
		}
		b.unproven(why)
		return nil, nil
	case err != nil:
		return nil, err
	}
	proof := &cproof.Record{Table: filepath.Base(b.table), SHA256: cproof.Sum(table)}
	align := map[string]int{}
	for _, n := range lib.Overlay.Types {
		align[n.Name] = n.Align
	}
	misfits := lib.Misfits()
	var errs []error
	for i, dir := range b.dirs {
		t, v := lib.Table, lib.Version
		if len(lib.Releases) > 0 { // the newest release is first
			v = lib.Releases[len(lib.Releases)-1-i]
			t = lib.At(v)
			t.Functions = slices.DeleteFunc(t.Functions, func(f symbols.Function) bool { // no call reaches it in that release
				return slices.ContainsFunc(misfits[f.Symbol], func(m symbols.Misfit) bool {
					return m.From.Compare(v) <= 0 && (m.To.IsZero() || v.Compare(m.To) < 0)
				})
			})
		}
		r, err := cproof.Prove(ctx, t, cproof.Input{Compiler: cc, Description: lib.Description, Dirs: append([]string{dir}, b.further...), Align: align, Union: len(b.dirs) > 1, Older: v != lib.Version})
		if no, ok := errors.AsType[*cproof.HeadersError](err); ok {
			b.unproven(no.Error())
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if err := r.Err(); err != nil {
			err = fmt.Errorf("the table is not what %s makes of the headers in %s:\n%w", cc.Name, dir, err)
			errs = append(errs, err)
		}
		proof.Releases = append(proof.Releases, r.Release(v, cc))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if before.Same(proof) {
		return old, nil
	}
	return proof.Encode(), nil
}

// unproven reports that nothing was proven.
func (b *binding) unproven(why string) {
	b.report("NOTHING IS PROVEN: " + why + "\nNo C compiler has compared the table with the headers. The package's test fails until one has.")
}
