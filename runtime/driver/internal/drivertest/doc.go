// Package drivertest has the tests that drivers over C libraries share. A driver runs them over a
// fake: a C library that records its calls, and fails on request.
package drivertest
