# Writes a Llama checkpoint with random weights in the layout of Hugging Face, for tests and
# measurements: config.json, generation_config.json, safetensors files and a byte-level BPE
# tokenizer.json that is trained on the text of this repository.
#
#     python make_checkpoint.py trial /tmp/trial
#     python make_checkpoint.py tiny /tmp/tiny --shards 3 --rope llama3 --tied --dtype f16
#     python make_checkpoint.py tiny /tmp/fp8 --fp8 channel
#
# Needs torch and safetensors, and tokenizers unless --no-tokenizer is given. The weights' sizes keep
# the numbers between layers near 1, and the logits have a standard deviation of about 3.

import argparse
import json
import math
import pathlib
import shutil
import time

import torch
from safetensors.torch import save_file

MODELS = {
    # 852 million weights, 1.7 GB in bf16
    "trial": dict(layers=16, width=2048, heads=32, kv_heads=8, head_dim=64, ffn=5632, vocab=32000, max_tokens=4096),
    # 1,782 million weights, 3.6 GB: wider layers, as many of them
    "double": dict(layers=16, width=3072, heads=48, kv_heads=12, head_dim=64, ffn=8192, vocab=32000, max_tokens=4096),
    "tiny": dict(layers=2, width=256, heads=4, kv_heads=2, head_dim=64, ffn=512, vocab=1024, max_tokens=1024),
}

DTYPES = {"bf16": (torch.bfloat16, "bfloat16"), "f16": (torch.float16, "float16"), "f32": (torch.float32, "float32")}

LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {"llama": LLAMA, "qwen": LLAMA.replace("{1,3}", ""), "gpt2": None}

SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot|>"]


def ropes(name, max_tokens):
    """Returns rope_scaling of a name, as checkpoints have it."""
    return {
        "none": None,
        "linear": dict(rope_type="linear", factor=4.0),
        "dynamic": dict(rope_type="dynamic", factor=2.0),
        "llama3": dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                       original_max_position_embeddings=max_tokens // 8),
        "yarn": dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=max_tokens // 4),
    }[name]


def weights(m, device, seed):
    """Yields names and float32 weights, each from the random numbers that follow the seed."""
    random = torch.Generator(device=device)
    random.manual_seed(seed)

    def normal(shape, mean, deviation):
        return torch.randn(shape, generator=random, device=device) * deviation + mean

    def matrix(out, inner, gain):
        return normal((out, inner), 0, gain / math.sqrt(inner))

    w, q, kv = m["width"], m["heads"] * m["head_dim"], m["kv_heads"] * m["head_dim"]
    if m["tied"]:
        yield "model.embed_tokens", matrix(m["vocab"], w, 3)
    else:
        yield "model.embed_tokens", normal((m["vocab"], w), 0, 1)
    residual = 1 / math.sqrt(2 * m["layers"])
    for i in range(m["layers"]):
        layer = "model.layers.%d." % i
        yield layer + "input_layernorm", normal(w, 1, 0.1)
        yield layer + "self_attn.q_proj", matrix(q, w, 2)
        yield layer + "self_attn.k_proj", matrix(kv, w, 1)
        yield layer + "self_attn.v_proj", matrix(kv, w, 1)
        yield layer + "self_attn.o_proj", matrix(w, q, 2 * residual)
        yield layer + "post_attention_layernorm", normal(w, 1, 0.1)
        yield layer + "mlp.gate_proj", matrix(m["ffn"], w, 1)
        yield layer + "mlp.up_proj", matrix(m["ffn"], w, 1)
        yield layer + "mlp.down_proj", matrix(w, m["ffn"], 2 * residual)
    yield "model.norm", normal(w, 1, 0.1)
    if not m["tied"]:
        yield "lm_head", matrix(m["vocab"], w, 3)


def quantized(weight, strategy):
    """Returns a weight in FP8 and its scale: one number for each row, or one for all."""
    largest = weight.abs().amax(dim=1, keepdim=True) if strategy == "channel" else weight.abs().amax().reshape(1)
    scale = (largest / 448).clamp(min=1e-12)  # 448 is the largest number of the format
    return (weight / scale).to(torch.float8_e4m3fn), scale.float()


