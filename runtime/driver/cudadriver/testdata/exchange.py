"""The other process of TestGPUSharingPython: exchanges a tensor with a Go program by CUDA's handles for several processes.

usage: exchange.py torch|cupy|cuda SIZE

It prints what its own memory and event are, in JSON, reads what the Go program's are, and then does for each line "turn": have its stream
wait for the Go program's event, copy the Go program's memory to its own, record its own event, print "turned". The exit status is 77 where the
package is missing. If its input ends before a line "leave" the Go program has died: then it says so to file 3, whether its stream is free or waits
for what never comes, and whether it goes on, on another stream.
"""

import ctypes
import json
import os
import sys
import time
import traceback


class Handle(ctypes.Structure):
    """CUipcMemHandle and CUipcEventHandle, which are passed by value."""

    _fields_ = [("bytes", ctypes.c_ubyte * 64)]

    @classmethod
    def of(cls, data):
        return cls((ctypes.c_ubyte * 64)(*data))


class Driver:
    """What PyTorch and CuPy have no functions of their own for, in whatever context is current."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")

    def call(self, name, *args):
        result = getattr(self.lib, name)(*args)
        if result:
            raise RuntimeError(f"{name} returned {result}")

    def export(self, address):
        """Returns the handle of the allocation that an address lies in, and the offset there."""
        base, size, handle = ctypes.c_uint64(), ctypes.c_size_t(), Handle()
        self.call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(address))
        self.call("cuIpcGetMemHandle", ctypes.byref(handle), base)
        return bytes(handle.bytes), address - base.value

    def open(self, handle):
        address = ctypes.c_uint64()
        self.call("cuIpcOpenMemHandle_v2", ctypes.byref(address), Handle.of(handle), ctypes.c_uint(1))
        return address.value

    def close(self, address):
        self.call("cuIpcCloseMemHandle", ctypes.c_uint64(address))

    def go_on(self):
        """Fills 4 KiB of its own on a stream of its own, and returns whether they are right."""
        address, stream, data = ctypes.c_uint64(), ctypes.c_void_p(), (ctypes.c_ubyte * 4096)()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(4096))
        self.call("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(1))
        self.call("cuMemsetD8Async", address, ctypes.c_ubyte(7), ctypes.c_size_t(4096), stream)
        self.call("cuMemcpyDtoHAsync_v2", data, address, ctypes.c_size_t(4096), stream)
        self.call("cuStreamSynchronize", stream)
        return bytes(data) == b"\x07" * 4096


class View:
    """Memory that somebody else has, for what knows __cuda_array_interface__."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size // 4,), "typestr": "<i4", "data": (address, False), "version": 2}


