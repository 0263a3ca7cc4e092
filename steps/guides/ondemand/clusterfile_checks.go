package ondemand

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"carrick/cluster/nearest"
	"carrick/steps"
)

func clusterFileChecks() []steps.Check {
	return slices.Concat(clusterFormChecks(), clusterAccessChecks(), clusterAuthChecks())
}

// clusterFileName is the name of the action that writes the cluster file and of the check that parses it. All other
// cluster file checks depend on that check.
const clusterFileName = "cluster-file"

// clusterFileCheck returns a check that passes the parsed cluster file to run. The action clusterFileName fixes the
// check.
func clusterFileCheck(
	name, title, why, see string, run func(context.Context, steps.Env, clusterDoc) steps.Result, needs ...string,
) steps.Check {
	return steps.Check{
		Name: name, Title: title, On: steps.Local, FixedBy: clusterFileName, Why: why, References: []string{see, page},
		Needs: needs,
		Run: func(ctx context.Context, e steps.Env) steps.Result {
			d, err := openClusterFile(ctx, e)
			if err != nil {
				if name == clusterFileName && steps.IsAbsent(err) {
					return steps.Undone(err.Error())
				}
				return steps.Errored(err)
			}
			return run(ctx, e, d)
		},
	}
}

// fixedManually removes the fixing action from c.
func fixedManually(c steps.Check) steps.Check {
	c.FixedBy = ""
	return c
}

// clusterFormChecks returns the checks for the syntax of the cluster file and the types of its values.
func clusterFormChecks() []steps.Check {
	return []steps.Check{
		clusterFileCheck(
			clusterFileName, "The cluster file exists, and upstream can read it",
			"Upstream reads the file as plain YAML, without ERB. Upstream skips an unreadable file, and the portal then does "+
				"not show the cluster.",
			inClusters, clusterFileReads,
		),
		clusterFileCheck(
			"cluster-file-keys", "Upstream supports all keys of the cluster file",
			"Upstream silently ignores a misspelled or misplaced key and uses the default instead.",
			inBatch, clusterFileKeys, clusterFileName,
		),
		clusterFileCheck(
			"cluster-file-values", "The cluster file's values and mounts have valid types",
			"Ruby treats any string as true, and the API server rejects a pod that has a mount of an unsupported type.", inPod,
			clusterFileValues, clusterFileName,
		),
		clusterFileCheck(
			"adapter", "The adapter is kubernetes",
			"The value selects the adapter to load. Any other value causes an error in the dashboard.", inFactory, adapterIs,
			clusterFileName,
		),
		clusterFileCheck(
			"auth-type", "Upstream supports the auth type",
			"With an unknown type (the published guide has odic once), the adapter creates no context, and kubectl uses the "+
				"current context of the user's kubeconfig.",
			inBatch, authType, clusterFileName,
		),
		fixedManually(clusterFileCheck(
			"kubectl-bin", "The cluster file's bin is a kubectl that users can run",
			"Upstream's default is /usr/bin/kubectl, but the published guide installs kubectl in /usr/local/bin.", inBatch,
			binExists,
			clusterFileName,
		)),
		clusterFileCheck(
			"config-file", "The cluster file names no kubeconfig under ~",
			"The shell does not expand ~ after =, so kubectl creates a directory named ~ in its working directory. The "+
				"published guide has such a path.",
			inBatch, clusterConfigFile, clusterFileName,
		),
	}
}

// clusterAccessChecks returns the checks for the API server in the cluster file and for users' access to it.
func clusterAccessChecks() []steps.Check {
	trusted := fixedManually(clusterFileCheck(
		"endpoint-tls", "Users' kubectl trusts the endpoint's certificate",
		"kubectl verifies the certificate against cert_authority_file and the host name in the endpoint.", inBatch,
		endpointTLS,
		"endpoint",
	))
	trusted.From = "this machine"
	return []steps.Check{
		clusterFileCheck(
			"endpoint", "The endpoint is the API server's address",
			"At each start, the dashboard writes the endpoint into the user's kubeconfig, even with auth type managed. The "+
				"default is https://localhost:8080.",
			inK8sInit, endpointIs, clusterFileName,
		),
		trusted,
		fixedManually(clusterFileCheck(
			"cluster-name-free", "No kubeconfig uses the cluster name for another server",
			"At each start, the dashboard runs kubectl config set-cluster, which overwrites the entry of that name in the "+
				"user's kubeconfig.",
			inK8sInit, clusterNameFree, clusterFileName,
		)),
		fixedManually(clusterFileCheck(
			"prefixes-match", "The cluster file's prefixes match hook.env",
			"The hook creates the namespace, and the dashboard looks it up by name. No app starts if the prefixes differ.",
			inBatch,
			prefixesAgree, clusterFileName, "hook-env",
		)),
		clusterFileCheck(
			"no-ssh", "The portal offers no shell on the cluster's nodes",
			"Without ssh_allow: false, each app's page has a button that opens a shell on a worker node; a login host adds a "+
				"shell to the portal's menu.",
			clusterSource, noSSH, clusterFileName,
		),
	}
}

