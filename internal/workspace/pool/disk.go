package pool

import "fmt"

// Room is what the free room of a disk allows.
type Room int

// From most to least. Thresholds are free bytes.
const (
	RoomEnough Room = iota // from 1 GB
	RoomWarn               // below 1 GB: say so
	RoomClean              // below 500 MB: remove idle workspaces, start nothing
	RoomStop               // below 100 MB: stop what runs
)

const mb = 1_000_000

// Judge says what the free bytes of a disk allow, and for everything but
// [RoomEnough] why, in words.
func Judge(free uint64, dir string) (Room, string) {
	said := fmt.Sprintf("%d MB are free on the disk of %s", free/mb, dir)
	switch {
	case free < 100*mb:
		return RoomStop, said + "; below 100 MB everything stops"
	case free < 500*mb:
		return RoomClean, said + "; below 500 MB nothing is started"
	case free < 1000*mb:
		return RoomWarn, said
	}
	return RoomEnough, ""
}

// Room looks how much room there is, on the disk that has the least: of the
// workspaces, of pawl's own files or of the repository. A disk that cannot be asked
// has enough: a full one shows in what fails.
func (p *Pool) Room() (least Room, why string) {
	for _, dir := range []string{p.o.Dir, p.o.StateDir, p.repo.Common} {
		free, err := p.o.Free(dir)
		if err != nil {
			continue
		}
		if room, said := Judge(free, dir); room > least {
			least, why = room, said
		}
	}
	return least, why
}
