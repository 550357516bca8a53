package safety

import (
	"strings"
	"sync"
)

// This file has the rules about services: what destroys what runs elsewhere,
// and what publishes.

// pattern is a command line that is dangerous wherever it stands: words in
// this order among the arguments. A word ending in * is a beginning, one with
// | has alternatives.
type pattern struct {
	words string
	name  string
	why   string
}

const (
	destroys  = "destroys resources that are not in the workspace"
	publishes = "publishes, which cannot be taken back"
)

var patterns = sync.OnceValue(func() map[string][]pattern {
	return map[string][]pattern{
		"kubectl": {{"delete", "kubectl-delete", destroys}, {"drain", "kubectl-drain", destroys}, {"replace --force", "kubectl-delete", destroys}, {"scale --replicas=0", "kubectl-scale", destroys}},
		"oc":      {{"delete", "kubectl-delete", destroys}}, "k": {{"delete", "kubectl-delete", destroys}}, "helm": {{"uninstall|delete|del|un", "helm-uninstall", destroys}, {"push", "publish", publishes}},
		"terraform": {{"destroy", "terraform-destroy", destroys}, {"apply -destroy|--destroy", "terraform-destroy", destroys}, {"state rm", "terraform-destroy", destroys}, {"workspace delete", "terraform-destroy", destroys}, {"force-unlock", "terraform-destroy", "takes a lock away from somebody"}},
		"pulumi":    {{"destroy", "pulumi-destroy", destroys}, {"stack rm", "pulumi-destroy", destroys}}, "cdk": {{"destroy", "cdk-destroy", destroys}},
		"serverless": {{"remove", "serverless-remove", destroys}}, "sls": {{"remove", "serverless-remove", destroys}}, "sam": {{"delete", "sam-delete", destroys}},
		"docker": {
			{"system prune", "docker-prune", destroys}, {"volume rm|remove|prune", "docker-volume", "deletes the data of containers"},
			{"compose down -v|--volumes", "docker-volume", "deletes the data of containers"}, {"compose rm -v|-fv|-sfv|-vf", "docker-volume", "deletes the data of containers"},
			{"rm -v|-fv|-vf", "docker-volume", "deletes the data of containers"}, {"image prune -a|--all|-af|-fa", "docker-prune", destroys},
			{"rm|stop|kill|rmi $all", "docker-all", "ends or deletes all containers or images of the machine"},
			{"container prune", "docker-prune", destroys}, {"builder prune -a|--all|-af", "docker-prune", destroys}, {"push", "publish", publishes},
			{"buildx build --push", "publish", publishes}, {"swarm leave", "docker-swarm", destroys}, {"stack rm|down", "docker-stack", destroys},
			{"service rm", "docker-stack", destroys}, {"network prune", "docker-prune", destroys}, {"context rm", "docker-context", destroys},
		},
		"docker-compose": {{"down -v|--volumes", "docker-volume", "deletes the data of containers"}, {"rm -v|-fv|-sfv|-vf", "docker-volume", "deletes the data of containers"}},
		"aws": {
			{"s3 rm --recursive", "aws-s3-rm", destroys}, {"s3 rb", "aws-s3-rm", destroys}, {"s3 sync --delete", "aws-s3-rm", destroys}, {"s3 mv --recursive", "aws-s3-rm", destroys},
			{"s3api delete-*", "aws-delete", destroys}, {"* delete-*", "aws-delete", destroys}, {"* terminate-*", "aws-delete", destroys},
			{"* deregister-*", "aws-delete", destroys}, {"* purge-*", "aws-delete", destroys}, {"* schedule-key-deletion", "aws-delete", destroys}, {"* remove-*", "aws-delete", destroys}, {"* stop-*", "aws-delete", destroys},
		},
		"gcloud": {{"delete", "gcloud-delete", destroys}, {"storage rm", "gcloud-delete", destroys}}, "gsutil": {{"rm|rb", "gcloud-delete", destroys}, {"rsync -d", "gcloud-delete", destroys}, {"-m rm", "gcloud-delete", destroys}},
		"bq": {{"rm", "gcloud-delete", destroys}}, "az": {{"delete", "az-delete", destroys}, {"delete-batch", "az-delete", destroys}, {"purge", "az-delete", destroys}},
		"doctl": {{"delete|destroy|rm", "cloud-delete", destroys}}, "heroku": {{"apps:destroy|pg:reset|destroy|addons:destroy|pipelines:destroy", "cloud-delete", destroys}},
		"fly": {{"destroy", "cloud-delete", destroys}}, "flyctl": {{"destroy", "cloud-delete", destroys}}, "vercel": {{"rm|remove", "cloud-delete", destroys}},
		"netlify": {{"sites:delete|api deleteSite", "cloud-delete", destroys}}, "railway": {{"down|delete", "cloud-delete", destroys}}, "wrangler": {{"delete", "cloud-delete", destroys}},
		"firebase": {{"firestore:delete|database:remove|projects:delete|hosting:disable|functions:delete", "cloud-delete", destroys}}, "linode-cli": {{"delete", "cloud-delete", destroys}},
		"hcloud": {{"delete", "cloud-delete", destroys}}, "rclone": {{"purge|delete|deletefile|sync", "cloud-delete", destroys}}, "s3cmd": {{"del|rb|sync --delete-removed", "cloud-delete", destroys}},
		"mc": {{"rm --recursive", "cloud-delete", destroys}, {"rb", "cloud-delete", destroys}}, "eksctl": {{"delete", "cloud-delete", destroys}}, "kops": {{"delete", "cloud-delete", destroys}},
		"vault": {{"delete|destroy", "vault-delete", destroys}, {"kv delete|destroy|metadata", "vault-delete", destroys}}, "consul": {{"kv delete", "cloud-delete", destroys}},
		"etcdctl": {{"del", "cloud-delete", destroys}}, "nomad": {{"job stop", "cloud-delete", destroys}, {"stop", "cloud-delete", destroys}}, "velero": {{"delete", "cloud-delete", destroys}}, "argocd": {{"app delete", "cloud-delete", destroys}},
		"gh":   {{"repo delete|archive", "gh-delete", destroys}, {"release delete", "gh-delete", destroys}, {"release create|upload", "publish", publishes}, {"secret delete|remove", "gh-delete", destroys}, {"gist delete", "gh-delete", destroys}, {"api DELETE", "gh-delete", destroys}, {"issue delete", "gh-delete", destroys}},
		"glab": {{"repo delete", "gh-delete", destroys}, {"release delete", "gh-delete", destroys}, {"release create", "publish", publishes}}, "vagrant": {{"destroy", "vm-destroy", destroys}}, "virsh": {{"destroy|undefine|vol-delete|pool-delete", "vm-destroy", destroys}},
		"multipass": {{"delete|purge", "vm-destroy", destroys}}, "lxc": {{"delete", "vm-destroy", destroys}}, "VBoxManage": {{"unregistervm", "vm-destroy", destroys}},
		"zfs": {{"destroy|rollback", "zfs-destroy", destroys}}, "zpool": {{"destroy|labelclear", "zfs-destroy", destroys}}, "btrfs": {{"subvolume delete", "zfs-destroy", destroys}},
		"cryptsetup": {{"luksFormat|erase|luksErase|format|luksKillSlot", "format-disk", "erases a disk or changes its partitions"}}, "diskutil": {{"eraseDisk|eraseVolume|partitionDisk|secureErase|zeroDisk|reformat", "format-disk", "erases a disk or changes its partitions"}},
		"hdparm": {{"--security-erase|--trim-sector-ranges", "format-disk", "erases a disk or changes its partitions"}}, "nvme": {{"format|sanitize", "format-disk", "erases a disk or changes its partitions"}},
		"rabbitmqctl": {{"reset|force_reset|delete_vhost|delete_queue|purge_queue", "flush-database", destroys}}, "kafka-topics": {{"--delete", "flush-database", destroys}}, "kafka-topics.sh": {{"--delete", "flush-database", destroys}},
		"tmutil": {{"delete|deletelocalsnapshots", "backup-delete", "deletes backups"}}, "restic": {{"forget|prune", "backup-delete", "deletes backups"}}, "borg": {{"delete|prune", "backup-delete", "deletes backups"}}, "vssadmin": {{"delete|Delete", "backup-delete", "deletes backups"}},

		"npm": {{"publish|unpublish|deprecate", "publish", publishes}, {"owner add|rm", "publish", publishes}, {"dist-tag add|rm", "publish", publishes}, {"access", "publish", publishes}, {"token", "publish", "changes the user's access tokens"}}, "pnpm": {{"publish", "publish", publishes}}, "yarn": {{"publish", "publish", publishes}, {"npm publish", "publish", publishes}},
		"bun": {{"publish", "publish", publishes}}, "lerna": {{"publish", "publish", publishes}}, "changeset": {{"publish", "publish", publishes}}, "semantic-release": {{"", "publish", publishes}}, "np": {{"", "publish", publishes}},
		"cargo": {{"publish|yank|owner", "publish", publishes}, {"release", "publish", publishes}}, "twine": {{"upload", "publish", publishes}}, "poetry": {{"publish", "publish", publishes}}, "uv": {{"publish", "publish", publishes}}, "flit": {{"publish", "publish", publishes}}, "hatch": {{"publish", "publish", publishes}}, "pdm": {{"publish", "publish", publishes}},
		"gem": {{"push|yank|owner", "publish", publishes}}, "mvn": {{"deploy|deploy:deploy|release:perform|release:prepare", "publish", publishes}}, "mvnw": {{"deploy|release:perform", "publish", publishes}}, "gradle": {{"publish|publishPlugins|uploadArchives|publishAllPublicationsTo*|publishToSonatype|closeAndReleaseSonatypeStagingRepository", "publish", publishes}},
		"gradlew": {{"publish|publishPlugins|uploadArchives|publishAllPublicationsTo*|publishToSonatype", "publish", publishes}}, "sbt": {{"publish|publishSigned|sonatypeRelease", "publish", publishes}}, "dotnet": {{"nuget push|delete", "publish", publishes}}, "nuget": {{"push|delete", "publish", publishes}},
		"goreleaser": {{"release", "publish", publishes}}, "vsce": {{"publish|unpublish", "publish", publishes}}, "ovsx": {{"publish", "publish", publishes}}, "pod": {{"trunk push|delete", "publish", publishes}}, "mix": {{"hex.publish", "publish", publishes}}, "dart": {{"pub publish", "publish", publishes}}, "flutter": {{"pub publish", "publish", publishes}}, "crane": {{"push|delete", "publish", publishes}}, "skopeo": {{"copy|delete", "publish", publishes}}, "jfrog": {{"rt upload|delete|del", "publish", publishes}}, "wasm-pack": {{"publish", "publish", publishes}}, "jsr": {{"publish", "publish", publishes}}, "composer": {{"global remove", "remove-packages", "removes programs from the machine"}},
	}
})

