package driver

import "time"

// A NodeTime says when a device ran a node of a graph.
type NodeTime struct {
	Node         uint64 // one of the numbers of NodeIDs, or 0 if it is unknown
	Launch       uint64 // the number of BeginLaunch, or 0 if it is unknown
	Kernel       string // the kernel's name, if it is known
	Begun, Ended time.Time
}

// A NodeTimer finds when nodes of graphs ran. A device may be one. A library for profilers may be
// one for another device.
type NodeTimer interface {
	// NodeIDs appends the numbers that a node has in NodeTimes. It is called before the node's
	// graph is instantiated. A child node has the numbers of its graph's nodes. A number is used
	// once only. If the timer knows no number, it appends none.
	NodeIDs(to []uint64, n Node) []uint64
	// BeginLaunch gives the graphs that the calling thread launches in a stream a number, until
	// EndLaunch. The number is not 0.
	BeginLaunch(s Stream, launch uint64)
	// EndLaunch ends BeginLaunch. The same thread calls it.
	EndLaunch(s Stream)
	// NodeTimes appends the times that have become known since the last call. If last is set, it
	// first waits for the times of all work that the device has done. The times of one launch may
	// come from several calls.
	NodeTimes(to []NodeTime, last bool) []NodeTime
}