// clusterAuthChecks returns the checks for keys that only one auth type requires.
func clusterAuthChecks() []steps.Check {
	managed := clusterFileCheck(
		"managed-context", "The cluster file names a context that users have",
		"With auth.type: managed, the dashboard creates no context. Without job.context, kubectl uses the current context "+
			"of each user's kubeconfig.",
		inBatch,
		managedContext, clusterFileName,
	)
	managed.When = func(e steps.Env) bool { return auth(e) == "managed" }
	gke := clusterFileCheck(
		"gke-account", "The cluster file names a Google service account file",
		"At each start, the dashboard passes this file to gcloud and fails if the user cannot read it. carrick does not "+
			"check whether Google accepts the account.",
		inBatch, gkeAccount, clusterFileName,
	)
	gke.When, gke.FixedBy = func(e steps.Env) bool { return auth(e) == "gke" }, ""
	return []steps.Check{managed, gke}
}

func lintOf(d clusterDoc, kind faultKind) []fileFault {
	return slices.DeleteFunc(d.lint(), func(f fileFault) bool { return f.about != kind })
}

func faulty(d clusterDoc, faults []fileFault) steps.Result {
	fix := onWebNode("vi " + steps.Quoted(d.path))
	if len(faults) > 0 && faults[0].line > 0 {
		fix = onWebNode(fmt.Sprintf("vi +%d %s", faults[0].line, steps.Quoted(d.path)))
	}
	return steps.Failed(d.path+" "+faultWords(faults), fix)
}

func clusterFileReads(ctx context.Context, e steps.Env, d clusterDoc) steps.Result {
	if faults := lintOf(d, syntax); len(faults) > 0 {
		return faulty(d, faults)
	}
	if d.path != clusterPath(e) {
		return steps.Passed("%s", d.path)
	}
	other := strings.TrimSuffix(d.path, ".yml") + ".yaml"
	there, err := fileExists(ctx, e, other)
	if err != nil {
		return steps.Errored(err)
	}
	if there {
		return steps.Failed(
			"two cluster files exist, "+d.path+" and "+other+". Upstream can use either of them",
			onWebNode("mv "+steps.Quoted(other)+" "+steps.Quoted(other+".old")),
		)
	}
	info, err := e.Host.Stat(ctx, d.path)
	switch {
	case err != nil:
		return steps.Errored(err)
	case info.Mode.Perm()&0o004 == 0:
		return steps.Failed(
			fmt.Sprintf("%s has mode %04o: the dashboard runs as each user and cannot read it", d.path, info.Mode.Perm()),
			permissionFix(e, d.path, "chmod 0644 %s"),
		)
	}
	if r := clustersListed(ctx, e); r.Status != steps.Pass {
		return r
	}
	return steps.Passed("%s", d.path)
}

// clustersListed verifies that users can list the directory of the cluster files. The dashboard runs as the user and
// lists this directory.
func clustersListed(ctx context.Context, e steps.Env) steps.Result {
	folder, err := e.Host.Stat(ctx, clustersFolder)
	if err != nil {
		return steps.Errored(err)
	}
	if folder.Mode.Perm()&0o005 != 0o005 {
		return steps.Failed(fmt.Sprintf("%s has mode %04o: the dashboard runs as each user and cannot list it",
			clustersFolder, folder.Mode.Perm()), onWebNode("chmod o+rx "+clustersFolder)).WithoutAction()
	}
	problem, open, err := access(ctx, e, clustersFolder)
	switch {
	case err != nil:
		return steps.Errored(err)
	case open != "":
		return steps.Failed(problem, onWebNode(open)).WithoutAction()
	}
	return steps.Passed("")
}

func clusterFileKeys(_ context.Context, _ steps.Env, d clusterDoc) steps.Result {
	if faults := lintOf(d, naming); len(faults) > 0 {
		return faulty(d, faults)
	}
	return steps.Passed("upstream supports all keys")
}

func clusterFileValues(_ context.Context, _ steps.Env, d clusterDoc) steps.Result {
	if faults := lintOf(d, typing); len(faults) > 0 {
		return faulty(d, faults)
	}
	if types := d.mountTypes(); len(types) > 0 {
		return steps.Passed("all values are valid, including mounts of type %s", strings.Join(types, " and "))
	}
	return steps.Passed("all values are valid, and the file has no mounts")
}

func adapterIs(_ context.Context, _ steps.Env, d clusterDoc) steps.Result {
	switch v := d.text("job.adapter"); v {
	case "kubernetes":
		return steps.Passed("%s", d.place("job.adapter"))
	case "":
		return steps.Failed(d.path+" has no job.adapter", "")
	default:
		return steps.Failed(
			d.place("job.adapter")+": job.adapter is "+shownWord(v)+", but must be exactly kubernetes", "",
		)
	}
}

