# The raw side of gpubench's all-reduces: PyTorch and its NCCL, one process a device.
#
# gpubench starts it for every rank, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the
# environment. It reads orders from its standard input, a line of JSON each, and answers each on its
# standard output with a mark and a line of JSON. It ends when its input ends. It warms up, counts
# and measures time as worker.go does.

import datetime
import gc
import json
import os
import sys
import time

MARK = "@gpubench "


class Missing(Exception):
    """Something is missing on this machine, which is no failure."""


class Rank:
    """One rank, on the device of its number."""

    def open(self, order):
        rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        try:
            import torch
            import torch.distributed
        except (ImportError, OSError) as e:
            raise Missing("PyTorch: %s" % e)
        self.torch, self.dist = torch, torch.distributed
        if not self.dist.is_available() or not self.dist.is_nccl_available():
            raise Missing("PyTorch %s is built without NCCL" % torch.__version__)
        if torch.cuda.device_count() < count:
            raise Missing("PyTorch %s finds %d of %d devices" % (torch.__version__, torch.cuda.device_count(), count))
        torch.cuda.set_device(rank)
        self.dist.init_process_group(
            "nccl",
            init_method="tcp://%s:%s" % (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]),
            rank=rank,
            world_size=count,
            timeout=datetime.timedelta(seconds=60),
        )
        self.reduce(torch.ones(1, device="cuda"), 1)  # the ranks connect
        torch.cuda.synchronize()
        return {"nccl": release(torch.cuda.nccl.version()), "library": library(), "torch": torch.__version__}

    def reduce(self, numbers, times):
        for _ in range(times):
            self.dist.all_reduce(numbers)

    def time(self, order):
        done = self.torch.cuda.synchronize
        pad = self.torch.zeros(order.get("pad", 0) // 4, dtype=self.torch.float32, device="cuda")
        numbers = self.torch.zeros(order["bytes"] // 4, dtype=self.torch.float32, device="cuda")
        self.reduce(numbers, order["warm"])
        done()
        times = []
        for _ in range(order["timed"]):
            start = time.perf_counter_ns()
            self.dist.all_reduce(numbers)
            done()
            times.append(time.perf_counter_ns() - start)
        self.reduce(numbers, order["warm"])
        done()
        start = time.perf_counter_ns()
        self.reduce(numbers, order["ahead"])
        done()
        each = (time.perf_counter_ns() - start) / order["ahead"]
        answer = {"each_ns": each}
        chained = order.get("chained", 0)
        if chained:  # each comes after the one before it in any case
            answer["chain_ns"] = answer["stream_ns"] = self.ahead(lambda: self.reduce(numbers, 1), chained)
            answer["filled_ns"] = self.ahead(lambda: (numbers.zero_(), self.reduce(numbers, 1)), chained)
        del numbers, pad
        self.torch.cuda.empty_cache()
        times.sort()
        answer.update({"p50_ns": times[len(times) // 2], "min_ns": times[0]})
        return answer

    def ahead(self, work, times):
        start = time.perf_counter_ns()
        for _ in range(times):
            work()
        self.torch.cuda.synchronize()
        return (time.perf_counter_ns() - start) / times


def release(version):
    """Formats a version, (2, 27, 3) or 2703 in old releases of PyTorch, as text."""
    if isinstance(version, int):
        if version < 10000:
            version = (version // 1000, version % 1000 // 100, version % 100)
        else:
            version = (version // 10000, version % 10000 // 100, version % 100)
    return ".".join(str(v) for v in version[:3])


def library():
    """Returns the file of the NCCL that PyTorch has loaded, or "" if it is unknown."""
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                fields = line.rstrip("\n").split(None, 5)
                if len(fields) == 6 and os.path.basename(fields[5]).startswith("libnccl.so"):
                    return fields[5]
    except OSError:
        pass
    try:
        import nvidia.nccl
    except ImportError:
        return ""
    for folder in nvidia.nccl.__path__:
        path = os.path.join(folder, "lib", "libnccl.so.2")
        if os.path.exists(path):
            return path
    return ""


def main():
    gc.disable()
    rank = Rank()
    orders = {"open": rank.open, "time": rank.time}
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = orders[order["do"]](order)
        except Missing as e:
            answer = {"missing": str(e)}
        except Exception as e:
            answer = {"error": "%s: %s" % (type(e).__name__, e)}
        sys.stdout.write(MARK + json.dumps(answer) + "\n")
        sys.stdout.flush()
        gc.collect()
    if hasattr(rank, "dist") and rank.dist.is_initialized():
        rank.dist.destroy_process_group()


if __name__ == "__main__":
    main()
