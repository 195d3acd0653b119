// Package work says what a piece of work for a device is, and translates it for the driver.
package work
