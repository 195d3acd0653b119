// Package testkit has the parts that tests of several packages of the runtime share: simulated
// devices, short forms of common steps, and a dump of the work in flight for a test that has waited
// in vain. A helper of one subject stands in the test file of that subject.
//
// Only tests import it. Since it imports package gpu, tests in package gpu itself cannot.
package testkit
