# Compares the results that the tests of package mathtest have written with PyTorch's and CuPy's: compare.py FOLDER
# Each FOLDER/LIBRARY.jsonl has a case a line: its name, parameters and arrays. The function of that library returns what to compare:
# (what, result, reference, eps). The results may differ by eps times the largest number.

import json
import pathlib
import sys

import numpy
import torch


def fft(name, p, a):
    x = torch.from_numpy(a["x"]).cuda()
    dims = list(range(1, x.ndim))
    if name == "complex":
        yield "forward", a["forward"], torch.fft.fftn(x, dim=dims), p["eps"]
        yield "inverse", a["inverse"], torch.fft.ifftn(x, dim=dims, norm="forward"), p["eps"]
    else:
        y = torch.fft.rfftn(x, dim=dims)
        yield "forward", a["forward"], y, p["eps"]
        yield "back", a["back"], torch.fft.irfftn(y, s=x.shape[1:], dim=dims, norm="forward"), p["eps"]


def random(name, p, a):
    import cupy
    from cupy_backends.cuda.libs import curand

    g = curand.createGenerator(161)  # Philox4x32-10
    curand.setPseudoRandomGeneratorSeed(g, p["seed"])
    curand.setGeneratorOffset(g, p["offset"])
    parts = []
    for n in p["counts"]:
        even = n + n % 2 if name.startswith("normal") else n
        x = cupy.empty(even, a["x"].dtype)
        if name == "bits":
            curand.generate(g, x.data.ptr, even)
        elif name == "uniform":
            curand.generateUniform(g, x.data.ptr, even)
        elif name == "uniform double":
            curand.generateUniformDouble(g, x.data.ptr, even)
        elif name == "normal":
            curand.generateNormal(g, x.data.ptr, even, 3, 2)
        else:
            curand.generateNormalDouble(g, x.data.ptr, even, 3, 2)
        parts.append(x[:n].get())
    curand.destroyGenerator(g)
    yield name, a["x"], numpy.concatenate(parts), 1e-6 if name.startswith("normal") else 0


def linear(name, p, a):
    if name == "gemm":
        kind = getattr(torch, p["type"])
        x, y = (torch.from_numpy(a[k]).cuda().to(kind) for k in "ab")
        if kind.itemsize == 1:
            one = torch.ones((), device="cuda")
            z = torch._scaled_mm(x, y.t(), one, one, out_dtype=torch.bfloat16)
        else:
            z = x @ y.t()
        yield name, a["c"], z.double(), p["eps"]
    elif name == "sparse":
        import scipy.sparse

        yield name, a["y"], scipy.sparse.csr_matrix(a["a"]) @ a["x"].astype("float64"), p["eps"]
    else:
        m, b = a["a"].astype("float64"), a["b"].astype("float64")
        x = numpy.linalg.solve(m, b.T).T
        yield "cholesky", a["cholesky"], x, p["eps"]
        yield "lu", a["lu"], x, p["eps"]
        yield "values", a["values"], numpy.linalg.eigvalsh(m), p["eps"]


def dnn(name, p, a):
    kind = getattr(torch, p["type"])
    x = {k: torch.from_numpy(v).cuda().to(kind) for k, v in a.items()}
    f = torch.nn.functional
    if name == "softmax":
        yield name, a["y"], f.softmax(x["x"], dim=1).float(), p["eps"]
    elif name == "norm":
        cols, epsilon = x["scale"].shape, p["epsilon"] or 1e-5
        y = f.rms_norm(x["x"], cols, x["scale"], epsilon) if p["rms"] else f.layer_norm(x["x"], cols, x["scale"], x["bias"], epsilon)
        yield name, a["y"], y.float(), p["eps"]
    elif name == "attention":
        q, k, v = x["q"], x["k"], x["v"]
        groups, scale = q.shape[1] // k.shape[1], p["scale"] or None
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device="cuda")
        if p["causal"]:
            mask = mask.tril(k.shape[2] - q.shape[2])
        yield name, a["out"], f.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale).float(), p["eps"]
    else:
        torch.backends.cudnn.allow_tf32 = p["tf32"]
        if p["channels_last"]:
            x["x"], x["w"] = x["x"].movedim(-1, 1), x["w"].movedim(-1, 1)
        conv = (f.conv1d, f.conv2d, f.conv3d)[x["x"].ndim - 3]
        y = conv(x["x"], x["w"], x["bias"] if p["bias"] else None, stride=p["stride"] or 1, padding=p["padding"] or 0, dilation=p["dilation"] or 1, groups=p["groups"])
        if p["relu"]:
            y = f.relu(y)
        if p["channels_last"]:
            y = y.movedim(1, -1)
        yield name, a["y"], y.float(), p["eps"]


LIBRARIES = {"fft": fft, "random": random, "dnn": dnn, "linear": linear}


def load(folder, array):
    return numpy.fromfile(folder / array["file"], array["type"]).reshape(array["shape"])


def main():
    folder, cases, wrong = pathlib.Path(sys.argv[1]), 0, 0
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            c = json.loads(line)
            arrays = {x["name"]: load(folder, x) for x in c["arrays"]}
            cases += 1
            for what, got, want, eps in LIBRARIES[c["library"]](c["name"], c["params"], arrays):
                if isinstance(want, torch.Tensor):
                    want = want.cpu().numpy()
                most = numpy.abs(want).max(initial=0)
                error = numpy.abs(numpy.subtract(got, want)).max(initial=0) if eps or got.shape != want.shape else float((got != want).any())
                if not error <= eps * most:
                    wrong += 1
                    shapes = {x["name"]: x["shape"] for x in c["arrays"]}
                    print(f"{c['library']} {c['name']} {c['params']} {shapes} {got.dtype}: {what} differs by {error:.3g}, and the largest number is {most:.3g}")
    print(f"{cases} cases, {wrong} wrong")
    sys.exit(wrong > 0 or cases == 0)


main()
