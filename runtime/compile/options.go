package compile

import (
	"maps"
	"slices"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// Options are for functions that compile a source of their own, as tools/kernelgen writes them. The
// zero Options add nothing to the source.
type Options struct {
	// Cache says what is kept on disk.
	Cache Cache

	// Headers are added to those of the source. One of the same name takes the place of the
	// source's.
	Headers map[string]string

	// Options and LinkOptions come behind those of the source, and Link too.
	Options     []string
	Link        []Source
	LinkOptions []string

	// Revision is the version of the files that the compiler reads; see [Source].
	Revision string
}

// Compile compiles a source with what the options add to it, and loads it. See [Cache.Compile].
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
