package renku

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// These expressions match Renku's log lines about a kubeconfig (renku-data-services
// components/renku_data_services/k8s/config.py).
var (
	loadedLine   = regexp.MustCompile(`Successfully loaded Kubernetes config: '([^']*)'`)
	failedLine   = regexp.MustCompile(`Failed while loading '([^']*)', ignoring kube config\. Error: (.*)`)
	noFolderLine = regexp.MustCompile(`Cannot open directory '([^']*)', ignoring kube configs`)
)

// loading describes whether one service has loaded this link's kubeconfig, according to the
// service's log.
type loading struct {
	service
	pod    string
	loaded bool
	failed string    // why loading failed; "": it did not fail
	line   string    // the log line with the result
	since  time.Time // the start time of the pod
}

const (
	logTail = 2000             // in lines
	logAge  = 15 * time.Second // how long a log is cached
	headAge = time.Minute      // how long the beginning of a log is cached
)

// loadings reads the log of each service's newest pod.
func loadings(ctx context.Context, e steps.Env) ([]loading, error) {
	found, all, err := servicesAndPods(ctx, e)
	if err != nil {
		return nil, err
	}
	out := make([]loading, len(found))
	var reads []func() error
	for i, s := range found {
		l := &out[i]
		l.service = s
		if s.Deployment == nil {
			continue
		}
		pods, err := podsOf(s.Deployment, all)
		if err != nil {
			return nil, err
		}
		if len(pods) == 0 {
			continue
		}
		reads = append(reads, func() error {
			if err := l.read(ctx, e, pods[0]); err != nil {
				return fmt.Errorf("reading the log of %s: %w", s.name(), err)
			}
			return nil
		})
	}
	return out, check.Together(reads...)
}

// read parses the end of a pod's log. If the end does not mention the kubeconfig, read parses the
// beginning, because a busy service logs many lines after its start.
func (l *loading) read(ctx context.Context, e steps.Env, p *corev1.Pod) error {
	l.pod = p.Name
	if p.Status.StartTime != nil {
		l.since = p.Status.StartTime.Time
	}
	for _, part := range []struct {
		tail int
		age  time.Duration
	}{{logTail, logAge}, {0, headAge}} {
		text, err := check.PodLog(ctx, e.Cluster, p, readingContainer(p), part.tail, part.age)
		if err != nil {
			return err
		}
		if l.judge(text, e.Answers.Text("cluster.config-name")) {
			return nil
		}
	}
	return nil
}

// readingContainer returns the container that mounts the kubeconfigs. If no container mounts them,
// it returns the first container.
func readingContainer(p *corev1.Pod) string {
	for _, c := range p.Spec.Containers {
		for _, m := range c.VolumeMounts {
			if m.Name == kubeconfigsVolume {
				return c.Name
			}
		}
	}
	if len(p.Spec.Containers) > 0 {
		return p.Spec.Containers[0].Name
	}
	return ""
}

// judge sets the fields of l from the last line in text about the kubeconfig. It returns false if
// there is no such line.
func (l *loading) judge(text, config string) bool {
	found := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case mentions(loadedLine, line, config):
			l.loaded, l.failed, l.line, found = true, "", line, true
		case mentions(failedLine, line, config):
			l.loaded, l.failed, l.line, found = false, plainLoading(failedLine.FindStringSubmatch(line)[2]), line, true
		case noFolderLine.MatchString(line):
			l.loaded, l.line, found = false, line, true
			l.failed = "the kubeconfigs directory is not mounted: Renku's values name no Secret, or the pod started before " +
				"the value was set"
		}
	}
	return found
}

// mentions reports whether a log line matches the pattern what and names the kubeconfig config.
func mentions(what *regexp.Regexp, line, config string) bool {
	m := what.FindStringSubmatch(line)
	return m != nil && (m[1] == config || strings.HasSuffix(m[1], "/"+config))
}

// plainLoading explains why Renku ignores a kubeconfig. said is the Python error in Renku's log.
func plainLoading(said string) string {
	for _, known := range []struct{ part, plain string }{
		{"current-context", "the kubeconfig has no current-context"},
		{
			"No such file",
			"the file does not exist in the pod: the Secret has no such key, or the pod started before the key existed",
		},
		{
			"Errno 2",
			"the file does not exist in the pod: the Secret has no such key, or the pod started before the key existed",
		},
		{"tokenFile", "the kubeconfig names a token file, which Renku does not read"},
		{"username", "the kubeconfig has a password, which Renku does not accept"},
		{"exec", "the kubeconfig runs a login plugin, which is not in Renku's image"},
		{"certificate", "the kubeconfig's certificates cannot be read"},
		{"mapping", "Renku cannot parse the kubeconfig as YAML"},
		{"scanning", "Renku cannot parse the kubeconfig as YAML"},
		{"parsing", "Renku cannot parse the kubeconfig as YAML"},
	} {
		if strings.Contains(said, known.part) {
			return known.plain
		}
	}
	return "Renku ignores the kubeconfig"
}

