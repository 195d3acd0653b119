# Measures a Llama decoder in PyTorch on a checkpoint, beside which this example is compared:
#
#     python baseline.py FOLDER                          # everything, about two minutes
#     python baseline.py FOLDER --parts decode --batches 1
#     python baseline.py FOLDER --parts decode --compile no --batches 1 16 64
#
# The decoder is written for speed as its users would: joined matrices, a static key-value cache,
# fused attention and norms, the next token chosen on the device, a CUDA graph for each step, and
# torch.compile with its longest search. Each line of the output is a JSON object. Times are medians.
#
# Parts: copy (bandwidth), decode, prompt (first token of a prompt), start (of a process, to its first
# token), logits (error against logits.f32 of reference.py), and startcompile (start with
# torch.compile), which runs only if it is named.

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

begin = time.time()

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

PARTS = ["copy", "decode", "prompt", "start", "logits"]


def tell(**fields):
    fields["at"] = round(time.time() - begin, 1)
    print(json.dumps(fields), flush=True)


def inverse_frequencies(c):
    """Returns the rotary frequencies. Measurements need no other scaling than that of Llama 3."""
    d = c["head_dim"]
    f = 1.0 / (c.get("rope_theta", 10000.0) ** (torch.arange(0, d, 2).float() / d))
    s = c.get("rope_scaling")
    if s is None:
        return f
    if s["rope_type"] != "llama3":
        raise SystemExit("rope_scaling %s is not supported here" % s["rope_type"])
    turns = s["original_max_position_embeddings"] * f / (2 * math.pi)
    keep = ((turns - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])).clamp(0, 1)
    return (1 - keep) * f / s["factor"] + keep * f


class Layer(torch.nn.Module):
    def __init__(self, c, w, name):
        super().__init__()
        p = lambda t: torch.nn.Parameter(t, requires_grad=False)
        get = lambda *names: p(torch.cat([w[name + n + ".weight"] for n in names]))
        self.norm1, self.norm2 = get("input_layernorm"), get("post_attention_layernorm")
        self.qkv = get("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
        self.o, self.down = get("self_attn.o_proj"), get("mlp.down_proj")
        self.gate_up = get("mlp.gate_proj", "mlp.up_proj")
        self.heads, self.kv_heads, self.dim = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        self.eps = c["rms_norm_eps"]

    def forward(self, x, cos, sin, positions, mask, keys, values, attention):
        batch, n, _ = x.shape
        h = F.rms_norm(x, x.shape[-1:], self.norm1, self.eps)
        kv = self.kv_heads * self.dim
        q, k, v = F.linear(h, self.qkv).split([self.heads * self.dim, kv, kv], dim=-1)
        q = rotate(q.view(batch, n, self.heads, self.dim), cos, sin).transpose(1, 2)
        k = rotate(k.view(batch, n, self.kv_heads, self.dim), cos, sin).transpose(1, 2)
        v = v.view(batch, n, self.kv_heads, self.dim).transpose(1, 2)
        keys.index_copy_(2, positions, k)
        values.index_copy_(2, positions, v)
        if n > 1:  # a prompt from its beginning
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            a = decode_attention(q, keys, values, mask, attention)
        x = x + F.linear(a.transpose(1, 2).reshape(batch, n, -1), self.o)
        gate, up = F.linear(F.rms_norm(x, x.shape[-1:], self.norm2, self.eps), self.gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, self.down)


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


def decode_attention(q, keys, values, mask, attention):
    """Attends with one query a head. Heads that share keys become rows of one small matrix."""
    batch, heads, _, dim = q.shape
    q = q.reshape(batch, keys.shape[1], -1, dim)
    if attention == "sdpa":
        a = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask.expand(batch, q.shape[1], q.shape[2], -1))
    else:
        scores = torch.matmul(q, keys.transpose(2, 3)) * (1 / math.sqrt(dim)) + mask
        a = torch.matmul(torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype), values)
    return a.reshape(batch, heads, 1, dim)


