"""What TestGPUCuBLAS computes, by PyTorch: compares (a·b + 2a)·b of many matrices a with what the Go program has got.

usage: chain.py SIDE EXACT BOUND FOLDER

The folder has files a, b and got of 32-bit floating-point numbers: matrices of SIDE rows and columns, one column after the other. In the first
EXACT ones all numbers are whole and small, so that no order of additions makes a difference: they must be the same. The elements of all others
may differ by BOUND. It prints the version and the largest difference. The exit status is 77 where there is no PyTorch with CUDA.
"""

import os
import sys

side, exact, bound, folder = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
try:
    import torch

    if not torch.cuda.is_available():
        raise ImportError("PyTorch without CUDA")
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(77)


def matrices(name):
    with open(os.path.join(folder, name), "rb") as file:
        rows = torch.frombuffer(bytearray(file.read()), dtype=torch.float32).reshape(-1, side, side)
    return rows.cuda().transpose(1, 2)  # in columns


torch.backends.cuda.matmul.allow_tf32 = False
a, b, got = matrices("a"), matrices("b")[0], matrices("got")
assert a.shape == got.shape and 0 < exact < len(a)
want = torch.stack([torch.matmul(torch.matmul(x, b) + 2 * x, b) for x in a])
difference = (want - got).abs()
if not torch.equal(want[:exact], got[:exact]):
    sys.exit(f"of whole numbers the largest difference is {difference[:exact].max().item()}")
if not difference.max().item() <= bound:
    sys.exit(f"the largest difference is {difference.max().item()}")
print(f"PyTorch {torch.__version__}: {exact} of {len(a)} results are the same, of the others the largest difference is {difference.max().item()}")