func authType(_ context.Context, e steps.Env, d clusterDoc) steps.Result {
	v, want := d.text("job.auth.type"), auth(e)
	switch {
	case v == "" && d.at("job.auth") != nil:
		return steps.Failed(
			d.place("job.auth")+": job.auth has no type, so the adapter creates no cluster and no context", "",
		)
	case v == "":
		v = "managed"
	case v == "odic":
		return steps.Failed(
			d.place("job.auth.type")+
				": job.auth.type is odic, a typo from the published guide, and must be oidc. With odic, the adapter creates no "+
				"context and reports no error",
			"",
		)
	case !slices.Contains([]string{"managed", "oidc", "gke"}, v):
		return steps.Failed(d.place("job.auth.type")+": upstream does not support job.auth.type "+shownWord(v)+
			likelyAuth(v), "")
	}
	if v != want {
		return steps.Failed(
			fmt.Sprintf("%s: job.auth.type is %s, but cluster.auth is %s", d.place("job.auth.type"), v, want), "",
		)
	}
	return steps.Passed("%s", v)
}

func likelyAuth(v string) string {
	if near := nearest.Name(v, []string{"managed", "oidc", "gke"}); near != "" {
		return ": did you mean " + near + "?"
	}
	return ": use managed, oidc or gke"
}

func binExists(ctx context.Context, e steps.Env, d clusterDoc) steps.Result {
	at, from := d.text("job.bin"), d.place("job.bin")+": job.bin is"
	if at == "" {
		at, from = keyAt("job.bin").empty, d.path+" has no job.bin, so upstream uses"
	}
	if !strings.HasPrefix(at, "/") {
		return steps.Failed(from+" "+shownWord(at)+", not an absolute path", e.ApplyStep("clusterfile"))
	}
	why, err := executable(ctx, e, at)
	want := e.Answers.Text("kubectl.path")
	switch {
	case err != nil:
		return steps.Errored(err)
	case why != "" && at != want:
		return steps.Failed(from+" "+shownWord(at)+": "+why+". kubectl is at "+want, e.ApplyStep("clusterfile"))
	case why != "":
		return steps.Failed(from+" "+shownWord(at)+": "+why, kubectlFix(ctx, e)).WithoutAction()
	case at != want:
		return steps.Warned(
			"job.bin is "+shownWord(at)+", but root's kubectl is "+want+": their versions can differ",
			e.ApplyStep("clusterfile"),
		)
	}
	return steps.Passed("%s", at)
}

func clusterConfigFile(_ context.Context, _ steps.Env, d clusterDoc) steps.Result {
	v := d.text("job.config_file")
	switch {
	case v == "":
		return steps.Passed("job.config_file is not set, so kubectl uses each user's own kubeconfig")
	case strings.HasPrefix(v, "~"):
		return steps.Failed(
			d.place("job.config_file")+": job.config_file is "+shownWord(v)+", but kubectl does not expand ~",
			"",
		)
	case strings.Contains(v, "$"):
		return steps.Warned(
			d.place("job.config_file")+": job.config_file is "+shownWord(v)+", and the user's shell expands the $", "",
		)
	case !strings.HasPrefix(v, "/"):
		return steps.Failed(d.place("job.config_file")+": job.config_file is "+shownWord(v)+
			", not an absolute path", "")
	}
	return steps.Passed("%s: all users share this kubeconfig, so all must be able to write to it", v)
}

func noSSH(_ context.Context, _ steps.Env, d clusterDoc) steps.Result {
	n := d.at("batch_connect.ssh_allow")
	if n == nil || switchedOn(n.Value) {
		return steps.Failed(d.path+" has no batch_connect.ssh_allow: false", "")
	}
	if d.at("login") != nil {
		return steps.Warned(
			d.place("login")+
				": login is set, but a Kubernetes cluster has no login host, so the shell in the portal's menu does not work",
			onWebNode(d.edit("login")),
		)
	}
	return steps.Passed("ssh_allow is false, and no login host is set")
}

func gkeAccount(_ context.Context, _ steps.Env, d clusterDoc) steps.Result {
	v := d.text("job.auth.svc_acct_file")
	zone, region := d.text("job.auth.zone"), d.text("job.auth.region")
	switch {
	case v == "":
		return steps.Failed(
			d.path+" has no job.auth.svc_acct_file",
			onWebNode(d.edit("job.auth")+"    # svc_acct_file: /absolute/path, a file that each user can read"),
		)
	case zone == "" && region == "":
		return steps.Failed(
			d.place("job.auth")+": neither zone nor region is set, so gcloud prompts for a location",
			onWebNode(d.edit("job.auth")),
		)
	case strings.HasPrefix(v, "~"):
		return steps.Warned(
			d.place("job.auth.svc_acct_file")+": "+shownWord(v)+
				" begins with ~, which the shell does not expand after --key-file=",
			onWebNode(d.edit("job.auth.svc_acct_file")),
		)
	case zone != "" && region != "":
		return steps.Warned(
			d.place("job.auth")+": both zone and region are set, so upstream uses the region", onWebNode(d.edit("job.auth")),
		)
	}
	return steps.Passed("%s, %s", v, zone+region)
}