class Torch:
    def __init__(self, driver, size):
        import torch

        if not torch.cuda.is_available():
            raise ImportError("PyTorch without CUDA")
        self.torch, self.driver = torch, driver
        self.device = torch.device("cuda", 0)
        self.own = torch.zeros(size // 4, dtype=torch.int32, device=self.device)
        self.stream = torch.cuda.Stream(self.device)
        self.event = torch.cuda.Event(interprocess=True)
        self.event.record(self.stream)  # there is no event before
        torch.cuda.synchronize()
        self.go_on()  # so that its kernels are loaded, which may wait for all streams

    def go_on(self):
        """Computes on another stream, and returns whether the results are right."""
        torch = self.torch
        with torch.cuda.stream(torch.cuda.Stream(self.device)):
            results = (torch.full((4096,), 7, dtype=torch.int32, device=self.device) * 6).cpu()
        return bool((results == 42).all())

    def free(self):
        return self.stream.query()

    def export(self):
        return *self.driver.export(self.own.data_ptr()), bytes(self.event.ipc_handle())

    def meet(self, memory, offset, size, event):
        self.address = self.driver.open(memory)
        self.far = self.torch.as_tensor(View(self.address + offset, size), device=self.device)
        assert self.far.data_ptr() == self.address + offset
        self.there = self.torch.cuda.Event.from_ipc_handle(self.device, event)

    def turn(self):
        with self.torch.cuda.stream(self.stream):
            self.stream.wait_event(self.there)
            self.own.copy_(self.far, non_blocking=True)
            self.event.record(self.stream)

    def leave(self):
        self.torch.cuda.synchronize()
        del self.far, self.there
        self.driver.close(self.address)


class CuPy:
    def __init__(self, driver, size):
        import cupy

        self.cupy, self.driver, self.runtime = cupy, driver, cupy.cuda.runtime
        self.own = cupy.zeros(size // 4, dtype=cupy.int32)
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.event = cupy.cuda.Event(disable_timing=True, interprocess=True)
        self.runtime.deviceSynchronize()

    def export(self):
        return *self.driver.export(self.own.data.ptr), bytes(self.runtime.ipcGetEventHandle(self.event.ptr))

    def meet(self, memory, offset, size, event):
        self.address = self.runtime.ipcOpenMemHandle(memory)
        self.far = self.cupy.asarray(View(self.address + offset, size))
        assert self.far.data.ptr == self.address + offset
        self.there = self.runtime.ipcOpenEventHandle(event)

    def turn(self):
        self.runtime.streamWaitEvent(self.stream.ptr, self.there)
        with self.stream:
            self.cupy.copyto(self.own, self.far)
        self.event.record(self.stream)

    def leave(self):
        self.runtime.deviceSynchronize()
        del self.far
        self.runtime.eventDestroy(self.there)
        self.runtime.ipcCloseMemHandle(self.address)


class Cuda:
    """Neither of the two: calls of the driver."""

    def __init__(self, driver, size):
        self.call, self.driver, self.size = driver.call, driver, size
        context, self.own = ctypes.c_void_p(), ctypes.c_uint64()
        self.stream, self.event, self.there = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", ctypes.c_uint(0))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(0))
        self.call("cuCtxSetCurrent", context)
        self.call("cuMemAlloc_v2", ctypes.byref(self.own), ctypes.c_size_t(size))
        self.call("cuStreamCreate", ctypes.byref(self.stream), ctypes.c_uint(1))
        self.call("cuEventCreate", ctypes.byref(self.event), ctypes.c_uint(2 | 4))
        self.go_on = driver.go_on

    def free(self):
        result = self.driver.lib.cuStreamQuery(self.stream)
        if result not in (0, 600):
            raise RuntimeError(f"cuStreamQuery returned {result}")
        return result == 0

    def export(self):
        handle = Handle()
        self.call("cuIpcGetEventHandle", ctypes.byref(handle), self.event)
        return *self.driver.export(self.own.value), bytes(handle.bytes)

    def meet(self, memory, offset, size, event):
        assert size == self.size
        self.address = self.driver.open(memory)
        self.far = ctypes.c_uint64(self.address + offset)
        self.call("cuIpcOpenEventHandle", ctypes.byref(self.there), Handle.of(event))

    def turn(self):
        self.call("cuStreamWaitEvent", self.stream, self.there, ctypes.c_uint(0))
        self.call("cuMemcpyDtoDAsync_v2", self.own, self.far, ctypes.c_size_t(self.size), self.stream)
        self.call("cuEventRecord", self.event, self.stream)

    def leave(self):
        self.call("cuStreamSynchronize", self.stream)
        self.call("cuEventDestroy_v2", self.there)
        self.driver.close(self.address)


def main():
    size = int(sys.argv[2])
    try:
        side = {"torch": Torch, "cupy": CuPy, "cuda": Cuda}[sys.argv[1]](Driver(), size)
    except ImportError as missing:
        print(missing, file=sys.stderr)
        sys.exit(77)

    def say(text):
        print(text, flush=True)

    memory, offset, event = side.export()
    say(json.dumps({"memory": memory.hex(), "offset": offset, "size": size, "event": event.hex()}))
    theirs = json.loads(sys.stdin.readline())
    side.meet(bytes.fromhex(theirs["memory"]), theirs["offset"], theirs["size"], bytes.fromhex(theirs["event"]))
    say("ready")
    turns = 0
    for line in sys.stdin:
        if line == "turn\n":
            side.turn()
            turns += 1
            say("turned")
        elif line == "leave\n":
            side.leave()
            say("left")
            return
    with os.fdopen(3, "w") as report:
        print(f"the other process has ended after {turns} turns", file=report)
        try:
            end = time.monotonic() + 1
            while not (free := side.free()) and time.monotonic() < end:
                time.sleep(0.01)
            print("the stream is free" if free else "the stream waits for what never comes", file=report)
            print("goes on" if side.go_on() else "wrong", file=report)
        except Exception:
            traceback.print_exc(file=report)
    os._exit(0)  # to destroy the context could wait for the stream


main()
