// Package testkit has helpers that tests of several packages of the runtime share: simulated
// devices, short forms of common steps, and a dump of the work in flight for a test that hangs. A
// helper for one subject is in that subject's test file.
//
// Only tests import testkit. It imports package gpu, so tests in package gpu itself cannot use it.
package testkit
