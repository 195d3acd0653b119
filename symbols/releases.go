package symbols

import "slices"

// covers reports whether a release is in a span.
func (s Span) covers(v Version) bool { return s.Since.Compare(v) <= 0 && v.Compare(s.Until) <= 0 }

// has reports whether a release has a record. The arguments since and until are the first and the
// last release that has the record; zero means no limit.
func has(since, until, v Version) bool {
	return (since.IsZero() || since.Compare(v) <= 0) && (until.IsZero() || v.Compare(until) <= 0)
}

// other returns the entry that covers a release, or nil if the release has the bound record.
func other[T any](others []T, v Version, span func(*T) Span) *T {
	for i := range others {
		if span(&others[i]).covers(v) {
			return &others[i]
		}
	}
	return nil
}

// At returns the declarations of a release that was read: its records, with its layouts, numbers
// and parameters. It leaves out records that only another implementation has. It
// leaves out functions whose declaration in that release the table cannot hold. It keeps aliases and
// handles of other releases: a function may have had the same parameter under another name.
func (t *Table) At(v Version) *Table {
	out := *t
	out.Version, out.Releases = v, []Version{v}
	out.Handles = slices.DeleteFunc(slices.Clone(t.Handles), func(h Handle) bool { return h.Lib != "" })
	out.Scalars, out.Callbacks, out.Enums, out.Structs, out.Constants, out.Functions = nil, nil, nil, nil, nil, nil
	for _, s := range t.Scalars {
		if s.Lib != "" || !has(s.Since, s.Until, v) {
			continue
		}
		if o := other(s.Others, v, func(o *OtherScalar) Span { return o.Span }); o != nil {
			s.Type = o.Type
		}
		s.Others = nil
		out.Scalars = append(out.Scalars, s)
	}
	for _, c := range t.Callbacks {
		if c.Lib != "" || !has(c.Since, c.Until, v) {
			continue
		}
		if o := other(c.Others, v, func(o *Signature) Span { return o.Span }); o != nil {
			c.Result, c.Params = o.Result, o.Params
		}
		c.Others = nil
		out.Callbacks = append(out.Callbacks, c)
	}
	for _, e := range t.Enums {
		if !has(e.Since, e.Until, v) {
			continue
		}
		if o := other(e.Others, v, func(o *OtherEnum) Span { return o.Span }); o != nil {
			e.Signed, e.Size = o.Signed, o.Size
		}
		values := e.Values
		e.Values, e.Others = nil, nil
		for _, x := range values {
			if x.Lib != "" || !has(x.Since, x.Until, v) {
				continue
			}
			if o := other(x.Others, v, func(o *OtherValue) Span { return o.Span }); o != nil {
				x.Value = o.Value
			}
			x.Others = nil
			e.Values = append(e.Values, x)
		}
		out.Enums = append(out.Enums, e)
	}
	for _, s := range t.Structs {
		if s.Lib != "" || !has(s.Since, s.Until, v) || other(s.Opaque, v, func(o *Span) Span { return *o }) != nil {
			continue
		}
		if o := other(s.Others, v, func(o *Layout) Span { return o.Span }); o != nil {
			s.Size, s.Align, s.Fields = o.Size, o.Align, o.Fields
		}
		s.Others, s.Opaque = nil, nil
		out.Structs = append(out.Structs, s)
	}
	for _, c := range t.Constants {
		if c.Lib != "" || !has(c.Since, c.Until, v) {
			continue
		}
		if o := other(c.Others, v, func(o *OtherConstant) Span { return o.Span }); o != nil {
			c.Type, c.Value = o.Type, o.Value
		}
		c.Others = nil
		out.Constants = append(out.Constants, c)
	}
	for _, f := range t.Functions {
		if f.Lib != "" || !has(f.Since, f.Until, v) {
			continue
		}
		if o := other(f.Others, v, func(o *Signature) Span { return o.Span }); o != nil {
			if o.Why != "" {
				continue
			}
			f.Result, f.Params = o.Result, o.Params
		}
		f.Others = nil
		out.Functions = append(out.Functions, f)
	}
	return &out
}
