package driver

import "time"

// A NodeTime says when a device ran a node of a graph.
type NodeTime struct {
	Node         uint64 // one of the node's numbers from NodeIDs, or 0 if the node is unknown
	Launch       uint64 // the launch number given to BeginLaunch, or 0 if that number is unknown
	Kernel       string // the kernel's name, or "" if it is unknown
	Begun, Ended time.Time
}

// A NodeTimer measures when nodes of graphs run. A device may implement it. A profiler's library
// may implement it for the devices of another driver.
type NodeTimer interface {
	// NodeIDs appends the numbers that NodeTimes uses for a node. It is called before the node's
	// graph is instantiated. A child node has the numbers of the nodes in its graph. No number is
	// used twice. If the timer does not know the node's numbers, NodeIDs appends none.
	NodeIDs(to []uint64, n Node) []uint64
	// BeginLaunch sets the launch number of the graphs that the calling thread launches in a
	// stream, until EndLaunch. The number is not 0.
	BeginLaunch(s Stream, launch uint64)
	// EndLaunch ends the effect of BeginLaunch. It is called on the thread that called BeginLaunch.
	EndLaunch(s Stream)
	// NodeTimes appends the times that have become known since the previous call. If last is true,
	// NodeTimes first waits for the times of all work that the device has completed. Times of one
	// launch may come in several calls.
	NodeTimes(to []NodeTime, last bool) []NodeTime
}
