package explore

func (e *explorer) exhaust() error { return nil }
