package pool

import (
	"fmt"

	"golang.org/x/sys/unix"
)

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
func Judge(free uint64) (Room, string) {
	said := fmt.Sprintf("%d MB are free on the disk of the workspaces", free/mb)
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

// Room looks how much room there is. A disk that cannot be asked has enough:
// a full one shows in what fails.
func (p *Pool) Room() (Room, string) {
	free, err := p.o.Free(p.o.Dir)
	if err != nil {
		return RoomEnough, ""
	}
	return Judge(free)
}

// freeBytes is what the disk has left for this user.
func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil //nolint:gosec // a block size is positive
}
