# Writes how Hugging Face's libraries understand a checkpoint, for the tests in Go:
#
#     python reference.py tokens FOLDER     # tokens.json: tokens of texts, and texts of tokens
#     python reference.py weights FOLDER    # reference.json: rotary frequencies, checksums of weights
#     python reference.py logits FOLDER     # logits.json and logits.f32: float32 logits of sequences
#
# The logits are those of transformers in float32, computed with the weights as they are stored. Each
# sequence is a prompt and the greedy tokens that follow. Row i of a sequence in logits.f32 has the
# logits after the prompt and i tokens: little-endian float32, one number for each token.

import argparse
import glob
import json
import os
import pathlib
import random
import zlib

TEXTS = pathlib.Path(__file__).resolve().parent.parent / "internal/tokenizer/testdata/texts.json"


def read_json(path):
    with open(path) as f:
        return json.load(f)


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1)


def tokens(folder, args):
    from tokenizers import Tokenizer

    t = Tokenizer.from_file(folder + "/tokenizer.json")
    texts = read_json(args.texts or TEXTS)
    texts += [file.read_text() for file in sorted(pathlib.Path(__file__).parent.glob("*.py"))]
    cases = []
    for text in texts:
        plain = t.encode(text, add_special_tokens=False).ids
        cases.append({
            "text": text, "tokens": plain, "special": t.encode(text, add_special_tokens=True).ids,
            "decoded": t.decode(plain, skip_special_tokens=True)})
    numbers = random.Random(1)
    for _ in range(args.decodes):
        ids = [numbers.randrange(t.get_vocab_size()) for _ in range(numbers.randrange(1, 12))]
        cases.append({"tokens": ids, "decoded": t.decode(ids, skip_special_tokens=True)})
    lines = ",\n".join(json.dumps(c) for c in cases)  # a line each, as differences read well
    pathlib.Path(folder, "tokens.json").write_text("[\n%s\n]\n" % lines)


def stored(folder):
    """Returns the weights as they are stored."""
    from safetensors.torch import load_file

    all = {}
    for file in glob.glob(folder + "/*.safetensors"):
        all.update(load_file(file))
    return all


def load(folder):
    """Returns the model of transformers in float32, on the GPU if there is one."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

    torch.set_float32_matmul_precision("highest")
    fields = read_json(folder + "/config.json")
    if "quantization_config" in fields:
        # transformers needs another package for FP8: multiply the scales here.
        del fields["quantization_config"]
        model, all = LlamaForCausalLM(LlamaConfig.from_dict(fields)), stored(folder)
        scales = {name: s for name, s in all.items() if name.endswith("_scale")}
        all = {
            name: w.float() * scales[name + "_scale"].float() if name + "_scale" in scales else w.float()
            for name, w in all.items() if name not in scales}
        missing = set(model.load_state_dict(all, strict=False).missing_keys)
        if missing - {"lm_head.weight"} or (missing and not fields["tie_word_embeddings"]):
            raise SystemExit("missing weights: %s" % missing)
        model.tie_weights()
    else:
        model = AutoModelForCausalLM.from_pretrained(
            folder, config=AutoConfig.from_pretrained(folder), dtype=torch.float32, attn_implementation="eager")
    return model.float().eval().to("cuda" if torch.cuda.is_available() else "cpu")


def weights(folder, args):
    import torch

    model = load(folder)
    rotary = model.model.rotary_emb
    sums = {}
    for name, t in stored(folder).items():
        raw = t.contiguous().flatten().view(torch.uint8).numpy().tobytes()
        sums[name] = {"shape": list(t.shape), "crc32": zlib.crc32(raw)}
    write_json(folder + "/reference.json", {
        "inv_freq": rotary.inv_freq.float().tolist(), "attention": float(rotary.attention_scaling), "tensors": sums})


def prompts(folder, lengths, vocab):
    """Returns token lists of these lengths: a text of this repository if there is a tokenizer."""
    if os.path.exists(folder + "/tokenizer.json"):
        from tokenizers import Tokenizer

        text = (pathlib.Path(__file__).resolve().parents[4] / "README.md").read_text()
        ids = Tokenizer.from_file(folder + "/tokenizer.json").encode(text * 20).ids
    else:
        ids = [random.Random(1).randrange(vocab) for _ in range(max(lengths))]
    if len(ids) < max(lengths):
        raise SystemExit("the text has %d tokens only" % len(ids))
    return [ids[:n] for n in lengths]


def logits(folder, args):
    import torch

    model, sequences, rows = load(folder), [], []
    with torch.inference_mode():
        for prompt in prompts(folder, args.lengths, model.config.vocab_size):
            following, cache = [], None
            ids = torch.tensor([prompt], device=model.device)
            for _ in range(args.steps):
                out = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
                cache, row = out.past_key_values, out.logits[0, -1].float()
                rows.append(row.cpu())
                following.append(int(row.argmax()))
                ids = torch.tensor([following[-1:]], device=model.device)
            sequences.append({"prompt": prompt, "tokens": following})
        result = {"vocab": model.config.vocab_size, "sequences": sequences}
        all = torch.stack(rows)
        result["deviation"] = float(all.std())
        if args.bf16 and torch.cuda.is_available():
            # The error of transformers in bf16, for comparison: same sequences, one pass each.
            model, at, square, wrong = model.bfloat16(), 0, 0.0, 0
            for s in sequences:
                ids = torch.tensor([s["prompt"] + s["tokens"][:-1]], device=model.device)
                got = model(ids, logits_to_keep=args.steps).logits[0].float().cpu()
                want = all[at:at + args.steps]
                square += float((got - want).square().sum())
                wrong += int((got.argmax(-1) != want.argmax(-1)).sum())
                at += args.steps
            result["bf16"] = {"relative": (square / float(all.square().sum())) ** 0.5, "wrong_tokens": wrong}
    with open(folder + "/logits.f32", "wb") as f:
        f.write(all.contiguous().numpy().tobytes())
    write_json(folder + "/logits.json", result)
    print(json.dumps({"rows": len(all), "deviation": result["deviation"], "bf16": result.get("bf16")}))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["tokens", "weights", "logits"])
    p.add_argument("folder", nargs="+")
    p.add_argument("--texts", help="JSON file with a list of texts")
    p.add_argument("--decodes", type=int, default=20, help="random token lists to decode")
    p.add_argument("--lengths", type=int, nargs="+", default=[1, 17, 300, 512], help="of the prompts")
    p.add_argument("--steps", type=int, default=32, help="tokens after each prompt")
    p.add_argument("--bf16", action="store_true", help="measure the error of bf16 too")
    args = p.parse_args()
    for folder in args.folder:
        {"tokens": tokens, "weights": weights, "logits": logits}[args.what](folder.rstrip("/"), args)


main()
