package queue

// Looks decide when an open pull request is asked about again. What a change of it does not show, checks and
// whether it can be merged, is asked for the less often the longer that is ago: waiting costs the forge next to
// nothing.
// The zero value is ready to use.
type Looks struct {
	of map[string]*Look // by entry
	// rounds counts reviews of all requests, and late is the first that may ask again about one which has not changed.
	rounds, late int
}

// Look counts how often a request was looked at since it changed, and keeps Why it could not be merged then.
type Look struct {
	Why   string
	state string
	count int
	owed  bool // one that is due, and waits for others
}

// lateEvery is after how many rounds one request more is asked about, whatever their
// number: with a round each two minutes that is six an hour, of three calls at most.
const lateEvery = 5

// BeginRound counts a review of all requests. In a fresh one each is asked about.
func (l *Looks) BeginRound(fresh bool) {
	l.rounds++
	if fresh {
		clear(l.of)
	}
}

// Of is the look at the request of an entry, begun anew with each state of it.
func (l *Looks) Of(id, state string) *Look {
	if p := l.of[id]; p != nil && p.state == state {
		return p
	}
	if l.of == nil {
		l.of = map[string]*Look{}
	}
	p := &Look{state: state}
	l.of[id] = p
	return p
}

// IsDue counts a look, and reports whether it is the first, the second, the fourth, and then each
// 32nd at least, but for the bound of [lateEvery].
func (l *Looks) IsDue(p *Look) bool {
	p.count++
	p.owed = p.owed || p.count&(p.count-1) == 0 || p.count%32 == 0
	late := p.count > 2
	waits := late && l.rounds < l.late
	if waits || !p.owed {
		return false
	}
	if p.owed = false; late {
		l.late = l.rounds + lateEvery
	}
	return true
}
