package interlink

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/check"
)

func testChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "requests-pass", Title: "The API answers the jobs' account through the endpoint", On: steps.Local,
			Needs: []string{"account-exists"}, FixedBy: "ask",
			Why:        "If a proxy drops the Authorization header or serves other paths, no job can use the API.",
			References: []string{page, "https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_set_header"},
			Run:        askedThrough, Tried: askedOn,
		},
		{
			Name: "permissions-kept", Title: "The endpoint does not change the account's permissions", On: steps.Local,
			Needs: []string{"requests-pass"}, FixedBy: "ask",
			Why:        "The permissions are the same, unless a proxy on the way sends its own credentials.",
			References: []string{page}, Run: rulesSame, Tried: askedOn,
		},
		{
			Name: "token-lifetime", Title: "Tokens are valid for as long as the longest job", On: steps.Local,
			Needs: []string{"requests-pass"}, FixedBy: "ask",
			Why: "A job's token is never renewed. If the API server limits the validity " +
				"(--service-account-max-token-expiration), longer jobs get 401.",
			References: []string{vkSource, "kubernetes/kubernetes: pkg/registry/core/serviceaccount/storage/token.go"},
			Run:        tokenLife,
		},
		{
			Name: "watch-held", Title: "A watch through the endpoint stays open", On: steps.Local, When: holdsWatch,
			Needs: []string{"requests-pass"}, FixedBy: "watch",
			Why: "nginx and other proxies close connections that are idle for 60 s (proxy_read_timeout), so Argo and " +
				"every controller lose their watches.",
			References: []string{"https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_read_timeout"}, Run: watchHeld,
			Tried: watchedOn,
		},
		{
			Name: "test-image", Title: "The test Job's image is available", On: steps.Local, When: runsJob,
			Needs: []string{"signed-in"},
			Why: "docker.io/bitnami has had no versioned images since 2025, so the published guide's Job never starts. " +
				"Compute nodes pull images with tools such as apptainer.",
			References: []string{"bitnami/containers: issue 83267", page}, Run: testImage,
		},
		{
			Name: "job-complete", Title: "The test Job has succeeded", On: steps.Local, When: runsJob,
			Needs: []string{"signed-in", "test-image"}, FixedBy: "test-job", Timeout: 30 * time.Minute,
			Why: "Only this Job tests as jobs run: in the network of a compute node, with a job's token, CA and " +
				"environment.",
			References: []string{page}, Run: jobComplete, Tried: ranOn,
		},
		{
			Name: "job-identity", Title: "The API authenticates the test Job as its ServiceAccount", On: steps.Local,
			From: "the Job's log", When: runsJob, Needs: []string{"job-complete"}, FixedBy: "test-job",
			Why: "The published guide tests with kubectl auth can-i --list, which succeeds for any account and does " +
				"not show the account that the API authenticates.",
			References: []string{page}, Run: jobIdentity,
		},
		{
			Name: "job-rules", Title: "The test Job can list its permissions", On: steps.Local, From: "the Job's log",
			When: runsJob, Needs: []string{"job-complete"}, FixedBy: "test-job",
			Why: "Every authenticated account can list its own permissions. Without these two lines the output does " +
				"not come from the API.",
			References: []string{page}, Run: jobRules,
		},
	}
}

// theAsked returns the recorded responses and true, or the check's result if there is no record.
func theAsked(ctx context.Context, e steps.Env) (apiReply, steps.Result, bool) {
	var r apiReply
	want, _, err := wantedSubject(e)
	if err != nil {
		return r, steps.Errored(err), false
	}
	_, ok, err := record(ctx, e, "asked.yaml", &r)
	switch {
	case err != nil:
		return r, steps.Errored(err), false
	case !ok:
		return r, steps.NotTried("no requests have been sent yet"), false
	case !r.of(want):
		return r, steps.Failed(
			fmt.Sprintf(
				"the requests went to %s as %s, with CA %s, but now the endpoint is %s, the account %s, and the CA %s", r.Endpoint,
				r.Account,
				cmp.Or(short(r.CA), "of the system"), want.Endpoint, want.Account, cmp.Or(short(want.CA), "of the system"),
			),
			"",
		), false
	}
	return r, steps.Result{}, true
}

