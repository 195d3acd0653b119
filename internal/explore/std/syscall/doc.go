// Package syscall replaces the parts of Go's that concern threads and waiting, in rewritten
// programs.
package syscall
