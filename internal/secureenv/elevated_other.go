//go:build !linux

package secureenv

// isElevated compares the identities. A program that gives its rights up before its first look at the environment is not recognized.
func isElevated() bool { return identities() }