func askedThrough(ctx context.Context, e steps.Env) steps.Result {
	r, said, ok := theAsked(ctx, e)
	switch {
	case !ok:
		return said
	case r.Through.Error != "" && r.Inside.Error == "":
		return steps.Failed(
			fmt.Sprintf(
				"error %s through %s, but the API answers direct requests (%s)", quoted(r.Through.Error), r.Endpoint, r.when(),
			),
			hintFor(e, r.Through.Error),
		)
	case r.Through.Error != "":
		return steps.Failed(
			fmt.Sprintf(
				"error %s through the endpoint, and error %s for direct requests (%s)", quoted(r.Through.Error),
				quoted(r.Inside.Error), r.when(),
			),
			hintFor(e, r.Through.Error),
		)
	case r.Through.WhoAmI != r.Account:
		return steps.Failed(
			fmt.Sprintf(
				"the API authenticates the jobs as %s through the endpoint, not as %s (%s)", quoted(r.Through.WhoAmI), r.Account,
				r.when(),
			),
			"configure the proxy to forward the Authorization header of requests unchanged: "+e.ApplyStep("proxy"),
		)
	}
	return steps.Passed("GET /api returns 200 for %s (%s)", r.Through.WhoAmI, r.when())
}

func rulesSame(ctx context.Context, e steps.Env) steps.Result {
	r, said, ok := theAsked(ctx, e)
	if !ok {
		return said
	}
	lines := table(r.Through.Rules, r.Inside.Rules)
	lacks, argo := missingForArgo(r.Through.Rules)
	lines = append(append(lines, ""), argo...)
	forArgoSaid := "Argo's executor has the permissions that it needs"
	if len(lacks) > 0 {
		forArgoSaid = "Argo's executor cannot " + strings.Join(lacks, " and ") + " workflowtaskresults.argoproj.io"
	}
	var out steps.Result
	switch other := differingRules(r.Through.Rules, r.Inside.Rules); {
	case r.Inside.Error != "":
		out = steps.Failed("the API does not answer direct requests: "+quoted(r.Inside.Error), e.ApplyStep("test"))
	case len(other) > 0:
		out = steps.Failed(
			fmt.Sprintf(
				"the permissions through the endpoint differ from those of direct requests on %s (%s)", cleanSome(other), r.when(),
			),
			e.ApplyStep("test"),
		)
	case r.Through.Partial || r.Inside.Partial:
		out = steps.Warned(
			fmt.Sprintf(
				"%d rules are the same through the endpoint and directly, but an authorizer of the API server cannot list all "+
					"that it allows. According to these rules, %s (%s)",
				len(r.Through.Rules), forArgoSaid, r.when(),
			),
			"check a single permission: "+e.Kubectl()+" -n "+workloadNamespace(e)+
				" auth can-i create workflowtaskresults.argoproj.io --as "+r.Account,
		)
	default:
		out = steps.Passed(
			"permissions on %d resources are the same through the endpoint and directly; %s (%s)", len(r.Through.Rules),
			forArgoSaid, r.when(),
		)
	}
	out.Lines = lines
	return out
}

func tokenLife(ctx context.Context, e steps.Env) steps.Result {
	r, said, ok := theAsked(ctx, e)
	if !ok {
		return said
	}
	want, got := jobHours(e), time.Duration(r.GrantedSeconds)*time.Second
	if r.AskedSeconds < int64(want.Seconds()) {
		return steps.Failed(
			fmt.Sprintf(
				"the test requested a token for %s, but the longest job runs for %s",
				hours(time.Duration(r.AskedSeconds)*time.Second),
				hours(want),
			),
			"",
		)
	}
	const slack = time.Minute
	if got+slack < min(want, time.Duration(r.AskedSeconds)*time.Second) {
		return steps.Warned(
			fmt.Sprintf(
				"a token requested for %s is valid for %s: a job that runs longer gets 401 after that time", hours(want),
				hours(got),
			),
			"limit jobs to that time (set vk.job-hours), or raise the API server's limit, if you can: "+
				"--service-account-max-token-expiration",
		)
	}
	return steps.Passed("a token requested for %s is valid for %s", hours(want), hours(got))
}

