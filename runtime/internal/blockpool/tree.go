package blockpool

// A tree is a treap of blocks, ordered by size, seq and address. Each block stores the smallest seq
// of its subtree in min.

func (b *block) less(c *block) bool {
	if b.size != c.size {
		return b.size < c.size
	}
	if b.seq != c.seq {
		return b.seq < c.seq
	}
	return b.addr < c.addr
}

// update sets the field min from the block's own seq and the min of its children.
func (b *block) update() {
	b.min = b.seq
	if b.left != nil {
		b.min = min(b.min, b.left.min)
	}
	if b.right != nil {
		b.min = min(b.min, b.right.min)
	}
}

func insert(at **block, b *block) {
	for *at != nil && (*at).prio >= b.prio {
		c := *at
		c.min = min(c.min, b.seq)
		if b.less(c) {
			at = &c.left
		} else {
			at = &c.right
		}
	}
	b.left, b.right = cut(*at, b)
	b.update()
	*at = b
}

// cut splits the tree t into a tree of the blocks that are less than b and a tree of the others.
func cut(t, b *block) (before, after *block) {
	if t == nil {
		return nil, nil
	}
	if b.less(t) {
		before, t.left = cut(t.left, b)
		after = t
	} else {
		t.right, after = cut(t.right, b)
		before = t
	}
	t.update()
	return before, after
}

// remove removes b from the tree t and returns the new root.
func remove(t, b *block) *block {
	if t == b {
		t = meld(b.left, b.right)
		b.left, b.right = nil, nil
		return t
	}
	if b.less(t) {
		t.left = remove(t.left, b)
	} else {
		t.right = remove(t.right, b)
	}
	if t.min == b.seq {
		t.update()
	}
	return t
}

// meld merges two trees. All blocks of t are less than all blocks of u.
func meld(t, u *block) *block {
	switch {
	case t == nil:
		return u
	case u == nil:
		return t
	case t.prio >= u.prio:
		t.min = min(t.min, u.min)
		t.right = meld(t.right, u)
		return t
	}
	u.min = min(t.min, u.min)
	u.left = meld(t, u.left)
	return u
}

// fit returns the first block of the tree that has at least n bytes, or nil.
func fit(t *block, n uint64) (best *block) {
	for t != nil {
		if t.size >= n {
			best, t = t, t.left
		} else {
			t = t.right
		}
	}
	return best
}

// fitOrdered returns the first block that has at least n bytes and whose mark needs no wait, or
// nil. It skips subtrees in which every mark needs a wait.
func fitOrdered(t *block, n uint64, q *query, tl int32) *block {
	if t == nil || !q.after(tl, t.min) {
		return nil
	}
	if t.size >= n {
		if b := fitOrdered(t.left, n, q, tl); b != nil {
			return b
		}
		if q.after(tl, t.seq) {
			return t
		}
	}
	return fitOrdered(t.right, n, q, tl)
}

// first returns a block with the smallest seq of the tree whose root is b.
func (b *block) first() *block {
	for b.seq != b.min {
		if b.left != nil && b.left.min == b.min {
			b = b.left
		} else {
			b = b.right
		}
	}
	return b
}
