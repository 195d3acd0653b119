package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// part is the number of bytes that are fetched of a large package. In a package headers precede
// libraries, and in CUDA's packages all headers are within this part.
const part = 20 << 20

// A packageFile is a package in Debian's pool.
type packageFile struct {
	address string
	size    int64
}

// packageFiles reads the output of apt-get download --print-uris: 'ADDRESS' FILE BYTES SHA256:SUM.
func packageFiles(said string) ([]packageFile, error) {
	var out []packageFile
	for line := range strings.Lines(said) {
		f := strings.Fields(line)
		if len(f) < 3 || !strings.HasPrefix(f[0], "'") {
			continue
		}
		size, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("apt-get says %q: %w", strings.TrimSpace(line), err)
		}
		out = append(out, packageFile{strings.Trim(f[0], "'"), size})
	}
	if len(out) == 0 {
		return nil, errors.New("apt-get listed no package")
	}
	return out, nil
}

// fetchHeaders unpacks headers from packages. Of a large package it fetches only the beginning,
// which has no checksum. So fetchHeaders fails unless the symbol tables of the libraries were made
// from these headers.
func fetchHeaders(ctx context.Context, files []packageFile, root string, libraries []string) error {
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o777); err != nil {
		return err
	}
	for _, f := range files {
		if err := f.fetchHeaders(ctx, root); err != nil {
			return fmt.Errorf("%s: %w", f.address, err)
		}
	}
	for _, key := range libraries {
		if err := known(root, key); err != nil {
			return err
		}
	}
	return nil
}

func (f packageFile) fetchHeaders(ctx context.Context, root string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.address, nil)
	if err != nil {
		return err
	}
	if f.size > part {
		request.Header.Set("Range", fmt.Sprintf("bytes=0-%d", part-1))
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusPartialContent {
		return errors.New(answer.Status)
	}
	deb := filepath.Join(filepath.Dir(root), "part.deb")
	defer os.Remove(deb)
	w, err := os.Create(deb)
	if err != nil {
		return err
	}
	// A server that ignores the range sends the whole file.
	_, err = io.Copy(w, io.LimitReader(answer.Body, part))
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	// If the file is only a part, both programs report at their end that the input ends early.
	cmd := exec.CommandContext(ctx, "sh", "-c", `dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --wildcards './usr/include*'`, "sh", deb, root)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil && f.size <= part {
		return fmt.Errorf("unpacking: %w: %s", err, lastLines(said.String(), 3))
	}
	return nil
}

// known returns an error unless the library's table was made from the headers below root.
func known(root, key string) error {
	lib, err := symbols.Load(libraryNamed(key).pkg)
	if err != nil {
		return err
	}
	d := lib.Description
	main := symbolsHeader(key)
	at, err := find(root, path.Base(main))
	if err != nil {
		return err
	}
	dir := strings.TrimSuffix(at, "/"+main)
	names := slices.DeleteFunc(slices.Clone(d.Headers.Files), func(name string) bool {
		_, stub := d.Headers.Stubs[name]
		_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		return stub || err != nil // an older release may have only the first header
	})
	if name := d.Headers.Version.Header; name != "" {
		names = append(names, name)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		if !slices.ContainsFunc(lib.Headers, func(h symbols.Header) bool {
			return h.SHA256 == hex.EncodeToString(sum[:]) && path.Base(h.Name) == path.Base(name)
		}) {
			return fmt.Errorf("%s is not one of the headers from which the symbol table of %s was made", name, key)
		}
	}
	return nil
}
