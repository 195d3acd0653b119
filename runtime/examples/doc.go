// Package examples holds example programs. Each folder is complete, and builds when copied into
// another module. README.md lists the examples.
package examples
