package cluster

import (
	"context"
	"sync"

	"go.temporal.io/sdk/worker"
)

// slots counts the tasks that a worker has. The engine is asked for another one
// only while there is room; the orders of tasks that are here need none.
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

func (s *slots) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken++
}

func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	close(s.freed)
	s.freed = make(chan struct{})
}

// ReserveSlot waits for a free slot.
func (s *slots) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		s.mu.Lock()
		freed := s.freed
		if s.taken < s.most {
			s.taken++
			s.mu.Unlock()
			return &worker.SlotPermit{}, nil
		}
		s.mu.Unlock()
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

// ReleaseSlot gives back what was reserved. A task that goes on has its own slot.
func (s *slots) ReleaseSlot(worker.SlotReleaseInfo) { s.give() }

// MaxSlots is how many there are.
func (s *slots) MaxSlots() int { return s.most }
