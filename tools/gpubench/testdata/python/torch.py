# A fake PyTorch, to run allreduce.py without PyTorch. FAKE_TORCH has the number of devices and the NCCL
# version, as in "2 2.28.3". With a third word all_reduce fails.
import os
import sys
import types

_devices, _nccl, *_fault = os.environ["FAKE_TORCH"].split()

__version__ = "2.9.9+fake"
float32 = "float32"


class _Tensor:
    def __init__(self, n):
        self.n = n

    def zero_(self):
        return self


def zeros(n, dtype, device):
    assert dtype == float32 and device == "cuda"
    return _Tensor(n)


def ones(n, device):
    return zeros(n, float32, device)


def _init_process_group(backend, init_method, rank, world_size, timeout):
    assert backend == "nccl" and init_method.startswith("tcp://127.0.0.1:") and 0 <= rank < world_size
    assert timeout.total_seconds() > 0
    distributed.group = rank
    sys.stdout.write("a library says something\n")
    sys.stdout.flush()


def _all_reduce(t):
    assert isinstance(t, _Tensor) and distributed.group == cuda.device
    if _fault:
        raise RuntimeError("NCCL error: " + _fault[0])


def _destroy_process_group():
    distributed.group = None


def _set_device(rank):
    cuda.device = rank


distributed = types.ModuleType("torch.distributed")
distributed.group = None
distributed.is_available = distributed.is_nccl_available = lambda: True
distributed.is_initialized = lambda: distributed.group is not None
distributed.init_process_group = _init_process_group
distributed.all_reduce = _all_reduce
distributed.destroy_process_group = _destroy_process_group

cuda = types.ModuleType("torch.cuda")
cuda.device = None
cuda.device_count = lambda: int(_devices)
cuda.set_device = _set_device
cuda.synchronize = cuda.empty_cache = lambda: None
cuda.nccl = types.ModuleType("torch.cuda.nccl")
cuda.nccl.version = lambda: tuple(int(v) for v in _nccl.split("."))

sys.modules.update({"torch.distributed": distributed, "torch.cuda": cuda, "torch.cuda.nccl": cuda.nccl})
