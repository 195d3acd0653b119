// Package examples holds example programs. Each folder has everything that its program needs, and
// builds when it is copied into a module of its own. The README of the module says what each shows.
package examples
