// Package rendezvous tells the processes of a run which ranks they are and passes ids among them, with what people start
// their programs with already: torchrun, Open MPI, MPICH and Intel MPI, Slurm, Kubernetes. Its types serve as a
// gpu.Rendezvous, and need nothing of package gpu.
//
// [FromEnv] finds the place of a process in its environment. The rest pass what rank 0 has to all others:
//
//   - [TCP] over a connection to rank 0, at an address that all know: torchrun gives one;
//   - [File] through files in a folder that all share, of one machine or of a network;
//   - [NCCLCommID] not at all, where the variable NCCL_COMM_ID makes every rank come to the same id by itself;
//   - [Func] by a function of the program's, over a store that it has.
//
// All take part in each exchange, and it is over for all at once: who leaves it knows that the others have what was passed, or
// are just getting it. So the same name may be used again, and what an earlier run has left behind is never taken for an
// answer. One that does not come makes the others wait until their contexts end.
//
// Whoever has an id can take part in the communicator that is made of it. [File] uses only a folder of
// the user's own. With [TCP] ranks prove to each other that they know a secret, if there is one:
// PUREGPU_RENDEZVOUS_SECRET, the same on all ranks. Without it the port is for those who are trusted.
// Nothing is encrypted, and neither is the traffic of NCCL.
package rendezvous