// dryRuns are the options by which such a command only says what it would do.
var dryRuns = []string{"--dry-run", "-n", "--dryrun", "--dry-run=client", "--dry-run=server", "--dry-run=true", "--help", "-h", "help", "--snapshot", "--what-if", "--skip-publish"}

// services judges a command by the patterns of its program.
func (m *matcher) services(c *call, of []pattern) {
	for _, d := range dryRuns {
		if c.mentions(d) && (d != "-n" || c.name == "cargo" || c.name == "npm") && (d != "-h" || len(c.args) < 3) {
			return
		}
	}
	for _, p := range of {
		if inOrder(c.args, strings.Fields(p.words)) {
			m.high(c, p.name, p.why)
			return
		}
	}
}

// inOrder says whether the arguments begin with the first word, options aside,
// and hold the others after it.
func inOrder(args []word, want []string) bool {
	first := true
	for _, w := range want {
		at := -1
		for i, a := range args {
			if alternative(w, a.text) {
				at = i
				break
			}
			// The verb comes first: "npm run publish" is another one. Options
			// before it may have values.
			if first && !strings.HasPrefix(a.text, "-") && (i == 0 || !strings.HasPrefix(args[i-1].text, "-") || strings.Contains(args[i-1].text, "=")) && !loose(want[0]) {
				return false
			}
		}
		if at < 0 {
			return false
		}
		args, first = args[at+1:], false
	}
	return true
}

