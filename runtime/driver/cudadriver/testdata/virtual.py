"""The other process of TestGPUSharingVirtual: exchanges CUDA's virtual memory with a Go program by file descriptors, by calls of the CUDA driver alone.

usage: virtual.py SIZE LIBRARY

File 3 is a descriptor of SIZE bytes of the Go program's, and file 4 a Unix socket by which it is sent a descriptor of this one's memory, which has the
same size; LIBRARY is the CUDA driver. For each line "turn N" it looks whether all numbers of the Go program's memory are N, copies them to its own memory, sets
the first half of that to N+1, and prints "turned". For "read N" it prints whether all numbers of the Go program's memory are N. "free" gives its own
memory back, "leave" the Go program's.
"""

import array
import ctypes
import os
import socket
import sys


class Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", Location),
        ("win32", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


PINNED, DESCRIPTOR, DEVICE, READ_WRITE = 1, 1, 1, 3


class Driver:
    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        context, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", ctypes.c_uint(0))
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuStreamCreate", ctypes.byref(self.stream), ctypes.c_uint(1))
        self.properties = Properties(PINNED, DESCRIPTOR, Location(DEVICE, 0))
        granularity = ctypes.c_size_t()
        self.call("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(self.properties), ctypes.c_int(0))
        self.granularity = granularity.value

    def call(self, name, *args):
        result = getattr(self.lib, name)(*args)
        if result:
            raise RuntimeError(f"{name} returned {result}")

    def whole(self, size):
        return -(-size // self.granularity) * self.granularity

    def create(self, size):
        handle = ctypes.c_ulonglong()
        self.call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(self.whole(size)), ctypes.byref(self.properties), ctypes.c_ulonglong(0))
        return handle

    def export(self, handle):
        descriptor = ctypes.c_int(-1)
        self.call("cuMemExportToShareableHandle", ctypes.byref(descriptor), handle, ctypes.c_int(DESCRIPTOR), ctypes.c_ulonglong(0))
        return descriptor.value

    def take(self, descriptor):
        handle = ctypes.c_ulonglong()
        self.call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(descriptor), ctypes.c_int(DESCRIPTOR))
        return handle

    def map(self, handle, size):
        """Maps physical memory, and gives the handle back."""
        address, whole = ctypes.c_uint64(), ctypes.c_size_t(self.whole(size))
        self.call("cuMemAddressReserve", ctypes.byref(address), whole, ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_ulonglong(0))
        self.call("cuMemMap", address, whole, ctypes.c_size_t(0), handle, ctypes.c_ulonglong(0))
        self.call("cuMemRelease", handle)
        access = Access(self.properties.location, READ_WRITE)
        self.call("cuMemSetAccess", address, whole, ctypes.byref(access), ctypes.c_size_t(1))
        return address

    def unmap(self, address, size):
        whole = ctypes.c_size_t(self.whole(size))
        self.call("cuMemUnmap", address, whole)
        self.call("cuMemAddressFree", address, whole)

    def fill(self, address, size, value):
        self.call("cuMemsetD32Async", address, ctypes.c_uint(value), ctypes.c_size_t(size // 4), self.stream)

    def read(self, address, size):
        data = array.array("I", bytes(size))
        self.call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(data.buffer_info()[0]), address, ctypes.c_size_t(size), self.stream)
        self.wait()
        return data

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)


def main():
    size = int(sys.argv[1])
    driver = Driver(sys.argv[2])

    def say(text):
        print(text, flush=True)

    theirs = driver.map(driver.take(3), size)
    os.close(3)
    handle = driver.create(size)
    descriptor = driver.export(handle)
    own = driver.map(handle, size)
    with socket.socket(fileno=4) as s:
        s.sendmsg([b"memory"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))])
    os.close(descriptor)
    say("ready")
    for line in sys.stdin:
        what, _, number = line.partition(" ")
        what = what.strip()
        if what == "turn":
            got = driver.read(theirs, size)
            if any(x != int(number) for x in got):
                say(f"{number} was to come, and {got[0]} and others came")
                continue
            driver.call("cuMemcpyDtoDAsync_v2", own, theirs, ctypes.c_size_t(size), driver.stream)
            driver.fill(own, size // 2, int(number) + 1)
            driver.wait()
            say("turned")
        elif what == "read":
            wrong = [x for x in driver.read(theirs, size) if x != int(number)]
            say(f"{wrong[0]} and others came" if wrong else "right")
        elif what == "free":
            driver.unmap(own, size)
            say("freed")
        elif what == "leave":
            driver.unmap(theirs, size)
            say("left")
            return


main()