def save(folder, m, args):
    """Writes the weights, in as many files of about the same size as asked."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tensors = {}
    for name, weight in weights(m, device, args.seed):
        if args.fp8 and name.endswith("_proj"):
            tensors[name + ".weight"], tensors[name + ".weight_scale"] = quantized(weight, args.fp8)
        else:
            tensors[name + ".weight"] = weight.to(DTYPES[args.dtype][0])
    tensors = {name: t.cpu().contiguous() for name, t in tensors.items()}
    total = sum(t.numel() * t.element_size() for t in tensors.values())
    if args.shards < 2:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return total
    parts, size = [{}], 0
    for name, t in tensors.items():
        if size >= total / args.shards * len(parts) and len(parts) < args.shards:
            parts.append({})
        parts[-1][name] = t
        size += t.numel() * t.element_size()
    index = {}
    for i, part in enumerate(parts):
        file = "model-%05d-of-%05d.safetensors" % (i + 1, len(parts))
        save_file(part, folder / file, metadata={"format": "pt"})
        index.update({name: file for name in part})
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": index})
    return total


def config(m, args, bos, eos):
    c = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "num_hidden_layers": m["layers"], "hidden_size": m["width"], "num_attention_heads": m["heads"],
        "num_key_value_heads": m["kv_heads"], "head_dim": m["head_dim"], "intermediate_size": m["ffn"],
        "vocab_size": m["vocab"], "max_position_embeddings": m["max_tokens"], "rms_norm_eps": 1e-5,
        "rope_theta": args.theta, "rope_scaling": ropes(args.rope, m["max_tokens"]), "tie_word_embeddings": m["tied"],
        "attention_bias": False, "mlp_bias": False, "bos_token_id": bos, "eos_token_id": eos[0],
        "torch_dtype": DTYPES[args.dtype][1], "use_cache": True, "initializer_range": 0.02,
    }
    if args.fp8:
        c["quantization_config"] = {
            "quant_method": "compressed-tensors", "format": "float-quantized", "quantization_status": "compressed",
            "ignore": ["lm_head"], "config_groups": {"group_0": {
                "targets": ["Linear"], "input_activations": None,
                "weights": {"num_bits": 8, "type": "float", "strategy": args.fp8, "symmetric": True, "dynamic": False},
            }},
        }
    return c


def repository_text(limit):
    """Yields texts of this repository, up to a number of characters."""
    root = pathlib.Path(__file__).resolve().parents[4]
    for file in sorted(root.rglob("*")):
        if file.suffix in (".go", ".md", ".py", ".cu") and "build" not in file.parts and limit > 0:
            text = file.read_text(errors="ignore")[:limit]
            limit -= len(text)
            yield text


def train_tokenizer(folder, vocab, pattern):
    """Trains tokenizer.json with a vocabulary of at most this size, special tokens last."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    t = Tokenizer(models.BPE(ignore_merges=pattern == "llama"))
    if PATTERNS[pattern] is None:
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    else:
        t.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(PATTERNS[pattern]), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ])
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab - len(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    t.train_from_iterator(repository_text(8 << 20), trainer)
    t.add_special_tokens(SPECIAL)
    bos = t.token_to_id(SPECIAL[0])
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single=SPECIAL[0] + " $A", pair=SPECIAL[0] + " $A $B:1", special_tokens=[(SPECIAL[0], bos)]),
    ])
    t.save(str(folder / "tokenizer.json"))


def special_tokens(folder):
    """Returns the numbers of the special tokens of a folder's tokenizer."""
    with open(folder / "tokenizer.json") as f:
        numbers = {t["content"]: t["id"] for t in json.load(f)["added_tokens"]}
    return [numbers[name] for name in SPECIAL]


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model", choices=MODELS)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--dtype", choices=DTYPES, default="bf16")
    p.add_argument("--fp8", choices=["channel", "tensor"], help="layers' matrices in FP8, with scales")
    p.add_argument("--tied", action="store_true", help="the output matrix is the embedding")
    p.add_argument("--shards", type=int, default=1, help="number of safetensors files")
    p.add_argument("--rope", choices=["none", "linear", "dynamic", "llama3", "yarn"], default="none")
    p.add_argument("--theta", type=float, default=10000.0)
    p.add_argument("--pattern", choices=PATTERNS, default="llama", help="how the tokenizer cuts text")
    p.add_argument("--tokenizer", type=pathlib.Path, help="copy the tokenizer of this folder")
    p.add_argument("--no-tokenizer", action="store_true")
    for name in MODELS["tiny"]:
        p.add_argument("--" + name.replace("_", "-"), type=int)
    args = p.parse_args()
    m = {name: getattr(args, name) or n for name, n in MODELS[args.model].items()}
    m["tied"] = args.tied
    args.folder.mkdir(parents=True, exist_ok=True)
    start, special = time.time(), [m["vocab"] - 3, m["vocab"] - 2, m["vocab"] - 1]
    if args.tokenizer:
        shutil.copy(args.tokenizer / "tokenizer.json", args.folder)
    elif not args.no_tokenizer:
        train_tokenizer(args.folder, m["vocab"], args.pattern)
    if not args.no_tokenizer:
        special = special_tokens(args.folder)
    bos, eos = special[0], special[1:]
    write_json(args.folder / "config.json", config(m, args, bos, eos))
    write_json(args.folder / "generation_config.json", {"bos_token_id": bos, "eos_token_id": eos})
    write_json(args.folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": SPECIAL[0], "eos_token": SPECIAL[1]})
    size = save(args.folder, m, args)
    print("%s: %.3f GB of weights in %.1f s" % (args.folder, size / 1e9, time.time() - start))


main()
