// Package drivertest has the tests that the drivers over C libraries share. A driver runs them over
// a fake C library, which records the driver's calls and fails on request.
package drivertest
