// Package sandbox lets the operating system hold a process, and all that it
// starts, to a [Policy]: which folders it may write, what it may not even
// read, whom it may signal, how it reaches the network, and how much of the
// machine it may use.
//
// A box is entered by pawl itself, executed again as a hidden command: started
// in namespaces of its own where the machine allows that, the copy of pawl
// arranges the mounts, gives up its rights, restricts itself with Landlock and
// seccomp, and starts the command. It stays as the init of the box's process
// namespace: it waits for what falls to it and tells how the command ended.
//
//	supervisor ── clone(user, mount, pid, net) ──▶ pawl __sandbox, init ── fork ──▶ command
//	     │                                              │
//	     ├───────────────── policy ────────────────────▶│
//	     ◀──── what went wrong; the listener ───────────┤
//	     ◀══════════════ life line ════════════════════▶┘ how the command ended
//
// When the other end of the life line closes, however the parent ended, the init
// ends, and the kernel kills all that is in the namespace. Where no process
// namespace can be had, the copy of pawl becomes the command by execve.
//
// Two mechanisms keep files, each alone where the other is missing. Mounts
// make the tree read-only, chmod and utimes included, and put nothing in the
// place of what is hidden. Landlock refuses writes by path, and keeps signals,
// ptrace and abstract sockets inside. [Probe] says which of them this machine
// has, by trying; [Judge] says what a level can do with that.
//
// The package never falls back by itself: a box that cannot be made as it was
// described is an error, and nothing runs. It knows no agents and decides no
// levels, and it is no help against a process that was started outside.
package sandbox
