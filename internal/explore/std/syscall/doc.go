// Package syscall stands for Go's in rewritten programs, as far as threads and waiting go.
package syscall
