// Package collective lets several GPUs work as one: it moves and reduces data among devices of one
// process or of many. It uses NCCL, RCCL or the simulated GPU's own library.
//
// A communicator is a set of ranks, numbered from 0. Each rank is a device, and uses the
// communicator through a [Communicator] of its own. [NewAll] makes the Communicators of several
// devices of a process. [New] makes the Communicator of one device. Ranks of several processes find
// each other by an [ID]. One rank makes the ID, and a [Rendezvous] passes it to the others. Package
// rendezvous has implementations.
//
// An [Operation], such as [AllReduce] or [Send], names the memory that a rank sends and the memory
// that the rank fills. [Communicator.Group] makes a [gpu.Op] of one or more operations. A stream, a
// queue or a recording takes this Op like any other. Here every device of the process gets the sum
// over all devices:
//
//	group, err := gpu.OpenGroup(drv, gpu.Options{})
//	ranks, err := collective.NewAll(ctx, group.Devices(), collective.Options{Timeout: time.Minute})
//	for i, rank := range ranks {
//		x := buffers[i].All() // on rank.Device()
//		stream := streams[i]  // of rank.Device()
//		err = stream.Do(
//			gpu.Fill(x, ones),
//			rank.Group(collective.AllReduce(x, x, collective.Float32, collective.Sum())),
//		)
//	}
//
// All ranks must submit the same operations in the same order with the same sizes. But a send needs
// only a matching receive on the receiving rank. A rank waits for the other ranks, even if they
// never come, so give Options a Timeout. A communicator fails as a whole, with an [Error], because
// its ranks can go on only together. The device does not fail: close the communicator, and make a
// new one.
package collective
