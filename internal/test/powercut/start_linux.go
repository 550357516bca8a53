package powercut

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// answerLimit is how long a command may take: each is short, on any machine.
const answerLimit = time.Minute

// Disk is a disk on a folder, served by another process.
type Disk struct {
	// Off is sent to when the power has failed by itself.
	Off <-chan struct{}

	dir     string
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string
	ended   chan struct{}
}

// Missing says why there can be no disk here; empty when there can.
func Missing() string {
	if os.Getuid() != 0 {
		return "only root may mount"
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return "there is no FUSE: " + err.Error()
	}
	_ = f.Close() // nothing was asked of it
	return ""
}

// Start serves an empty disk on the folder dir by cmd, a program that calls
// [Main] with that folder. The caller stops it in any case.
func Start(cmd *exec.Cmd, dir string) (*Disk, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // no signal of a terminal
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	off := make(chan struct{}, 1)
	d := &Disk{Off: off, dir: dir, cmd: cmd, in: in, answers: make(chan string, 1), ended: make(chan struct{})}
	go func() {
		defer close(d.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() == "off" {
				select {
				case off <- struct{}{}:
				default:
				}
				continue
			}
			d.answers <- lines.Text()
		}
	}()
	if _, err := d.answer(); err != nil {
		return nil, errors.Join(err, d.Stop())
	}
	return d, nil
}

func (d *Disk) answer() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	select {
	case a := <-d.answers:
		return a, nil
	case <-d.ended:
		return "", errors.New("cannot use the disk: its server has ended")
	case <-ctx.Done():
		return "", errors.New("cannot use the disk: its server does not answer")
	}
}

func (d *Disk) ask(format string, args ...any) error {
	if _, err := fmt.Fprintf(d.in, format+"\n", args...); err != nil {
		return err
	}
	_, err := d.answer()
	return err
}

// Arm lets the power fail before the nth change of anything on the disk.
func (d *Disk) Arm(n int) error { return d.ask("arm %d", n) }

// Dark reports whether the power has failed. Who was told of an error by the disk
// learns here whether that was why, also before [Disk.Off] says so.
func (d *Disk) Dark() (bool, error) {
	if _, err := fmt.Fprintln(d.in, "dark"); err != nil {
		return false, err
	}
	a, err := d.answer()
	return a == "yes", err
}

// Settle makes all that was written safe.
func (d *Disk) Settle() error { return d.ask("settle") }

// Room leaves room for n bytes more.
func (d *Disk) Room(n int64) error { return d.ask("room %d", n) }

// Cut takes the power away, and gives it back: what survived is on the folder
// when it returns. The programs that work there have been ended by the caller.
func (d *Disk) Cut(seed uint64) error {
	err := d.ask("cut %d", seed)
	select {
	case <-d.Off: // of the failure that this was
	default:
	}
	return err
}

// Stop takes the disk away, with all that is on it.
func (d *Disk) Stop() error {
	_ = d.in.Close() // its end is what is asked for
	limit := time.AfterFunc(2*unmountLimit, func() { _ = d.cmd.Process.Kill() })
	for drained := false; !drained; {
		select {
		case <-d.answers:
		case <-d.ended:
			drained = true
		}
	}
	err := d.cmd.Wait()
	limit.Stop()
	_ = syscall.Unmount(d.dir, syscall.MNT_DETACH) // a server that was killed has left it
	return err
}
