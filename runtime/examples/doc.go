// Package examples holds example programs. Each folder has everything that its program needs, and
// builds when it is copied into a module of its own. README.md lists what each one shows.
package examples
