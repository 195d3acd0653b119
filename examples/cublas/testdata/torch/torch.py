# A PyTorch for the test of examples/cublas: matrices of bfloat16 in the host's memory, and the fake cuBLAS loaded as the real one would be.

import ctypes
import os
import struct
import types

__version__ = "9.9.9"
bfloat16 = "bfloat16"
ctypes.CDLL(os.environ["FAKE_CUBLAS"])
cuda = types.SimpleNamespace(is_available=lambda: True, synchronize=lambda: None, get_device_name=lambda: "Fake GPU")


def number(u):
    return struct.unpack("<f", struct.pack("<I", u << 16))[0]


def narrow(x):
    u = struct.unpack("<I", struct.pack("<f", x))[0]
    return (u + 0x7FFF + (u >> 16 & 1)) >> 16


class Tensor:
    def __init__(self, words, side=0):
        self.words, self.side = words, side

    def __getitem__(self, part):
        return Tensor(self.words[part])

    def view(self, rows, columns):
        return Tensor(self.words, rows)

    def cuda(self):
        return self

    cpu = contiguous = cuda

    def numel(self):
        return len(self.words)

    def data_ptr(self):
        self.memory = (ctypes.c_uint16 * len(self.words))(*self.words)
        return ctypes.addressof(self.memory)


def frombuffer(data, dtype):
    return Tensor(list(struct.unpack("<%dH" % (len(data) // 2), data)))


def empty_like(a):
    return Tensor([0] * len(a.words), a.side)


def mm(a, b, out):
    n = a.side
    x, y = [number(u) for u in a.words], [number(u) for u in b.words]
    # In the order of the fake cuBLAS, for which the matrices are transposed: it adds the same numbers in the same order.
    out.words[:] = [narrow(sum(y[l * n + j] * x[i * n + l] for l in range(n))) for i in range(n) for j in range(n)]
