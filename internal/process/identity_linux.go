package process

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

var bootID = sync.OnceValue(func() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
})

var bootTime = sync.OnceValue(func() time.Time {
	data, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(data)) {
		if secs, ok := strings.CutPrefix(line, "btime "); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(secs), 10, 64); err == nil {
				return time.Unix(n, 0)
			}
		}
	}
	return time.Time{}
})

var pidSpace = sync.OnceValue(func() string {
	link, _ := os.Readlink("/proc/self/ns/pid")
	return link
})
