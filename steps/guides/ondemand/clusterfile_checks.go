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

// clusterFileName names the check that the others of the file need, and the action that writes the file.
const clusterFileName = "cluster-file"

// clusterFileCheck is a check that reads the cluster file. carrick's action that writes the file fixes it.
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

// fixedManually returns a check that no action of carrick fixes.
func fixedManually(c steps.Check) steps.Check {
	c.FixedBy = ""
	return c
}

// clusterFormChecks are about the form of the file and of its values.
func clusterFormChecks() []steps.Check {
	return []steps.Check{
		clusterFileCheck(
			clusterFileName, "the cluster file is there, and upstream can read it",
			"it is read as plain YAML, without ERB; what can't be read is passed over, and the cluster is not in the portal",
			inClusters, clusterFileReads,
		),
		clusterFileCheck(
			"cluster-file-keys", "upstream knows all of its keys",
			"a key with a typing error, or in the wrong place, is passed over without a word, and a default takes its place",
			inBatch, clusterFileKeys, clusterFileName,
		),
		clusterFileCheck(
			"cluster-file-values", "its values are of the right form, mounts too",
			"to Ruby a text is true whatever it says; a mount of another type gives a pod that the API server refuses", inPod,
			clusterFileValues, clusterFileName,
		),
		clusterFileCheck(
			"adapter", "its adapter is kubernetes",
			"the word decides which adapter is loaded; another one is an error in the dashboard", inFactory, adapterIs,
			clusterFileName,
		),
		clusterFileCheck(
			"auth-type", "its auth type is one that upstream knows",
			"of an unknown one the adapter does nothing at all: no context is made, and kubectl uses whatever the user's "+
				"kubeconfig has at that moment. The published page says odic in one place",
			inBatch, authType, clusterFileName,
		),
		fixedManually(clusterFileCheck(
			"kubectl-bin", "its bin is a kubectl that users may run",
			"upstream's default is /usr/bin/kubectl, and the published page puts it into /usr/local/bin", inBatch, binExists,
			clusterFileName,
		)),
		clusterFileCheck(
			"config-file", "it names no kubeconfig under ~",
			"the shell does not make a home of ~ behind =, so kubectl makes a folder that is called ~ in whatever folder it "+
				"runs in. The published page has it so",
			inBatch, clusterConfigFile, clusterFileName,
		),
	}
}

// clusterAccessChecks are about the API server that the file names, and how users reach it.
func clusterAccessChecks() []steps.Check {
	trusted := fixedManually(clusterFileCheck(
		"endpoint-tls", "users' kubectl trusts the endpoint's certificate",
		"kubectl judges it by cert_authority_file and the name in the endpoint", inBatch, endpointTLS, "endpoint",
	))
	trusted.From = "this machine"
	return []steps.Check{
		clusterFileCheck(
			"endpoint", "its endpoint is the API server's",
			"the dashboard writes it into each user's kubeconfig at each start, with auth type managed, too. Without one it "+
				"writes https://localhost:8080",
			inK8sInit, endpointIs, clusterFileName,
		),
		trusted,
		fixedManually(clusterFileCheck(
			"cluster-name-free", "nobody has its cluster name for another server",
			"kubectl config set-cluster overwrites the entry of that name in the user's kubeconfig, at each start of "+
				"the dashboard",
			inK8sInit, clusterNameFree, clusterFileName,
		)),
		fixedManually(clusterFileCheck(
			"prefixes-agree", "its prefixes are those of hook.env",
			"the hook makes the namespace, and the dashboard looks for it: with another prefix no app ever starts", inBatch,
			prefixesAgree, clusterFileName, "hook-env",
		)),
		clusterFileCheck(
			"no-ssh", "the portal offers no shell on the cluster's nodes",
			"without ssh_allow: false the page of each app has a button that opens SSH to a worker node; a login host makes "+
				"one in the menu",
			clusterSource, noSSH, clusterFileName,
		),
	}
}