func watchHeld(ctx context.Context, e steps.Env) steps.Result {
	want, _, err := wantedSubject(e)
	if err != nil {
		return steps.Errored(err)
	}
	var r watched
	_, ok, err := record(ctx, e, "watched.yaml", &r)
	want.Account = watchUser(e)
	most := time.Duration(e.Answers.Int("test.watch")) * time.Second
	held := time.Duration(r.Seconds * float64(time.Second)).Round(time.Second)
	proxy := "allow connections to be idle for an hour on every proxy on the way (nginx: proxy_read_timeout 3600s): " +
		e.ApplyStep("proxy")
	switch {
	case err != nil:
		return steps.Errored(err)
	case !ok:
		return steps.NotTried("no test watch has run yet")
	case !r.of(want):
		return steps.Failed(
			fmt.Sprintf(
				"the test watch ran through %s, but now the endpoint is %s, or has another CA", r.Endpoint, want.Endpoint,
			),
			"",
		)
	case r.Holding:
		return holding(r)
	case r.Error != "":
		return steps.Failed(fmt.Sprintf("the watch could not start: %s (%s)", quoted(r.Error), r.when()), hintFor(e, r.Error))
	case r.Status != 200:
		return steps.Failed(fmt.Sprintf("the watch request returned %d (%s)", r.Status, r.when()), e.ApplyStep("test"))
	case r.Ended:
		return steps.Failed(fmt.Sprintf("the watch was closed after %s (%s)%s", held, r.when(), inBrackets(r.Why)), proxy)
	case !r.Events:
		return steps.Failed(
			fmt.Sprintf(
				"the watch received no event in %s (%s): a proxy on the way buffers responses", held,
				r.when(),
			),
			"turn off buffering (nginx: proxy_buffering off): "+e.ApplyStep("proxy"),
		)
	case held < most:
		return steps.Failed(fmt.Sprintf("the watch was open for %s, but %s are required", held, most), "")
	}
	return steps.Passed("the watch was idle for %s and is still open (%s)", held, r.when())
}

// holding returns the result for a watch whose outcome is not recorded yet. The check waits until 30 s after the
// planned end of the watch. After that it fails.
func holding(r watched) steps.Result {
	if r.Stopped {
		return steps.NotTried(fmt.Sprintf("the test watch was stopped before its end (%s)", r.when()))
	}
	ends := r.Time.Add(time.Duration(r.Wanted)*time.Second + 30*time.Second)
	if time.Now().After(ends) {
		return steps.Failed(
			fmt.Sprintf(
				"the test watch started (%s), but carrick was stopped before it recorded the outcome",
				r.when(),
			),
			"",
		)
	}
	v := steps.Waits(r.Time, "the test watch is running for %d s (%s)", r.Wanted, r.when())
	v.Again = ends
	return v
}

// hours formats a duration in whole hours, and a duration below an hour as time.Duration does.
func hours(d time.Duration) string {
	if d < time.Hour {
		return d.String()
	}
	return fmt.Sprintf("%d h", int(d.Round(time.Hour).Hours()))
}

func inBrackets(why string) string {
	if why == "" {
		return ""
	}
	return ": " + quoted(why)
}

func cleanSome(names []string) string { return strings.ReplaceAll(quoted(check.Some(names)), `"`, "") }

// hintFor returns the next troubleshooting step for said, an error from an API client.
func hintFor(e steps.Env, said string) string {
	check := func(names, why string) string {
		return "carrick check " + e.LinkFile() + " --only " + names + "    # " + why
	}
	said = strings.ToLower(said)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(said, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("x509", "certificate", "unknown authority"):
		return check("config-ca", "the endpoint's certificate does not verify against the CA that jobs get")
	case has("localhost:8080"):
		return check(
			"config-address,projected-volumes,config-loaded",
			"the job has no API address, because its environment or its files are missing; on the edge node, check "+
				"ExportPodData",
		)
	case has("no such host", "timeout", "timed out", "refused", "no route", "unreachable", "no answer"):
		return "run on a compute node: curl -m 5 -sk https://" + endpointText(e) +
			"/version    # if it fails, check the firewall and routes between the compute nodes and the endpoint"
	case has("unauthorized", "401", "must be logged in"):
		return check(
			"kubelet-creates-tokens,token-lifetime", "the token is empty or has expired, or its pod no longer exists",
		)
	case has("404", "502", "bad gateway"):
		return e.ApplyStep("proxy")
	}
	return e.ApplyStep("test")
}

func endpointText(e steps.Env) string {
	at, err := e.Own.Text("endpoint")
	if err != nil {
		return "ADDRESS:PORT"
	}
	return at
}
