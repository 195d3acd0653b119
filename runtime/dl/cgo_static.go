//go:build linux && (amd64 || arm64) && !nogpu && puregpu_static && cgo

package dl

// With cgo a program is linked with a C library, and needs the loader of this C library.
var _ = the_build_tag_puregpu_static_needs_CGO_ENABLED_0
