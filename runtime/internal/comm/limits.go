package comm

import "github.com/puregpu/puregpu/runtime/driver"

// limits are the limits of a native communicator. The zero value has none.
type limits struct {
	of   driver.CommLimits // nil if the driver does not implement it
	comm driver.Comm       // kept after its destruction: the methods of CommLimits return nil then
}

// checkOp returns why the library would refuse an operation, or nil.
func (l *limits) checkOp(op driver.CommOp) error {
	if l.of == nil {
		return nil
	}
	return l.of.CheckOp(l.comm, op)
}

// checkShrink returns why the library would refuse to shrink the communicator, or nil.
func (l *limits) checkShrink() error {
	if l.of == nil {
		return nil
	}
	return l.of.CheckShrink(l.comm)
}