// clusterAuthChecks are about the keys that one auth type requires.
func clusterAuthChecks() []steps.Check {
	managed := clusterFileCheck(
		"managed-context", "it names a context that users have",
		"with auth type managed the dashboard makes no context: without the key kubectl uses whatever is current", inBatch,
		managedContext, clusterFileName,
	)
	managed.When = func(e steps.Env) bool { return auth(e) == "managed" }
	gke := clusterFileCheck(
		"gke-account", "it names Google's service account file",
		"the dashboard calls gcloud with it at each start, as the user; without the key it ends there. Whether Google lets "+
			"that account in is not looked at: that takes its key",
		inBatch, gkeAccount, clusterFileName,
	)
	gke.When, gke.FixedBy = func(e steps.Env) bool { return auth(e) == "gke" }, ""
	return []steps.Check{managed, gke}
}

// lintOf are the faults of a kind in the file.
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
			"there are two of that name, "+d.path+" and "+other+": which of them counts is luck",
			onWebNode("mv "+steps.Quoted(other)+" "+steps.Quoted(other+".old")),
		)
	}
	info, err := e.Host.Stat(ctx, d.path)
	switch {
	case err != nil:
		return steps.Errored(err)
	case info.Mode.Perm()&0o004 == 0:
		return steps.Failed(
			fmt.Sprintf("%s has mode %04o: the dashboard runs as each user, and can't read it", d.path, info.Mode.Perm()),
			permissionFix(e, d.path, "chmod 0644 %s"),
		)
	}
	if r := clustersListed(ctx, e); r.Status != steps.Pass {
		return r
	}
	return steps.Passed("%s", d.path)
}

