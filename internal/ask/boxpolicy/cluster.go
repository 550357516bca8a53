package boxpolicy

import (
	"cmp"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
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
		port, _ := strconv.Atoi(u.Port())
		ports = append(ports, cmp.Or(port, enginePort))
	}
	ports = lists.Distinct(ports)
	named := strings.Join(lists.Each(ports, strconv.Itoa), " and ")
	switch isOpen := level != sandbox.Paranoid; {
	case len(ports) > 0 && isOpen && !sandbox.CanShut(means):
		m.Say("Warning: agents and gates can reach the cluster's database and engine (port %s): closing these ports "+
			"needs Landlock 4 (Linux 6.7). Protect both with passwords or certificates, or use --safety paranoid", named)
	case len(ports) > 0 && isOpen:
		m.Say("Note: agents and gates cannot reach port %s, on any machine: the cluster's database and engine are there",
			named)
	}
	return ports
}

// clusterFiles lists the files that open the database and the engine, and the folder that machines share. Of the
// project itself only what is secret is hidden: what it has of certificates is committed.
func (m maker) clusterFiles(root string) []string {
	c := m.Config.Cluster
	_, named := store.SharedAt(c.Store)
	out := slices.Concat(named, []string{string(c.TLS.Cert), string(c.TLS.Key), c.Folder(), m.envValue("PGPASSFILE"),
		m.envValue("PGSERVICEFILE"), m.envValue("PGSSLKEY"), m.envValue("PGSSLCERT")})
	if _, committed := files.Below(root, string(c.TLS.CA)); !committed {
		out = append(out, string(c.TLS.CA))
	}
	return slices.DeleteFunc(out, func(path string) bool { return !filepath.IsAbs(path) })
}
