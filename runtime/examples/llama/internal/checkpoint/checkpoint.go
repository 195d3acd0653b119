// Package checkpoint reads checkpoints of Llama-family models as Hugging Face stores them: a folder
// with config.json and the weights in safetensors files.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// A Checkpoint is an open folder of weights. Its methods other than Close may be called by several
// goroutines at the same time.
type Checkpoint struct {
	config  Config
	tensors map[string]*Tensor
	files   []*os.File
}

// Open opens a folder. It checks that the configuration is supported, that the files are whole, and
// that each weight exists and has the shape that the configuration asks for. It does not read the
// weights.
func Open(dir string) (*Checkpoint, error) {
	c := &Checkpoint{tensors: make(map[string]*Tensor)}
	if err := c.open(dir); err != nil {
		c.Close()
		return nil, fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return c, nil
}

func (c *Checkpoint) open(dir string) (err error) {
	if c.config, err = readConfig(dir); err != nil {
		return err
	}
	index, err := readIndex(dir)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(index)) {
		if err := c.add(dir, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, tensor := range index[name] {
			if c.tensors[tensor] == nil {
				return fmt.Errorf("%s: tensor %s is missing, although the index lists it", name, tensor)
			}
		}
	}
	return c.checkWeights()
}

// readIndex returns the names of each file's tensors, as the index lists them. Without an index
// there is one file, and its header lists the tensors.
func readIndex(dir string) (map[string][]string, error) {
	const name = "model.safetensors.index.json"
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string][]string{"model.safetensors": nil}, nil
	} else if err != nil {
		return nil, err
	}
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	tensors := make(map[string][]string)
	for tensor, file := range index.Files {
		if filepath.Base(file) != file || !filepath.IsLocal(file) {
			return nil, fmt.Errorf("%s: %q is not the name of a file in the folder", name, file)
		}
		tensors[file] = append(tensors[file], tensor)
	}
	if len(tensors) == 0 {
		return nil, fmt.Errorf("%s: weight_map is empty", name)
	}
	return tensors, nil
}

// add opens a file and adds its tensors.
func (c *Checkpoint) add(dir, name string) error {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	c.files = append(c.files, f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	tensors, err := readHeader(f, info.Size())
	if err != nil {
		return err
	}
	for _, t := range tensors {
		if c.tensors[t.Name] != nil {
			return fmt.Errorf("tensor %s is in another file too", t.Name)
		}
		c.tensors[t.Name] = t
	}
	return nil
}

// Config returns the model's configuration.
func (c *Checkpoint) Config() Config {
	config := c.config
	config.EOS = slices.Clone(config.EOS)
	return config
}

// Tensor returns the tensor with a name such as model.layers.0.self_attn.q_proj.weight.
func (c *Checkpoint) Tensor(name string) (*Tensor, error) {
	t := c.tensors[name]
	switch {
	case t == nil:
		return nil, fmt.Errorf("checkpoint: tensor %s is missing", name)
	case t.DType == 0:
		return nil, fmt.Errorf("checkpoint: tensor %s has numbers of type %s: not supported", name, t.stored)
	}
	return t, nil
}

// Close closes the files. Tensors cannot be read any more.
func (c *Checkpoint) Close() error {
	var all []error
	for _, f := range c.files {
		all = append(all, f.Close())
	}
	c.files = nil
	return errors.Join(all...)
}
