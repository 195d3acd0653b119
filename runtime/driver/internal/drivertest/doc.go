// Package drivertest has the tests that the drivers over C libraries share. A driver runs the tests
// over a fake library, which records its calls and fails on request.
package drivertest
