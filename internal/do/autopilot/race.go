package autopilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file has races: several agents on one task, in one slot.
//
// The first racer is the task's own slot, run and workspace. Each other one has a
// slot, a run and a workspace beside them, with names as [board.RacerName] makes
// them. The first whose work is verified wins, and the others are stopped; where the
// best is picked, all are waited for. The winner's run and workspace become the task's
// in one transaction, and it continues as if it had been alone. Until then a crash
// leaves runs that the next start finds and weighs again.

// racer is one that takes part.
type racer struct {
	*slot
	cancel context.CancelFunc // ends what comes before its run
	past   *loop.State        // what it came to before a crash, if that still holds
	merit  schedule.Merit     // of its work, where the best is picked
	w      pool.Workspace
	state  loop.State
	err    error
	absent bool // it could not begin
}

func (r *racer) hasWonRace() bool { return r.err == nil && r.state.Status == loop.Completed }

// racersFor are the agents that are to race for the task of a slot; one that works
// alone is the winner of an earlier race.
func (p *attempts) racersFor(ctx context.Context, l *slot) ([]string, error) {
	if trouble := schedule.RaceTrouble(l.task.Tags); trouble != "" {
		p.warnAbout(l.task.ID, trouble)
	}
	names := schedule.Racers(l.task.Tags, p.o.Race)
	if len(names) < 2 || p.kernel != nil {
		return nil, nil
	}
	history, err := p.o.Store.CaseHistory(ctx, l.task.ID)
	if err != nil {
		return nil, err
	}
	last, err := p.o.Store.Latest(ctx, p.o.Root, l.task.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	over := schedule.RacedFor(history)
	if !over && last.Status == string(loop.Completed) {
		if over, err = p.haveRacersEnded(ctx, l); err != nil {
			return nil, err
		}
	}
	if !over {
		return names, nil
	}
	if slices.Contains(names, last.Agent) {
		l.agent = last.Agent
	}
	for n := 2; n <= board.MaxRacers; n++ { // those that pawl did not get to stop
		if err := p.endRacer(ctx, board.RacerName(l.task.ID, n)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// haveRacersEnded reports whether no racer is to be waited for, now that the task's own run is
// complete: a crash may have come before the best was picked.
func (p *attempts) haveRacersEnded(ctx context.Context, l *slot) (bool, error) {
	if !p.picksBest(l) {
		return true, nil
	}
	for n := 2; n <= board.MaxRacers; n++ {
		run, err := p.o.Store.Latest(ctx, p.o.Root, board.RacerName(l.task.ID, n))
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil || loop.Status(run.Status).Active() {
			return false, err
		}
	}
	return true, nil
}

func (p *reporter) picksBest(l *slot) bool { return schedule.PicksBest(l.task.Tags, p.o.PickBest) }

// endRacer ends what the last run of a name still has running, when no process drives it.
func (p *attempts) endRacer(ctx context.Context, name string) error {
	return endLeftRun(ctx, p.o.Store, p.o.Root, p.o.StateDir, name)
}

func endLeftRun(ctx context.Context, db *store.Store, root, stateDir, name string) error {
	run, err := db.Latest(ctx, root, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil || !loop.Status(run.Status).Active() || storedrun.Alive(run.Owner) {
		return err
	}
	return lanes.EndUnattended(ctx, runFolderBelow(stateDir, run.ID), run.ID)
}

// runRaceOfAgents has several agents work on a task, and gives it what the winner made.
func (p *attempts) runRaceOfAgents(ctx, ready context.Context, l *slot, agents []string) schedule.Outcome {
	all, err := p.makeRacers(ctx, l, agents)
	if err != nil {
		return outcomeNotBegun(err)
	}
	winner, err := p.runAllRacers(ctx, ready, l, all)
	l.setOthers(nil)
	if err != nil {
		return outcomeNotBegun(err)
	}
	if winner == nil {
		return p.outcomeWithoutWinner(ctx, all)
	}
	if err := p.adoptWinner(ctx, l, all[0], winner); err != nil {
		for _, r := range all {
			p.releaseRacer(ctx, r, pool.Keep("its race could not be ended"))
		}
		return outcomeNotBegun(err)
	}
	for _, r := range all {
		if r != winner {
			p.releaseRacer(ctx, r, pool.GivenUp("another agent won the race"))
		}
	}
	won := winner.racerLabel()
	l.hold, l.closed, l.allow, l.racers = winner.hold, winner.closed, winner.allow, 0
	l.setRunAndCount(winner.state, winner.idOfRun())
	o := p.endAttempt(ctx, l, winner.w, winner.state, nil)
	how, n := "was the first", 0
	if p.picksBest(l) {
		how = "did best"
	}
	for _, r := range all {
		if !r.absent {
			n++
		}
	}
	if n == 1 {
		o.Why = fmt.Sprintf("%s ran alone: %s", won, o.Why)
	} else {
		o.Why = fmt.Sprintf("%s %s of %d agents: %s", won, how, n, o.Why)
	}
	return o
}

// makeRacers makes the racers of a task.
func (p *attempts) makeRacers(ctx context.Context, l *slot, agents []string) ([]*racer, error) {
	history, err := p.o.Store.CaseHistory(ctx, l.task.ID)
	if err != nil {
		return nil, err
	}
	var all []*racer
	for i, name := range agents {
		r := &racer{slot: l}
		if i > 0 {
			r.slot = newSlotOfTask(l.task, false)
			r.name, r.lead = board.RacerName(l.task.ID, i+1), l
		}
		r.agent, r.racers = name, len(agents)
		run, err := p.o.Store.Latest(ctx, p.o.Root, r.name)
		var past schedule.Past
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			if err := p.readPastRun(ctx, run, &past); err != nil {
				return nil, err
			}
		}
		r.adopt = past.Run != nil && l.adopt
		if s := past.Run; s != nil && schedule.Stands(history, *s, past.RestedAt) {
			r.past, r.adopt = s, true
		}
		all = append(all, r)
	}
	return all, nil
}

// runAllRacers lets the racers run until one has won, or all have ended. It returns when
// all have ended. Where the first had won before a crash, the others do not start again.
func (p *attempts) runAllRacers(ctx, ready context.Context, l *slot, all []*racer) (*racer, error) {
	start, best := all, p.picksBest(l)
	won := slices.IndexFunc(all, func(r *racer) bool { return r.past != nil && r.past.Status == loop.Completed })
	if won >= 0 && !best {
		start = all[won : won+1]
		for _, r := range all {
			if err := p.endRacer(ctx, r.name); err != nil {
				return nil, err
			}
		}
	}
	var others []*slot
	ended := make(chan *racer, len(start))
	for _, r := range start {
		var begin context.Context
		begin, r.cancel = context.WithCancel(ready)
		if r.slot != l {
			others = append(others, r.slot)
		}
		go func() {
			r.w, r.state, r.err = p.attemptRun(ctx, begin, r.slot)
			ended <- r
		}()
	}
	l.setOthers(others)
	var winner *racer
	for range start {
		r := <-ended
		if r.err != nil && winner == nil && ready.Err() == nil {
			r.absent = true
			p.warnAbout(l.task.ID, r.racerLabel()+" does not race: "+r.err.Error())
		}
		if winner == nil && !best && r.hasWonRace() {
			winner = r
			for _, r := range start {
				r.askRunToStop(loop.CauseRaced)
				r.cancel()
			}
		}
	}
	for _, r := range start {
		r.cancel()
	}
	l.forgetAsks()
	if best {
		winner = p.bestRacer(ctx, start)
	}
	return winner, nil
}

// bestRacer is the one whose verified work is the best; nil where there is none. Of equals
// it is the one that is named first.
func (p *attempts) bestRacer(ctx context.Context, all []*racer) (best *racer) {
	for _, r := range all {
		if !r.hasWonRace() {
			continue
		}
		var err error
		if r.merit, err = p.meritOfRacer(ctx, r); err != nil {
			p.warnAbout(r.task.ID, "cannot judge the work of "+r.racerLabel()+": "+err.Error())
		}
		if best == nil || r.merit.Beats(best.merit) {
			best = r
		}
	}
	return best
}

// meritOfRacer what the last iteration of a racer left.
func (p *attempts) meritOfRacer(ctx context.Context, r *racer) (schedule.Merit, error) {
	m := schedule.Merit{Score: -1}
	last, err := p.o.Store.LastIterations(ctx, r.idOfRun(), 1)
	if err != nil || len(last) == 0 || last[0].TreeAfter == "" {
		return m, err
	}
	tree, err := p.o.Pool.Tree(ctx, r.w, 0)
	if err != nil {
		return m, err
	}
	stat, err := tree.DiffStat(ctx, r.w.Base, last[0].TreeAfter)
	return schedule.Merit{Score: last[0].Score, Files: stat.Files, Lines: stat.Added + stat.Deleted}, err
}

// adoptWinner makes what a racer has the task's.
func (p *attempts) adoptWinner(ctx context.Context, l *slot, first, r *racer) error {
	if r == first {
		return nil
	}
	w, err := p.o.Pool.Swap(ctx, l.task.ID, r.w)
	if err != nil {
		return err
	}
	if first.w.ID != "" {
		first.w.ID = r.w.ID
	}
	r.w = w
	return nil
}

// outcomeWithoutWinner is the outcome of a race in which no work was verified. Where a run
// resumes later, so does the race; else it is the outcome of the first racer.
func (p *attempts) outcomeWithoutWinner(ctx context.Context, all []*racer) schedule.Outcome {
	first, rests := all[0], all[0]
	for _, r := range all {
		if r.err == nil && r.state.Status == loop.Paused && r.state.Question == nil {
			rests = r
			break
		}
	}
	var outcome schedule.Outcome
	why := ""
	for _, r := range all {
		o := p.endAttempt(ctx, r.slot, r.w, r.state, r.err)
		if r == rests {
			outcome = o
		} else if r != first {
			why += fmt.Sprintf("; %s is %s: %s", r.racerLabel(), cmp.Or(string(o.Status), "not at work"), o.Why)
		}
	}
	outcome.Why += why
	return outcome
}

// releaseRacer gives a workspace back, where there is one.
func (p *attempts) releaseRacer(ctx context.Context, r *racer, how pool.How) {
	if r.w.ID != "" {
		p.releaseWorkspace(ctx, r.w, how)
	}
}

// racerLabel names one that races; "" is for one that works alone.
func (l *slot) racerLabel() string {
	if l.racers < 2 {
		return ""
	}
	return cmp.Or(l.agent, l.name)
}

func (l *slot) otherRacers() []*slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.also
}

func (l *slot) setOthers(all []*slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.also = all
}
