package compile

import (
	"maps"
	"slices"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// Options are for functions that compile a fixed source, such as the functions that tools/kernelgen
// writes. The zero Options add nothing to the source.
type Options struct {
	// Cache is the folder for compiled code.
	Cache Cache

	// Headers are added to the source's headers. A header replaces the source's header of the same
	// name.
	Headers map[string]string

	// Options, LinkOptions and Link are appended to the lists of the source.
	Options     []string
	Link        []Source
	LinkOptions []string

	// Revision, if not empty, replaces the Revision of the source.
	Revision string
}

// Compile compiles a source with the additions of the options, and loads the code. See
// [Cache.Compile].
func (o Options) Compile(dev *gpu.Device, src Source) (*gpu.Module, Info, error) {
	headers := make(map[string]string, len(src.Headers)+len(o.Headers))
	maps.Copy(headers, src.Headers)
	maps.Copy(headers, o.Headers)
	src.Headers = headers
	src.Options = slices.Concat(src.Options, o.Options)
	src.Link = slices.Concat(src.Link, o.Link)
	src.LinkOptions = slices.Concat(src.LinkOptions, o.LinkOptions)
	if o.Revision != "" {
		src.Revision = o.Revision
	}
	return o.Cache.Compile(dev, src)
}
