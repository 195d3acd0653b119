# Multiplies two matrices of bfloat16 with PyTorch. The program cublas starts it with three
# arguments: the matrices' side, a file with both matrices, and a file for the product. Lines for
# that program begin with a mark. The first line describes PyTorch and the GPU in JSON. Then the
# script reads numbers of products, and prints for each the nanoseconds that one product took.

import ctypes
import gc
import json
import sys
import time

MARK = "@cublas "


def tell(text):
    print(MARK + text, flush=True)


def loaded(name):
    """Returns the file of a library that this process has loaded."""
    with open("/proc/self/maps") as f:
        for line in f:
            path = line.rstrip("\n").split(None, 5)[-1]
            if path.rsplit("/", 1)[-1].startswith(name):
                return path
    return ""


def main():
    try:
        import torch
    except ImportError as e:
        tell(json.dumps({"missing": str(e)}))
        return
    if not torch.cuda.is_available():
        tell(json.dumps({"missing": "PyTorch %s finds no device" % torch.__version__}))
        return
    side = int(sys.argv[1])
    with open(sys.argv[2], "rb") as f:
        numbers = torch.frombuffer(bytearray(f.read()), dtype=torch.bfloat16).cuda()
    a, b = numbers[: side * side].view(side, side), numbers[side * side :].view(side, side)
    c = torch.empty_like(a)
    torch.mm(a, b, out=c)
    host = c.cpu().contiguous()
    with open(sys.argv[3], "wb") as f:
        f.write(ctypes.string_at(host.data_ptr(), host.numel() * 2))
    gc.disable()
    tell(json.dumps({"version": torch.__version__, "device": torch.cuda.get_device_name(), "cublas": loaded("libcublas.so")}))
    for line in sys.stdin:
        n = int(line)
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(n):
            torch.mm(a, b, out=c)
        torch.cuda.synchronize()
        tell(str((time.perf_counter_ns() - start) / n))


main()
