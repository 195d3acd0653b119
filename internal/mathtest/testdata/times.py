# Does in PyTorch what TestTimes does in Go. Reads requests from standard input, a line of JSON each, and answers with a line of JSON
# after a mark:
#   {"setup": "x = ...", "run": "f(x)"}   makes tensors, and a function that runs once
#   {"times": n}                          runs it n times; answers the microseconds of each run, all and the host's part

import gc
import json
import sys
import time


def tell(answer):
    print("@math " + json.dumps(answer), flush=True)


def main():
    try:
        import torch
    except ImportError as e:
        tell({"error": str(e)})
        return
    tell({"torch": torch.__version__, "device": torch.cuda.get_device_name()})
    gc.disable()
    names = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "setup" in request:
                names = {"torch": torch}
                torch.cuda.empty_cache()
                exec(request["setup"], names)
                exec("def run(n):\n    for _ in range(n):\n        " + request["run"], names)
                tell({})
                continue
            n = request["times"]
            torch.cuda.synchronize()
            start = time.perf_counter_ns()
            names["run"](n)
            given = time.perf_counter_ns()
            torch.cuda.synchronize()
            end = time.perf_counter_ns()
            tell({"each": (end - start) / n / 1e3, "host": (given - start) / n / 1e3})
        except Exception as e:
            tell({"error": repr(e)})


main()
