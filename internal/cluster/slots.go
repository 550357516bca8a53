package cluster

import (
	"context"
	"sync"

	"go.temporal.io/sdk/worker"
)

// slots counts the tasks that a worker has. The engine is asked for another one
// only while there is room; the orders of tasks that are here need none. A worker
// asks several queues at once, so more than it has room for may come: it refuses
// what is too much, and another one has it.
type slots struct {
	mu    sync.Mutex
	most  int
	taken int
	freed chan struct{} // closed when a slot is free
}

func newSlots(most int) *slots { return &slots{most: most, freed: make(chan struct{})} }

// tuner is what limits a poller to the slots.
func (s *slots) tuner() (worker.WorkerTuner, error) {
	other, err := worker.NewFixedSizeSlotSupplier(1)
	if err != nil {
		return nil, err
	}
	return worker.NewCompositeTuner(worker.CompositeTunerOptions{
		WorkflowSlotSupplier: other, ActivitySlotSupplier: s, LocalActivitySlotSupplier: other, NexusSlotSupplier: other,
		SessionActivitySlotSupplier: other,
	})
}

// take takes a slot; with limited only if there is room.
func (s *slots) take(limited bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limited && s.taken >= s.most {
		return false
	}
	s.taken++
	return true
}

func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	close(s.freed)
	s.freed = make(chan struct{})
}

// close leaves no room for more.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = 0
}

// used is how many are taken.
func (s *slots) used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// ReserveSlot waits for a free slot. Who has the task takes it.
func (s *slots) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		s.mu.Lock()
		freed, room := s.freed, s.taken < s.most
		s.mu.Unlock()
		if room {
			return &worker.SlotPermit{}, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TryReserveSlot gives none: what is eager would take the place of what waits.
func (s *slots) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit { return nil }

// MarkSlotUsed has nothing to note.
func (s *slots) MarkSlotUsed(worker.SlotMarkUsedInfo) {}

// ReleaseSlot has nothing to give back.
func (s *slots) ReleaseSlot(worker.SlotReleaseInfo) {}

// MaxSlots is how many there are.
func (s *slots) MaxSlots() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}
