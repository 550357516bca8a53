package board

import (
	"fmt"
	"strings"
)

// Cycle looks for a case that waits for itself, from each of starts on. waits
// tells what a case waits for directly: what it needs, what it holds, and what
// the operations above it need. A done task waits for nothing any more, a done
// operation may be opened again. An error of waits ends the search. The path begins
// and ends with the same id; it is nil when there is no cycle.
//
// Where a board had no cycle, a change can only make one through the cases
// that it changed: they are the starts.
func Cycle(starts []string, waits func(id string) ([]string, error)) (path []string, err error) {
	const open, closed = 1, 2
	mark := map[string]int{}
	type step struct {
		id   string
		next []string
	}
	for _, start := range starts {
		if mark[start] != 0 {
			continue
		}
		next, err := waits(start)
		if err != nil {
			return nil, err
		}
		mark[start] = open
		for way := []step{{start, next}}; len(way) > 0; {
			top := &way[len(way)-1]
			if len(top.next) == 0 {
				mark[top.id] = closed
				way = way[:len(way)-1]
				continue
			}
			id := top.next[0]
			top.next = top.next[1:]
			switch mark[id] {
			case closed:
			case open:
				for i := range way {
					if way[i].id == id || path != nil {
						path = append(path, way[i].id)
					}
				}
				return append(path, id), nil
			default:
				next, err := waits(id)
				if err != nil {
					return nil, err
				}
				mark[id] = open
				way = append(way, step{id, next})
			}
		}
	}
	return nil, nil
}

// CycleError names a cycle: its first and last id are the same.
type CycleError struct{ Path []string }

func (e *CycleError) Error() string {
	const most = 12
	path := e.Path
	if len(path) == 2 {
		return fmt.Sprintf("%s would wait for itself", path[0])
	}
	words := strings.Join(path, " → ")
	if len(path) > most {
		words = fmt.Sprintf("%s → … (%d more) → %s", strings.Join(path[:most-2], " → "), len(path)-most+1, path[len(path)-1])
	}
	return "a cycle, in which nothing could ever start: " + words
}