// tokenInText matches a token. Parse errors in the log can quote tokens.
var tokenInText = regexp.MustCompile(`eyJ[\w.+/=-]{10,}`)

// quote shortens a log line for a finding and removes tokens.
func quote(line string) string {
	const most = 200
	// Clean the line first, because characters that a terminal ignores could split a token.
	line = tokenInText.ReplaceAllString(clean.Text(line), "(hidden)")
	if r := []rune(line); len(r) > most {
		line = string(r[:most]) + "…"
	}
	return "\"" + line + "\""
}

// failures returns the verdict on services that do not exist or failed to load the kubeconfig. It
// returns false if there are no such services.
func failures(e steps.Env, all []loading) (steps.Result, bool) {
	var bad []string
	for _, l := range all {
		switch {
		case l.Deployment == nil:
			bad = append(bad, "no Deployment has label app="+l.app)
		case l.failed != "":
			bad = append(bad, fmt.Sprintf("%s (pod %s): %s (log: %s)", l.name(), l.pod, l.failed, quote(l.line)))
		}
	}
	if len(bad) == 0 {
		return steps.Result{}, false
	}
	return steps.Failed(
		strings.Join(bad, "; "), "fix the failed checks of step Kubeconfigs Secret, then: "+e.ApplyStep("secret,restart"),
	), true
}

// watcherWithin is the maximum time from the start of k8s-watcher until it logs its kubeconfigs.
const watcherWithin = 3 * time.Minute

func kubeconfigLoaded(ctx context.Context, e steps.Env) steps.Result {
	all, err := loadings(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if r, bad := failures(e, all); bad {
		return r
	}
	var have, yet []string
	evidence := ""
	for _, l := range all {
		switch {
		case l.loaded:
			have = append(have, l.name())
			if evidence == "" || l.app == watcherApp {
				evidence = quote(l.line)
			}
		case l.app == watcherApp:
			return watcherSilent(e, l)
		default:
			yet = append(yet, l.name())
		}
	}
	found := strings.Join(have, ", ") + " loaded the kubeconfig: " + evidence
	if len(yet) > 0 {
		found += "; not loaded yet, because these services load the kubeconfig at first use: " + strings.Join(yet, ", ")
	}
	return steps.Passed("%s", found)
}

// watcherSilent returns the verdict if k8s-watcher has logged nothing about the kubeconfig. Only
// k8s-watcher loads kubeconfigs when it starts.
func watcherSilent(e steps.Env, l loading) steps.Result {
	config := e.Answers.Text("cluster.config-name")
	if l.pod == "" {
		return steps.Waits(time.Time{}, "k8s-watcher has no pod")
	}
	if age := time.Since(l.since); l.since.IsZero() || age < watcherWithin {
		r := steps.Waits(l.since, "k8s-watcher (pod %s) has not logged %s yet", l.pod, config)
		r.Again = time.Now().Add(logAge)
		return r
	}
	return steps.Failed(
		fmt.Sprintf(
			"k8s-watcher (pod %s) has not logged %s since it started, because no cluster with that config_name was registered "+
				"at the time",
			l.pod, config,
		),
		e.ApplyStep("register,restart")+"; or read the log: "+e.Kubectl()+" -n "+l.Namespace+" logs "+l.pod+
			" | grep -i kube",
	)
}

func loadedAtFirstUse(ctx context.Context, e steps.Env) steps.Result {
	all, err := loadings(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var late []loading
	var have, yet []string
	for _, l := range all {
		if l.app == watcherApp {
			continue
		}
		late = append(late, l)
		if l.loaded {
			have = append(have, l.name())
		} else {
			yet = append(yet, l.name())
		}
	}
	if r, bad := failures(e, late); bad {
		return r
	}
	if len(yet) > 0 {
		return steps.Skipped(
			"%s have not loaded the kubeconfig yet. They load it when they first use a cluster",
			strings.Join(yet, ", "),
		)
	}
	return steps.Passed("%s have loaded the kubeconfig", strings.Join(have, ", "))
}
