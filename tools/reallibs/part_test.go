package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPackageFiles(t *testing.T) {
	got, err := packageFiles("'http://deb.example/pool/a_1-1_amd64.deb' a_1-1_amd64.deb 113571560 SHA256:260d\n'http://deb.example/pool/b_1%7e2_amd64.deb' b_1~2_amd64.deb 26 SHA256:59\n")
	want := []packageFile{{"http://deb.example/pool/a_1-1_amd64.deb", 113571560}, {"http://deb.example/pool/b_1%7e2_amd64.deb", 26}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, said := range []string{"", "N: nothing\n", "'http://deb.example/a.deb' a.deb many SHA256:0\n"} {
		if got, err := packageFiles(said); err == nil {
			t.Errorf("%q gives %v and no error", said, got)
		}
	}
}

// TestOtherHeadersAreNotTaken checks that fetchHeaders refuses headers from which no symbol table
// was made, and unpacks no libraries.
func TestOtherHeadersAreNotTaken(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("no dpkg-deb")
	}
	tree := t.TempDir()
	for name, text := range map[string]string{
		"DEBIAN/control":           "Package: libnccl-dev\nVersion: 2.99\nArchitecture: amd64\nMaintainer: Nobody <nobody@example.org>\nDescription: a test\n",
		"usr/include/nccl.h":       "#define NCCL_MAJOR 2\n",
		"usr/lib/libnccl_static.a": strings.Repeat("library", 100),
	} {
		file := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	deb := filepath.Join(t.TempDir(), "nccl.deb")
	if out, err := exec.Command("dpkg-deb", "--build", "--root-owner-group", tree, deb).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Range")
		http.ServeFile(w, r, deb)
	}))
	defer server.Close()
	root := filepath.Join(t.TempDir(), "root")
	err := fetchHeaders(t.Context(), []packageFile{{server.URL + "/nccl.deb", part + 1}}, root, []string{"nccl"})
	if want := "nccl.h is not one of the headers from which the symbol table of nccl was made"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if asked != "bytes=0-20971519" {
		t.Errorf("it asked for the range %q", asked)
	}
	if _, err := os.Stat(filepath.Join(root, "usr/include/nccl.h")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(root, "usr/lib")); err == nil {
		t.Error("it unpacks libraries")
	}
	server.Config.Handler = http.NotFoundHandler()
	if err := fetchHeaders(t.Context(), []packageFile{{server.URL + "/nccl.deb", 100}}, root, []string{"nccl"}); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a package that is not there: %v", err)
	}
}