// clustersListed asserts that users can list the folder of the cluster files, which the dashboard does as each user.
func clustersListed(ctx context.Context, e steps.Env) steps.Result {
	folder, err := e.Host.Stat(ctx, clustersFolder)
	if err != nil {
		return steps.Errored(err)
	}
	if folder.Mode.Perm()&0o005 != 0o005 {
		return steps.Failed(fmt.Sprintf("%s has mode %04o: the dashboard runs as each user, and cannot list it",
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
	return steps.Passed("it knows all of them")
}

func clusterFileValues(_ context.Context, _ steps.Env, d clusterDoc) steps.Result {
	if faults := lintOf(d, typing); len(faults) > 0 {
		return faulty(d, faults)
	}
	if types := d.mountTypes(); len(types) > 0 {
		return steps.Passed("mounts of type %s among them", strings.Join(types, " and "))
	}
	return steps.Passed("there are no mounts")
}

func adapterIs(_ context.Context, _ steps.Env, d clusterDoc) steps.Result {
	switch v := d.text("job.adapter"); v {
	case "kubernetes":
		return steps.Passed("%s", d.place("job.adapter"))
	case "":
		return steps.Failed(d.path+" names no job.adapter", "")
	default:
		return steps.Failed(
			d.place("job.adapter")+": job.adapter is "+shownWord(v)+", and has to be kubernetes, to the letter", "",
		)
	}
}

func authType(_ context.Context, e steps.Env, d clusterDoc) steps.Result {
	v, want := d.text("job.auth.type"), auth(e)
	switch {
	case v == "" && d.at("job.auth") != nil:
		return steps.Failed(
			d.place("job.auth")+": job.auth has no type, and the adapter then makes no cluster, no context, nothing", "",
		)
	case v == "":
		v = "managed"
	case v == "odic":
		return steps.Failed(
			d.place("job.auth.type")+
				": job.auth.type is odic, as the published page has it: it is oidc. The adapter makes no context, and says nothing",
			"",
		)
	case !slices.Contains([]string{"managed", "oidc", "gke"}, v):
		return steps.Failed(d.place("job.auth.type")+": upstream knows no job.auth.type "+shownWord(v)+
			likelyAuth(v), "")
	}
	if v != want {
		return steps.Failed(
			fmt.Sprintf("%s: it is %s, and cluster.auth is answered with %s", d.place("job.auth.type"), v, want), "",
		)
	}
	return steps.Passed("%s", v)
}

func likelyAuth(v string) string {
	if near := nearest.Name(v, []string{"managed", "oidc", "gke"}); near != "" {
		return ": is " + near + " meant?"
	}
	return ": it is managed, oidc or gke"
}

func binExists(ctx context.Context, e steps.Env, d clusterDoc) steps.Result {
	at, from := d.text("job.bin"), d.place("job.bin")
	if at == "" {
		at, from = keyAt("job.bin").empty, d.path+" names no job.bin, and upstream takes"
	}
	if !strings.HasPrefix(at, "/") {
		return steps.Failed(from+": job.bin is "+shownWord(at)+", not an absolute path", e.ApplyStep("clusterfile"))
	}
	why, err := executable(ctx, e, at)
	want := e.Answers.Text("kubectl.path")
	switch {
	case err != nil:
		return steps.Errored(err)
	case why != "" && at != want:
		return steps.Failed(from+" "+shownWord(at)+": "+why+". kubectl stands at "+want, e.ApplyStep("clusterfile"))
	case why != "":
		return steps.Failed(from+" "+shownWord(at)+": "+why, kubectlFix(ctx, e)).WithoutAction()
	case at != want:
		return steps.Warned(
			"bin is "+shownWord(at)+", and root's kubectl is "+want+": two that may differ in version",
			e.ApplyStep("clusterfile"),
		)
	}
	return steps.Passed("%s", at)
}

func clusterConfigFile(_ context.Context, _ steps.Env, d clusterDoc) steps.Result {
	v := d.text("job.config_file")
	switch {
	case v == "":
		return steps.Passed("it names none: each user's own")
	case strings.HasPrefix(v, "~"):
		return steps.Failed(
			d.place("job.config_file")+": job.config_file is "+shownWord(v)+", which kubectl takes for a folder of the name ~",
			"",
		)
	case strings.Contains(v, "$"):
		return steps.Warned(
			d.place("job.config_file")+": job.config_file is "+shownWord(v)+", and what $ becomes is up to the shell", "",
		)
	case !strings.HasPrefix(v, "/"):
		return steps.Failed(d.place("job.config_file")+": job.config_file is "+shownWord(v)+
			", not an absolute path", "")
	}
	return steps.Passed("%s: one for all users, who must all be able to write it", v)
}

func noSSH(_ context.Context, _ steps.Env, d clusterDoc) steps.Result {
	n := d.at("batch_connect.ssh_allow")
	if n == nil || switchedOn(n.Value) {
		return steps.Failed(d.path+" has no batch_connect.ssh_allow: false", "")
	}
	if d.at("login") != nil {
		return steps.Warned(
			d.place("login")+
				": there is a login host, which a Kubernetes cluster has none of: the portal's menu has a shell that leads nowhere",
			onWebNode(d.edit("login")),
		)
	}
	return steps.Passed("ssh_allow is false, and there is no login host")
}

func gkeAccount(_ context.Context, _ steps.Env, d clusterDoc) steps.Result {
	v := d.text("job.auth.svc_acct_file")
	zone, region := d.text("job.auth.zone"), d.text("job.auth.region")
	switch {
	case v == "":
		return steps.Failed(
			d.path+" has no job.auth.svc_acct_file",
			onWebNode(d.edit("job.auth")+"    # svc_acct_file: /absolute/path, one of each user's own"),
		)
	case zone == "" && region == "":
		return steps.Failed(
			d.place("job.auth")+": neither zone nor region is set, and gcloud then asks", onWebNode(d.edit("job.auth")),
		)
	case strings.HasPrefix(v, "~"):
		return steps.Warned(
			d.place("job.auth.svc_acct_file")+": "+shownWord(v)+
				" begins with ~, which a shell does not replace behind --key-file=",
			onWebNode(d.edit("job.auth.svc_acct_file")),
		)
	case zone != "" && region != "":
		return steps.Warned(
			d.place("job.auth")+": both zone and region are set: the region wins", onWebNode(d.edit("job.auth")),
		)
	}
	return steps.Passed("%s, %s", v, zone+region)
}
