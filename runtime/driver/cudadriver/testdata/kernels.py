"""What TestGPUGenerated compares with: the same by PyTorch, and kernels of Triton.

usage: kernels.py FOLDER ROWS COLUMNS M N K

It writes inputs, and what PyTorch makes of them on the GPU, as arrays of 32-bit floats, or 16-bit ones where the name ends so:

    x.f32, y.f32                 ROWS x COLUMNS
    add.f32, softmax.f32         x + y, and the softmax of the rows of 2 * x
    a.f32, b.f32, matmul.f32     M x K, K x N, half their product, without TF32
    a.f16, b.f16, matmul16.f32   the same in halves, added up in floats, not halved

If there is Triton it compiles three kernels that do the same, and leaves them in FOLDER/cache as it keeps them: code, metadata, signature. The exit
status is 77 if there is no PyTorch that has the GPU.
"""

import os
import sys

folder, rows, columns, m, n, k = sys.argv[1], *map(int, sys.argv[2:])
os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "cache")

try:
    import torch
except ImportError:
    sys.exit(77)
if not torch.cuda.is_available():
    sys.exit(77)

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False
x, y = torch.randn(rows, columns, device="cuda"), torch.randn(rows, columns, device="cuda")
a, b = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
a16, b16 = a.half(), b.half()
for name, value in {
    "x.f32": x,
    "y.f32": y,
    "add.f32": x + y,
    "softmax.f32": torch.softmax(2 * x, 1),
    "a.f32": a,
    "b.f32": b,
    "matmul.f32": 0.5 * (a @ b),
    "a.f16": a16,
    "b.f16": b16,
    "matmul16.f32": a16.float() @ b16.float(),
}.items():
    with open(os.path.join(folder, name), "wb") as f:
        f.write(value.cpu().contiguous().numpy().tobytes())

try:
    import triton
    import triton.language as tl
except ImportError:
    print("no triton")
    sys.exit(0)


@triton.jit
def triton_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside), mask=inside)


@triton.jit
def triton_softmax(x_ptr, out_ptr, columns, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = scale * tl.load(x_ptr + row * columns + at, mask=inside, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out_ptr + row * columns + at, e / tl.sum(e, 0), mask=inside)


@triton.jit
def triton_matmul(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(1) * M + tl.arange(0, M)[:, None]
    column = tl.program_id(0) * N + tl.arange(0, N)[None, :]
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        i, j = start + tl.arange(0, K)[None, :], start + tl.arange(0, K)[:, None]
        left = tl.load(a_ptr + row * k + i, mask=(row < m) & (i < k), other=0.0)
        right = tl.load(b_ptr + j * n + column, mask=(j < k) & (column < n), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c_ptr + row * n + column, total, mask=(row < m) & (column < n))


out = torch.empty_like(x)
c = torch.empty(m, n, device="cuda")
triton_add.warmup(x, y, out, x.numel(), BLOCK=1024, grid=(1,))
triton_softmax.warmup(x, out, columns, 2.0, BLOCK=triton.next_power_of_2(columns), num_warps=8, grid=(1,))
triton_matmul.warmup(a16, b16, c, m, n, k, M=64, N=64, K=32, num_warps=4, grid=(1,))
print("triton", triton.__version__)
