package board

// count sets the counters of new cases.
func (r *resolver) count() {
	kids := make([][]int, len(r.cases))
	var roots []int
	for i := range r.cases {
		if j, ok := r.index[r.cases[i].Parent]; ok {
			kids[j] = append(kids[j], i)
		} else {
			roots = append(roots, i)
		}
	}
	for _, i := range roots {
		r.finish(i, kids)
	}
	for i := range r.cases {
		r.countNeeds(&r.cases[i])
	}
	for _, i := range roots {
		if parent, ok := r.old[r.cases[i].Parent]; ok {
			r.cases[i].Held = parent.Holds()
		}
		r.hold(i, kids)
	}
}

// finish counts the children of an operation, the lowest first: one that
// holds something is done exactly when all of that is.
func (r *resolver) finish(i int, kids [][]int) {
	c := &r.cases[i]
	for _, k := range kids[i] {
		r.finish(k, kids)
		c.Children++
		if r.cases[k].Status == Done {
			c.ChildrenDone++
		}
	}
	switch {
	case c.Children == 0:
	case c.Children == c.ChildrenDone:
		c.Status = Done
	case c.Status == Done:
		c.Status = Pending
	}
}

func (r *resolver) countNeeds(c *Case) {
	for _, need := range c.Needs {
		if j, ok := r.index[need]; ok {
			if r.cases[j].Status != Done {
				c.Unmet++
			}
			if c.Status != Done {
				r.cases[j].Unblocks++
			}
			continue
		}
		if r.old[need].Status != Done {
			c.Unmet++
		}
	}
}

// hold hands down what holds a case up, and how far its operation is.
func (r *resolver) hold(i int, kids [][]int) {
	c := &r.cases[i]
	for _, k := range kids[i] {
		kid := &r.cases[k]
		kid.Held, kid.Siblings, kid.SiblingsDone = c.Holds(), c.Children, c.ChildrenDone
		r.hold(k, kids)
	}
}
