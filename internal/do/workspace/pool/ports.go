package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Ports are given out below those that systems use for outgoing connections.
const (
	firstPort = 20000
	lastPort  = 32759
)

// block is PortsIn ports of one workspace.
type block struct {
	Base  int         `json:"base"`
	Dir   string      `json:"dir"`   // the workspace's folder
	Owner store.Owner `json:"owner"` // who takes it, while the folder is not there yet
}

// takePorts gives the workspace at dir a block of its own: the one that it has,
// else want if that is free, else the next that no live workspace of any
// repository has and on which nothing listens.
func (p *clones) takePorts(ctx context.Context, dir string, want int) (int, error) {
	base := 0
	err := p.editPorts(ctx, func(all []block) ([]block, error) {
		i := slices.IndexFunc(all, func(b block) bool { return b.Dir == dir })
		if i >= 0 {
			base = all[i].Base
			all[i].Owner = p.me
			return all, nil
		}
		all = slices.DeleteFunc(all, isStaleBlock)
		taken := lists.Set(lists.Each(all, func(b block) int { return b.Base }))
		if base = nextBlock(dir, want, func(b int) bool { return !taken[b] && arePortsUnused(ctx, b) }); base == 0 {
			return nil, errors.New("all blocks of ports are in use")
		}
		return append(all, block{Base: base, Dir: dir, Owner: p.me}), nil
	})
	if err != nil {
		return 0, fmt.Errorf("cannot find ports for a workspace: %w", err)
	}
	return base, nil
}

// freePorts gives back the block of the workspace at dir.
func (p *clones) freePorts(ctx context.Context, dir string) error {
	return p.editPorts(ctx, func(all []block) ([]block, error) {
		return slices.DeleteFunc(all, func(b block) bool { return b.Dir == dir }), nil
	})
}

func (p *clones) editPorts(ctx context.Context, edit func([]block) ([]block, error)) error {
	lock, err := files.Lock(ctx, p.o.Ports+".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	var all []block
	data, err := os.ReadFile(p.o.Ports)
	if err == nil && json.Unmarshal(data, &all) != nil {
		all = nil // broken: what listens is found by asking
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if all, err = edit(all); err != nil {
		return err
	}
	if data, err = json.MarshalIndent(all, "", " "); err != nil {
		return err
	}
	// after a power loss the ports are looked at again
	return files.Replace(p.o.Ports, append(data, '\n'), 0o600, false)
}

// isStaleBlock reports whether a block's workspace is gone: no folder, and nobody who
// is about to make it.
func isStaleBlock(b block) bool {
	_, err := os.Lstat(b.Dir)
	return errors.Is(err, os.ErrNotExist) && !isOwnerAlive(b.Owner)
}

// nextBlock is the first free block, looked for from a place that depends on
// dir, so that one that was left is not at once another's; 0 when none is free.
func nextBlock(dir string, want int, free func(base int) bool) int {
	if want >= firstPort && want+PortsIn-1 <= lastPort && free(want) {
		return want
	}
	const blocks = (lastPort - firstPort + 1) / PortsIn
	h := fnv.New32a()
	h.Write([]byte(dir))
	begin := int(h.Sum32() % uint32(blocks))
	for i := range blocks {
		if base := firstPort + (begin+i)%blocks*PortsIn; free(base) {
			return base
		}
	}
	return 0
}

// arePortsUnused reports whether nothing listens on the ports of a block. It opens each for an instant
// on loopback, of which a machine may have either address alone.
func arePortsUnused(ctx context.Context, base int) bool {
	var listen net.ListenConfig
	for i := range 2 * PortsIn {
		host := []string{"127.0.0.1", "::1"}[i%2]
		l, err := listen.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(base+i/2)))
		if errors.Is(err, syscall.EADDRINUSE) {
			return false
		}
		if err == nil {
			_ = l.Close() // nobody connected
		}
	}
	return true
}
