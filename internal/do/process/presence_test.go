package process

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A process of another container is seen by its lock, in the folder that both share.
func TestLookIntoOtherContainers(t *testing.T) {
	dir := t.TempDir()
	ShowIn(dir, "here")
	defer func() {
		_ = presence.own.Close()
		presence.dir, presence.id, presence.own = "", "", nil
	}()
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(self.Space, shownIn+"here") || Look(self) != Living {
		t.Fatalf("this process, %+v, is %d", self, Look(self))
	}
	if f, err := os.Open(self.presenceFileIn(dir)); err == nil {
		t.Errorf("its file is named with the folder: %s", f.Name())
	}
	id := self
	id.Space = strings.TrimSuffix(id.Space, shownIn+"here")
	if got := lockedFile(id.presenceFileIn(dir)); got != Living {
		t.Errorf("its own lock is %d", got)
	}
	if Look(id) != Living {
		t.Error("as an older version noted it, it is not known any more")
	}

	other := self
	other.Space, other.PID = "other"+shownIn+"here", 1
	name := Identity{Host: other.Host, Boot: other.Boot, Space: "other", PID: 1, Start: other.Start}.presenceFileIn(dir)
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil { //nolint:gosec // a descriptor is small
		t.Fatal(err)
	}
	if got := Look(other); got != Living {
		t.Errorf("one that lives is %d", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := Look(other); got != Dead {
		t.Errorf("one that was killed is %d", got)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if got := Look(other); got != Dead {
		t.Errorf("one whose file was removed since is %d", got)
	}
	other.Host, other.Boot = "elsewhere", "another start"
	if got := Look(other); got != Dead {
		t.Errorf("one of before the machine's start, which had another name, is %d", got)
	}
	for _, space := range []string{"other", "other" + shownIn + "there"} {
		if other.Space = space; Look(other) != Unknown {
			t.Errorf("one that did not show itself here is %d", Look(other))
		}
	}
}
