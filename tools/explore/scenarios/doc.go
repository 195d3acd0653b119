// Package scenarios has small pieces of work for package gpu, on simulated devices, that tools/explore runs in many orders. Each says what must hold whatever
// the order: that everybody gets an answer, that memory is what a model of one operation after the other says, that nothing is left behind.
//
// As ordinary tests they run once each.
package scenarios