class Llama(torch.nn.Module):
    def __init__(self, folder, device):
        super().__init__()
        with open(folder + "/config.json") as f:
            c = json.load(f)
        w = {}
        for file in sorted(os.listdir(folder)):
            if file.endswith(".safetensors"):
                w.update(load_file(os.path.join(folder, file), device=device))
        self.config, self.eps = c, c["rms_norm_eps"]
        self.layers = torch.nn.ModuleList(Layer(c, w, "model.layers.%d." % i) for i in range(c["num_hidden_layers"]))
        p = lambda t: torch.nn.Parameter(t, requires_grad=False)
        self.embed, self.norm = p(w["model.embed_tokens.weight"]), p(w["model.norm.weight"])
        self.head = self.embed if c.get("tie_word_embeddings") else p(w["lm_head.weight"])
        angles = torch.arange(c["max_position_embeddings"]).float()[:, None] * inverse_frequencies(c)
        angles = torch.cat((angles, angles), dim=-1)[:, None, :]  # [position, 1, dim]
        dtype = self.embed.dtype
        self.register_buffer("cos", angles.cos().to(device, dtype))
        self.register_buffer("sin", angles.sin().to(device, dtype))

    def cache(self, batch, length):
        """Returns keys and values of each layer, for sequences up to this length."""
        shape = batch, self.config["num_key_value_heads"], length, self.config["head_dim"]
        new = lambda: torch.zeros(shape, dtype=self.embed.dtype, device=self.embed.device)
        return [(new(), new()) for _ in self.layers]

    def forward(self, tokens, positions, cache, attention):
        """Returns the logits after the last of the tokens [batch, n] at positions [n]."""
        x = F.embedding(tokens, self.embed)
        cos, sin, mask = self.cos[positions], self.sin[positions], None
        if tokens.shape[1] == 1:
            later = torch.arange(cache[0][0].shape[2], device=x.device) > positions
            mask = torch.zeros(later.shape, dtype=x.dtype, device=x.device).masked_fill(later, -math.inf)
        for layer, (keys, values) in zip(self.layers, cache):
            x = layer(x, cos, sin, positions, mask, keys, values, attention)
        return F.linear(F.rms_norm(x[:, -1], x.shape[-1:], self.norm, self.eps), self.head)


def step(model, tokens, positions, cache, attention):
    """Decodes one token of each sequence, in place."""
    tokens.copy_(model(tokens, positions, cache, attention).argmax(dim=-1, keepdim=True))
    positions.add_(1)


def compiled(fn, mode):
    torch._dynamo.reset()
    return torch.compile(fn, mode=mode, fullgraph=True, dynamic=False)


