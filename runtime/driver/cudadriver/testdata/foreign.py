"""The other rank of TestGPUForeignRank: joins a communicator with a Go program, by one call of NCCL's, and does every operation with it.

usage: foreign.py torch|nccl LIBRARY COUNT

It is rank 1 of 2, on device 1, and makes no communicator but this one. It reads the unique id, in hexadecimal digits, prints "joined", and then does
for each line an operation on COUNT elements of 32 bits, checks what it has got, and prints the line again. Element i of what rank r gives is
10007 * (r + 1) + i. The exit status is 77 where a package is missing, or an operation that it has no function for is answered "none".
"""

import ctypes
import sys

INT32, SUM = 2, 0


def given(rank, index):
    return 10007 * (rank + 1) + index


class NCCL:
    """Calls of NCCL and of CUDA's driver without a package."""

    def __init__(self, library, count):
        self.nccl, self.cuda, self.count = ctypes.CDLL(library), ctypes.CDLL("libcuda.so.1"), count
        self.context, self.stream, self.comm = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.source, self.target = ctypes.c_uint64(), ctypes.c_uint64()
        self.driver("cuInit", ctypes.c_uint(0))
        self.driver("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), ctypes.c_int(1))
        self.driver("cuCtxSetCurrent", self.context)
        self.driver("cuStreamCreate", ctypes.byref(self.stream), ctypes.c_uint(1))
        size = ctypes.c_size_t(8 * count)
        self.driver("cuMemAlloc_v2", ctypes.byref(self.source), size)
        self.driver("cuMemAlloc_v2", ctypes.byref(self.target), size)
        host = (ctypes.c_int32 * (2 * count))(*(given(1, i) for i in range(2 * count)))
        self.driver("cuMemcpyHtoD_v2", self.source, host, size)

    def driver(self, name, *args):
        result = getattr(self.cuda, name)(*args)
        if result:
            raise RuntimeError(f"{name} returned {result}")

    def call(self, name, *args):
        result = getattr(self.nccl, name)(*args)
        if result:
            raise RuntimeError(f"{name} returned {result}")

    def join(self, unique):
        class Id(ctypes.Structure):
            _fields_ = [("bytes", ctypes.c_ubyte * 128)]

        self.call("ncclCommInitRank", ctypes.byref(self.comm), ctypes.c_int(2), Id((ctypes.c_ubyte * 128)(*unique)), ctypes.c_int(1))

    def send(self, at, peer):
        self.call("ncclSend", ctypes.c_uint64(self.source.value + 4 * at), ctypes.c_size_t(self.count), ctypes.c_int(INT32), ctypes.c_int(peer), self.comm, self.stream)

    def receive(self, at, peer):
        self.call("ncclRecv", ctypes.c_uint64(self.target.value + 4 * at), ctypes.c_size_t(self.count), ctypes.c_int(INT32), ctypes.c_int(peer), self.comm, self.stream)

    def group(self, *messages):
        self.call("ncclGroupStart")
        for method, at, peer in messages:
            method(at, peer)
        self.call("ncclGroupEnd")

    def do(self, what):
        """Returns how many elements have come."""
        n, root, count = self.count, ctypes.c_int(1), ctypes.c_size_t(self.count)
        src, dst, end = self.source, self.target, (self.comm, self.stream)
        kind, op = ctypes.c_int(INT32), ctypes.c_int(SUM)
        self.driver("cuMemsetD32_v2", dst, ctypes.c_uint(0), ctypes.c_size_t(2 * n))
        if what == "all-reduce":
            self.call("ncclAllReduce", src, dst, count, kind, op, *end)
        elif what == "reduce":
            self.call("ncclReduce", src, dst, count, kind, op, root, *end)
        elif what == "broadcast":
            self.call("ncclBroadcast", src, dst, count, kind, ctypes.c_int(0), *end)
        elif what == "all-gather":
            self.call("ncclAllGather", src, dst, count, kind, *end)
        elif what == "reduce-scatter":
            self.call("ncclReduceScatter", src, dst, count, kind, op, *end)
        elif what == "all-to-all":
            if hasattr(self.nccl, "ncclAlltoAll"):
                self.call("ncclAlltoAll", src, dst, count, kind, *end)
            else:
                self.group((self.send, 0, 0), (self.receive, 0, 0), (self.send, n, 1), (self.receive, n, 1))
        elif what == "gather":
            if hasattr(self.nccl, "ncclGather"):
                self.call("ncclGather", src, dst, count, kind, root, *end)
            else:
                self.group((self.receive, 0, 0), (self.send, 0, 1), (self.receive, n, 1))
        elif what == "scatter":
            if hasattr(self.nccl, "ncclScatter"):
                self.call("ncclScatter", src, dst, count, kind, ctypes.c_int(0), *end)
            else:
                self.receive(0, 0)
        elif what == "receive":
            self.receive(0, 0)
        elif what == "send":
            self.send(0, 0)
        else:
            raise ValueError(what)

    def come(self):
        self.driver("cuStreamSynchronize", self.stream)
        host = (ctypes.c_int32 * (2 * self.count))()
        self.driver("cuMemcpyDtoH_v2", host, self.target, ctypes.c_size_t(8 * self.count))
        return list(host)

    def leave(self):
        self.call("ncclCommDestroy", self.comm)


class Torch:
    """PyTorch's functions, of which there is not one for every operation."""

    def __init__(self, library, count):
        import torch
        import torch.cuda.nccl

        if not torch.cuda.is_available() or torch.cuda.device_count() < 2:
            raise ImportError("PyTorch without two devices")
        torch.cuda.set_device(1)
        self.torch, self.nccl, self.count = torch, torch.cuda.nccl, count
        try:
            self.nccl.init_rank(1, self.nccl.unique_id(), 0)
        except SystemError as error:  # as of Python 3.10, where PyTorch was built for an older one's way of passing bytes
            raise ImportError(f"PyTorch {torch.__version__} cannot take an id: {error}")
        self.source = torch.tensor([given(1, i) for i in range(2 * count)], dtype=torch.int32, device="cuda:1")
        self.target = torch.zeros(2 * count, dtype=torch.int32, device="cuda:1")

    def join(self, unique):
        self.comm = self.nccl.init_rank(2, unique, 1)

    def do(self, what):
        n = self.count
        self.target.zero_()
        src, whole, dst, both = self.source[:n], self.source, self.target[:n], self.target
        if what == "all-reduce":
            self.nccl.all_reduce([src], [dst], comms=[self.comm])
        elif what == "broadcast":
            self.nccl.broadcast([dst], root=0, comms=[self.comm])
        elif what == "all-gather":
            self.nccl.all_gather([src], [both], comms=[self.comm])
        elif what == "reduce-scatter":
            self.nccl.reduce_scatter([whole], [dst], comms=[self.comm])
        else:
            return "none"

    def come(self):
        self.torch.cuda.synchronize()
        return self.target.tolist()

    def leave(self):
        del self.comm


def wanted(what, n):
    """Returns what rank 1 is to have."""
    both = lambda i: given(0, i) + given(1, i)
    one = {
        "all-reduce": both,
        "reduce": both,
        "broadcast": lambda i: given(0, i),
        "reduce-scatter": lambda i: both(n + i),
        "scatter": lambda i: given(0, n + i),
        "receive": lambda i: given(0, i),
        "send": lambda i: 0,
    }
    two = {"all-gather": given, "gather": given, "all-to-all": lambda r, i: given(r, n + i)}
    if what in one:
        return [one[what](i) for i in range(n)] + [0] * n
    return [two[what](r, i) for r in range(2) for i in range(n)]


def main():
    count = int(sys.argv[3])
    try:
        side = {"torch": Torch, "nccl": NCCL}[sys.argv[1]](sys.argv[2], count)
    except ImportError as missing:
        print(missing, file=sys.stderr)
        sys.exit(77)
    print("here", flush=True)
    side.join(bytes.fromhex(sys.stdin.readline().strip()))
    print("joined", flush=True)
    for line in sys.stdin:
        what = line.strip()
        if what == "leave":
            side.leave()
            print("left", flush=True)
            return
        if side.do(what) == "none":
            print("none", flush=True)
            continue
        got, want = side.come(), wanted(what, count)
        if got != want:
            at = next(i for i in range(2 * count) if got[i] != want[i])
            raise AssertionError(f"{what}: element {at} is {got[at]}, and was to be {want[at]}")
        print(what, flush=True)


main()
