package process

import (
	"os"
	"os/signal"
	"syscall"
)

// HandDownDefaults makes children start with the default action of signals
// that this process inherited as ignored (a shell's `&` does that with INT,
// nohup with HUP). From then on this process itself ignores them by catching.
// It is for a supervisor; a program that must honour nohup does not call it.
func HandDownDefaults() {
	var ignored []os.Signal
	for sig := syscall.Signal(1); sig < 32; sig++ {
		switch sig {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG:
			continue
		}
		if signal.Ignored(sig) || inheritedIgnored(sig) {
			ignored = append(ignored, sig)
		}
	}
	if len(ignored) > 0 {
		// A caught signal is reset by exec, an ignored one is not. Nobody reads.
		signal.Notify(make(chan os.Signal, 1), ignored...)
	}
}
