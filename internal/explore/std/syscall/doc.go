// Package syscall stands in for Go's package syscall in rewritten programs. It replaces the
// functions that concern threads and waiting.
package syscall
