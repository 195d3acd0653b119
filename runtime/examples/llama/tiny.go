package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint/checkpointtest"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/tokenizer"
)

// writeTiny makes a folder with a tiny model. The weights of the model are random, and each token
// is a byte.
func writeTiny(folder string) error {
	vocab := map[string]int{}
	for b, r := range tokenizer.Alphabet() {
		vocab[string(r)] = b
	}
	text, err := json.Marshal(map[string]any{
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
		"decoder":       map[string]any{"type": "ByteLevel"},
		"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}},
	})
	if err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "tokenizer.json"), text, 0o666); err != nil {
		return err
	}
	return checkpointtest.Write(folder, checkpoint.Config{
		Layers: 2, Width: 128, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 256, Vocab: len(vocab), MaxTokens: 512,
		Eps: 1e-5, Theta: 10000, Rope: checkpoint.Rope{Type: "default", Factor: 1, Attention: 1}, BOS: -1,
	}, 1, 1)
}
