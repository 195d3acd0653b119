// Package rendezvous finds the ranks of a run's processes, and exchanges ids among them. It works
// with torchrun, Open MPI, MPICH and Intel MPI, Slurm and Kubernetes. Its types implement
// collective.Rendezvous without importing package collective.
//
// [FromEnv] finds the place of a process in its environment. These types give data of rank 0 to all
// ranks:
//
//   - [TCP] over a connection to rank 0, at an address that all ranks know, such as torchrun's;
//   - [File] through files in a folder that all ranks share, on one machine or on a network;
//   - [NCCLCommID] without an exchange: the variable NCCL_COMM_ID gives every rank the same id;
//   - [Func] by a function of the program, over the program's own store.
//
// In an exchange by [TCP] or [File] all ranks take part. When a call of Share succeeds, all other
// ranks have the data, or are just receiving it. So a name may be used again. Files of an earlier
// run are never taken as an answer. If a rank is missing, the other ranks wait until their contexts
// end.
//
// Anyone with an id can take part in its communicator. [File] uses only a folder of the same user.
// With [TCP] ranks prove to each other that they know a secret, if there is one
// (PUREGPU_RENDEZVOUS_SECRET, the same on all ranks). Without a secret any process that can connect
// may take part. Nothing is encrypted, and neither is NCCL's traffic.
package rendezvous
