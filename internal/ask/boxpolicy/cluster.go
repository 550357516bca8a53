package boxpolicy

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// enginePort is where a Temporal server is, if its address does not say.
const enginePort = 7233

// clusterPorts are the ports of the database and the engine that machines share: no box reaches them.
// They are shut on all machines, since one machine has many addresses.
func (m maker) clusterPorts(means sandbox.Means, level string) []int {
	c := m.Config.Cluster
	ports, _ := store.SharedAt(c.Store)
	if u, err := url.Parse(c.Engine); err == nil && c.Engine != "" {
		port := enginePort
		if n, err := strconv.Atoi(u.Port()); err == nil {
			port = n
		}
		ports = append(ports, port)
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	switch isOpen := level != sandbox.Paranoid; {
	case len(ports) > 0 && isOpen && !sandbox.CanShut(means):
		m.Say("Warning: agents and gates reach the cluster's database and engine (port %s): to shut that needs "+
			"Landlock 4, Linux 6.7. Have both ask who calls, or use paranoid", listOf(ports))
	case len(ports) > 0 && isOpen:
		m.Say("Note: agents and gates reach port %s on no machine: the cluster's database and engine are there",
			listOf(ports))
	}
	return ports
}

func listOf(ports []int) string {
	text := ""
	for i, port := range ports {
		if i > 0 {
			text += " and "
		}
		text += fmt.Sprint(port)
	}
	return text
}

// clusterFiles lists the files that open the database and the engine, and the folder that machines share. Of the
// project itself only what is secret is hidden: what it has of certificates is committed.
func (m maker) clusterFiles(root string) []string {
	c := m.Config.Cluster
	_, named := store.SharedAt(c.Store)
	out := slices.Concat(named, []string{string(c.TLS.Cert), string(c.TLS.Key), c.Folder(), m.getenv("PGPASSFILE"),
		m.getenv("PGSERVICEFILE"), m.getenv("PGSSLKEY"), m.getenv("PGSSLCERT")})
	if _, committed := files.Below(root, string(c.TLS.CA)); !committed {
		out = append(out, string(c.TLS.CA))
	}
	return slices.DeleteFunc(out, func(path string) bool { return !filepath.IsAbs(path) })
}
