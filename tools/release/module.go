package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// module makes the zip of the module at the commit that is checked out, and serves it as a module
// proxy does. From that proxy it builds a program that imports all packages, and installs the
// module's own programs. gpuinfo must print the version.
func (r *release) module(ctx context.Context) error {
	v := module.Version{Path: r.path, Version: r.version}
	temp, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if r.zip, err = r.archive(ctx, v, filepath.Join(temp, "tree")); err != nil {
		return fmt.Errorf("the zip of the module: %w", err)
	}
	proxy, err := r.proxy(v)
	if err != nil {
		return err
	}
	defer proxy.Close()
	settings, err := r.command(ctx, r.root, nil, "go", "env", "GOPROXY", "GOMODCACHE")
	if err != nil {
		return err
	}
	upstream, cache, _ := strings.Cut(strings.TrimSpace(settings), "\n")
	// The commands use a new module cache, which lacks the module. They take its dependencies from
	// the machine's own cache, whose files the check verify compares with their hashes, and from
	// the usual proxy what that cache lacks.
	env := []string{
		"GOMODCACHE=" + filepath.Join(temp, "mod"), "GOBIN=" + filepath.Join(temp, "bin"),
		"GOPROXY=" + proxy.URL + ",file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download")) + "," + upstream,
		"GONOSUMDB=" + r.path, "GONOPROXY=none", "GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath", "GOWORK=off", "CGO_ENABLED=0",
	}
	if _, err := r.command(ctx, temp, env, "go", "mod", "download", v.String()); err != nil {
		return err
	}
	libraries, programs, err := r.packages(ctx)
	if err != nil {
		return err
	}
	var errs []error
	if err := r.buildUser(ctx, filepath.Join(temp, "user"), env, libraries); err != nil {
		errs = append(errs, err)
	}
	for i, p := range programs {
		programs[i] = p + "@" + r.version
	}
	if _, err := r.command(ctx, temp, env, "go", append([]string{"install"}, programs...)...); err != nil {
		return errors.Join(append(errs, err)...)
	}
	gpuinfo := filepath.Join(temp, "bin", "gpuinfo")
	if runtime.GOOS == "windows" {
		gpuinfo += ".exe"
	}
	said, err := r.command(ctx, temp, nil, gpuinfo, "-version")
	if err == nil && !strings.Contains(said, r.version+",") {
		err = fmt.Errorf("gpuinfo -version prints %q, and the version is %s", strings.TrimSpace(said), r.version)
	}
	return errors.Join(append(errs, err)...)
}

// archive makes the zip of the module from the files of the commit. dir is a new folder for them.
func (r *release) archive(ctx context.Context, v module.Version, dir string) ([]byte, error) {
	file := dir + ".zip"
	// Keep the line ends of the repository. The user's settings must not change them.
	if _, err := r.command(ctx, r.root, nil, "git", "-c", "core.autocrlf=input", "-c", "core.eol=lf", "archive", "--format=zip", "--output="+file, "HEAD"); err != nil {
		return nil, err
	}
	tree, err := zip.OpenReader(file)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	if err := os.CopyFS(dir, tree); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = modzip.CreateFromDir(&b, v, dir)
	return b.Bytes(), err
}

// proxy starts a module proxy that serves the module.
func (r *release) proxy(v module.Version) (*httptest.Server, error) {
	escaped, err := module.EscapePath(v.Path)
	if err != nil {
		return nil, err
	}
	info, err := json.Marshal(map[string]string{"Version": v.Version})
	if err != nil {
		return nil, err
	}
	base := "/" + escaped + "/@v/"
	files := map[string][]byte{
		base + "list":              []byte(v.Version + "\n"),
		base + v.Version + ".info": info,
		base + v.Version + ".mod":  r.goMod.text,
		base + v.Version + ".zip":  r.zip,
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if text, ok := files[req.URL.Path]; ok {
			w.Write(text)
			return
		}
		http.NotFound(w, req)
	})), nil
}

// packages lists the packages that other modules may import, and the programs.
func (r *release) packages(ctx context.Context) (libraries, programs []string, err error) {
	out, err := r.command(ctx, r.root, []string{"CGO_ENABLED=0"}, "go", "list", "-f", "{{.Name}} {{.ImportPath}}", "./...")
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(out) {
		name, importPath, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "main":
			programs = append(programs, importPath)
		case !strings.Contains("/"+importPath+"/", "/internal/"):
			libraries = append(libraries, importPath)
		}
	}
	if len(libraries) == 0 || len(programs) == 0 {
		return nil, nil, fmt.Errorf("the module has %d packages to import and %d programs", len(libraries), len(programs))
	}
	return libraries, programs, nil
}

// buildUser makes another module, with a program that imports the packages of this module, and
// builds the program.
func (r *release) buildUser(ctx context.Context, dir string, env, packages []string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n")
	for _, p := range packages {
		fmt.Fprintf(&b, "\t_ %q\n", p)
	}
	b.WriteString(")\n\nfunc main() {}\n")
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	get := []string{"get"}
	for _, p := range packages {
		get = append(get, p+"@"+r.version)
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/user"},
		get,
		{"build", "-o", path.Base(dir) + ".exe", "."},
	} {
		if _, err := r.command(ctx, dir, env, "go", args...); err != nil {
			return err
		}
	}
	return nil
}