def graph_of(fn, *args):
    """Returns a CUDA graph of a call, after calls that warm it up."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            fn(*args)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fn(*args)
    return graph


def median_time(fn, repeats):
    """Returns the median seconds of a call, from an idle device until it is idle again."""
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        fn()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure_copy():
    """Measures the bandwidth of a copy of 4 GB, bytes read and bytes written together."""
    x = torch.empty(1 << 30, dtype=torch.int32, device="cuda").fill_(1)
    y = torch.empty_like(x)
    for how, fn, passes in [
        ("torch.clone", lambda: x.clone(), 2), ("copy engine or memcpy kernel", lambda: y.copy_(x), 2),
        ("elementwise kernel", lambda: torch.neg(x, out=y), 2), ("read only, torch.sum", lambda: x.view(torch.float32).sum(), 1),
    ]:
        fn()
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(15)]
        for a, b in events:
            a.record()
            fn()
            b.record()
        torch.cuda.synchronize()
        seconds = statistics.median(a.elapsed_time(b) for a, b in events) / 1e3
        tell(part="copy", how=how, tb_per_s=round(passes * x.numel() * 4 / seconds / 1e12, 3))


def measure_decode(model, args, over):
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    if model.head is not model.embed:
        weights -= model.embed.numel() * model.embed.element_size()  # a step reads a few rows of it
    length = (args.context + args.tokens + 15) // 8 * 8
    best = {}
    for how in ["graph", "compile"]:
        if how == "compile" and args.compile == "no":
            continue
        for batch in args.batches:
            kinds = args.attention
            if how == "compile" and (batch != args.batches[0]):
                kinds = [best[how]]
            for attention in kinds:
                if how == "compile" and over():
                    tell(part="decode", how=how, batch=batch, skipped="over the budget of %d s" % args.budget)
                    continue
                tokens = torch.randint(0, model.config["vocab_size"], (batch, 1), device="cuda")
                positions = torch.tensor([args.context], device="cuda")
                cache, before = model.cache(batch, length), time.time()
                for keys, values in cache:
                    keys.normal_()
                    values.normal_()
                fn = step if how == "graph" else compiled(step, args.mode)
                graph = graph_of(fn, model, tokens, positions, cache, attention)
                made = time.time() - before

                def run():
                    positions.fill_(args.context)
                    for _ in range(args.tokens):
                        graph.replay()

                run()
                us = median_time(run, 7) / args.tokens * 1e6
                used = weights + batch * (args.context + args.tokens / 2) * 2 * 2 * len(cache) * cache[0][0].shape[1] * cache[0][0].shape[3]
                fields = dict(part="decode", how=how, batch=batch, attention=attention, us_per_step=round(us, 1))
                if how == "compile":
                    fields["mode"] = args.mode
                tell(**fields, tb_per_s=round(used / us / 1e6, 3), made_s=round(made, 1))
                if batch == args.batches[0] and us < best.get(how + "us", math.inf):
                    best[how], best[how + "us"] = attention, us
                del graph, cache
            if how not in best:
                break


def measure_prompt(model, args, over):
    tokens = torch.randint(0, model.config["vocab_size"], (1, args.context), device="cuda")
    positions = torch.arange(args.context, device="cuda")
    cache = model.cache(1, args.context + 8)
    first = torch.zeros(1, dtype=torch.long, device="cuda")

    def prompt():
        first.copy_(model(tokens, positions, cache, "sdpa").argmax(dim=-1))

    def run(call):
        call()
        return first.item()

    run(prompt)
    tell(part="prompt", how="eager", tokens=args.context, ms=round(median_time(lambda: run(prompt), 15) * 1e3, 3))
    graph = graph_of(prompt)
    tell(part="prompt", how="graph", tokens=args.context, ms=round(median_time(lambda: run(graph.replay), 15) * 1e3, 3))
    if args.compile == "no":
        return
    if over():
        tell(part="prompt", how="compile", skipped="over the budget of %d s" % args.budget)
        return
    fast = compiled(prompt, args.mode)
    run(fast)
    tell(part="prompt", how="compile", tokens=args.context, ms=round(median_time(lambda: run(fast), 15) * 1e3, 3))
    graph = graph_of(fast)
    tell(part="prompt", how="compile+graph", tokens=args.context, ms=round(median_time(lambda: run(graph.replay), 15) * 1e3, 3))


def first_token(args):
    """Is a process of its own: it prints the first token after a prompt."""
    with torch.no_grad():
        model = Llama(args.folder, "cuda")
        numbers = torch.arange(args.context, device="cuda")
        cache = model.cache(1, args.context + 8)
        call = lambda tokens, positions: model(tokens, positions, cache, "sdpa").argmax(dim=-1)
        if args.child == "compile":
            call = compiled(call, None)
        print("token", call(numbers[None] % model.config["vocab_size"], numbers).item(), flush=True)


def measure_start(args, how, repeats):
    """Measures from the start of a process to its first token, with files in the page cache."""
    for i in range(repeats):
        start = time.perf_counter()
        child = subprocess.Popen(
            [sys.executable, __file__, args.folder, "--child", how, "--context", str(args.context)],
            stdout=subprocess.PIPE, text=True)
        line = child.stdout.readline()
        seconds = time.perf_counter() - start
        child.communicate()
        if not line.startswith("token"):
            raise SystemExit("the process printed %r" % line)
        tell(part="start", how=how, run=i + 1, seconds=round(seconds, 2))


def measure_logits(model, args):
    """Compares with logits.f32: prompts at once, then token by token."""
    path = args.folder + "/logits.json"
    if not os.path.exists(path):
        tell(part="logits", skipped="no logits.json: run reference.py logits")
        return
    with open(path) as f:
        reference = json.load(f)
    rows, vocab = sum(len(s["tokens"]) for s in reference["sequences"]), reference["vocab"]
    all = torch.from_file(args.folder + "/logits.f32", size=rows * vocab, dtype=torch.float32).view(rows, vocab)
    device, at, square, wrong = model.embed.device, 0, 0.0, 0
    for s in reference["sequences"]:
        prompt, following = s["prompt"], s["tokens"]
        cache = model.cache(1, (len(prompt) + len(following) + 7) // 8 * 8)
        ids, start = prompt, 0
        for i in range(len(following)):
            positions = torch.arange(start, start + len(ids), device=device)
            got = model(torch.tensor([ids], device=device), positions, cache, "sdpa")[0].float().cpu()
            square += float((got - all[at + i]).square().sum())
            wrong += int(got.argmax() != all[at + i].argmax())
            ids, start = following[i:i + 1], start + len(ids)
        at += len(following)
    relative = math.sqrt(square / float(all.square().sum()))
    tell(part="logits", rows=rows, relative=float("%.3g" % relative), other_tokens=wrong)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--parts", nargs="+", choices=PARTS + ["startcompile"], default=PARTS)
    p.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64])
    p.add_argument("--context", type=int, default=512, help="tokens before the first that is decoded")
    p.add_argument("--tokens", type=int, default=128, help="tokens that are decoded")
    p.add_argument("--attention", nargs="+", choices=["sdpa", "explicit"], default=["sdpa", "explicit"])
    p.add_argument("--compile", choices=["yes", "no"], default="yes")
    p.add_argument("--mode", default="max-autotune-no-cudagraphs", help="of torch.compile; graphs are made here")
    p.add_argument("--budget", type=float, default=130, help="seconds after which nothing more is compiled")
    p.add_argument("--child", choices=["eager", "compile"], help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.child:
        first_token(args)
        return
    over = lambda: time.time() - begin > args.budget
    tell(torch=torch.__version__, device=torch.cuda.get_device_name())
    with torch.no_grad():
        if "copy" in args.parts:
            measure_copy()
        if "start" in args.parts:
            measure_start(args, "eager", 2)
        model = Llama(args.folder, "cuda")
        if "logits" in args.parts:
            measure_logits(model, args)
        if "decode" in args.parts:
            measure_decode(model, args, over)
        if "prompt" in args.parts:
            measure_prompt(model, args, over)
    if "startcompile" in args.parts:
        measure_start(args, "compile", 2)


if __name__ == "__main__":
    main()
