package memory

// TrimBlocks releases unused memory of a portable pool, also while the device is being closed.
func (p *Pool) TrimBlocks() error { return p.blocks.Trim(0, p.order()) }
