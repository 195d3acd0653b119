# The raw side of gpubench's group others: the same work with Python libraries.
#
# gpubench starts it. It reads orders from its standard input, a line of JSON each, and answers each
# on its standard output with a mark and a line of JSON. It ends when its input ends. An order names
# a library, a work, and the numbers of repetitions: waited for each time, and submitted ahead.

import gc
import json
import sys
import time

MARK = "@gpubench "
SIZE = 4096
ALLOCATION = 1 << 20
SOURCE = 'extern "C" __global__ void empty(void *p) {}'


class Missing(Exception):
    """Something is missing on this machine, which is no failure."""


class PyTorch:
    """Eager operations on the library's current stream."""

    def __init__(self):
        import torch

        if not torch.cuda.is_available():
            raise Missing("PyTorch %s finds no device" % torch.__version__)
        self.torch = torch
        self.numbers = torch.zeros(SIZE // 4, dtype=torch.int32, device="cuda")
        self.wait = torch.cuda.synchronize
        self.version = torch.__version__

    def fill(self):
        self.numbers.fill_(7)

    def allocate(self):
        self.torch.empty(ALLOCATION, dtype=self.torch.uint8, device="cuda")[:SIZE].fill_(7)

    def launch(self):
        raise Missing("a launch of one's own kernel is not PyTorch's to make")


class CuPy:
    """Arrays of the library's pool, and raw kernels, on a stream."""

    def __init__(self):
        import cupy

        self.cupy = cupy
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self.numbers = cupy.zeros(SIZE // 4, dtype=cupy.int32)
        self.kernel = cupy.RawKernel(SOURCE, "empty")
        self.wait = self.stream.synchronize
        self.version = cupy.__version__

    def fill(self):
        self.numbers.fill(7)

    def allocate(self):
        self.cupy.empty(ALLOCATION, dtype=self.cupy.uint8)[:SIZE].fill(7)

    def launch(self):
        self.kernel((1,), (1,), (self.numbers,))


class CUDACore:
    """The library's own stream, memory and launcher."""

    def __init__(self):
        try:
            import cuda.core as core

            core.Device
        except (ImportError, AttributeError):
            import cuda.core.experimental as core
        import cuda.core as package

        self.core = core
        self.device = core.Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()
        major, minor = self.device.compute_capability
        options = core.ProgramOptions(arch="sm_%d%d" % (major, minor))
        self.kernel = core.Program(SOURCE, code_type="c++", options=options).compile("cubin").get_kernel("empty")
        self.config = core.LaunchConfig(grid=1, block=1)
        self.buffer = self.device.allocate(SIZE, stream=self.stream)
        self.pointer = int(self.buffer.handle)
        self.wait = self.stream.sync
        self.version = package.__version__

    def fill(self):
        if not hasattr(self.buffer, "fill"):
            raise Missing("cuda.core %s fills no memory" % self.version)
        self.buffer.fill(7, stream=self.stream)

    def allocate(self):
        b = self.device.allocate(ALLOCATION, stream=self.stream)
        if not hasattr(b, "fill"):
            raise Missing("cuda.core %s fills no memory" % self.version)
        b.fill(7, stream=self.stream)
        b.close(self.stream)

    def launch(self):
        self.core.launch(self.stream, self.config, self.kernel, self.pointer)


LIBRARIES = {"PyTorch": PyTorch, "CuPy": CuPy, "cuda.core": CUDACore}
opened = {}


def library(name):
    """Returns an open library, or the reason why there is none."""
    if name not in opened:
        try:
            opened[name] = LIBRARIES[name]()
        except (ImportError, OSError, Missing) as e:
            opened[name] = Missing("%s: %s" % (name, e))
    if isinstance(opened[name], Missing):
        raise opened[name]
    return opened[name]


def measure(order):
    lib = library(order["library"])
    work, wait = getattr(lib, order["work"]), lib.wait
    for _ in range(order["warm"]):
        work()
    wait()
    times = []
    for _ in range(order["timed"]):
        start = time.perf_counter_ns()
        work()
        wait()
        times.append(time.perf_counter_ns() - start)
    start = time.perf_counter_ns()
    for _ in range(order["ahead"]):
        work()
    wait()
    each = (time.perf_counter_ns() - start) / order["ahead"]
    times.sort()
    return {"p50_ns": times[len(times) // 2], "min_ns": times[0], "each_ns": each, "version": lib.version}


def main():
    gc.disable()
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = measure(order)
        except Missing as e:
            answer = {"missing": str(e)}
        except Exception as e:
            answer = {"error": "%s: %s" % (type(e).__name__, e)}
        sys.stdout.write(MARK + json.dumps(answer) + "\n")
        sys.stdout.flush()
        gc.collect()


if __name__ == "__main__":
    main()