// loose are the verbs that clouds put behind names of services.
func loose(verb string) bool {
	switch verb {
	case "delete", "*", "delete|destroy|rm", "destroy", "purge", "delete-batch", "delete|destroy", "rm|stop|kill|rmi":
		return true
	}
	return strings.HasPrefix(verb, "deploy|") || strings.HasPrefix(verb, "publish|publishP") || strings.HasPrefix(verb, "publish|publishS") || strings.HasPrefix(verb, "--")
}

func alternative(list, text string) bool {
	for rest := list; rest != ""; {
		var one string
		one, rest, _ = strings.Cut(rest, "|")
		if one == text || one == "*" && !strings.HasPrefix(text, "-") {
			return true
		}
		if p, ok := strings.CutSuffix(one, "*"); ok && p != "" && strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}

// web judges programs that talk to servers.
func web(m *matcher, c *call) {
	elsewhere, deletes := "", false
	for i, a := range c.args {
		t := a.text
		if strings.HasPrefix(t, "http://") || strings.HasPrefix(t, "https://") || strings.HasPrefix(t, "ftp://") || len(t) > 3 && t[0] != '-' && strings.Contains(t, ".") && strings.Contains(t, "/") && t[0] != '/' && t[0] != '.' {
			if !loopback(t) {
				elsewhere = t
			}
		}
		deletes = deletes || t == "DELETE" && i > 0 && (c.args[i-1].text == "-X" || c.args[i-1].text == "--request" || c.name == "http" || c.name == "https") || t == "-XDELETE" || t == "--request=DELETE" || t == "--method=DELETE"
		if (t == "-o" || t == "-O" || t == "--output" || t == "--output-document") && i+1 < len(c.args) {
			m.downloads(c.args[i+1].text)
			if t != "-O" || c.name == "wget" {
				m.writesTo(c.args[i+1], c.words)
			}
		}
		if strings.HasPrefix(t, "http") && (c.has('O', "--remote-name") && c.name == "curl" || c.name == "wget") {
			m.downloads(t[strings.LastIndexByte(t, '/')+1:])
		}
	}
	for _, r := range c.cmd.redirects {
		if r.op == ">" {
			m.downloads(r.target.text)
		}
	}
	if deletes && elsewhere != "" {
		m.high(c, "http-delete", destroys)
	}
	if elsewhere != "" {
		m.report(finding{"network", "it talks to the network", High, External}, c.words)
	}
}

func (m *matcher) downloads(file string) {
	if m.fetched == nil {
		m.fetched = map[string]bool{}
	}
	m.fetched[strings.TrimPrefix(file, "./")] = true
}

// loopback is true for an address of this machine.
func loopback(url string) bool {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	host, _, _ := strings.Cut(url, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if strings.HasPrefix(host, "[::1]") {
		return true
	}
	host, _, _ = strings.Cut(host, ":")
	return host == "localhost" || strings.HasPrefix(host, "127.") || host == "0.0.0.0" || strings.HasSuffix(host, ".localhost") || host == "host.docker.internal"
}
