// Package std has below it what stands for packages of Go's standard library in programs that tools/explore rewrites.
package std
