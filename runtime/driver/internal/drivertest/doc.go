// Package drivertest is the suite of the tests that drivers over C libraries have in common. A
// driver runs it over a fake: a C library that records its calls, and fails where a test says so.
package drivertest
