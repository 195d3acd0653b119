// Package std holds the packages that replace those of Go's standard library in programs that
// tools/explore rewrites.
package std
