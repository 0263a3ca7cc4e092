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
			Name: "asked-through", Title: "the API answers the jobs' ServiceAccount through the endpoint", On: steps.Local,
			Needs: []string{"account-there"}, FixedBy: "ask",
			Why:        "a proxy that drops the header with the token, or serves other paths, makes a stranger of every job",
			References: []string{page, "https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_set_header"},
			Run:        askedThrough, Tried: askedOn,
		},
		{
			Name: "rules-same", Title: "through the endpoint it may do what it may inside", On: steps.Local,
			Needs: []string{"asked-through"}, FixedBy: "ask",
			Why: "the same ServiceAccount has the same rights on either way; where they differ, somebody on the way " +
				"speaks for it",
			References: []string{page}, Run: rulesSame, Tried: askedOn,
		},
		{
			Name: "token-life", Title: "tokens last as long as the longest job", On: steps.Local,
			Needs: []string{"asked-through"}, FixedBy: "ask",
			Why: "a job is given its token once and it is never renewed. The virtual kubelet asks for 100 years, but " +
				"an API server may be told to grant less (--service-account-max-token-expiration), as managed ones are: the job " +
				"gets 401 from then on",
			References: []string{vkSource, "kubernetes/kubernetes: pkg/registry/core/serviceaccount/storage/token.go"},
			Run:        tokenLife,
		},
		{
			Name: "watch-held", Title: "a watch through the endpoint stays open", On: steps.Local, When: holdsWatch,
			Needs: []string{"asked-through"}, FixedBy: "watch",
			Why: "nginx cuts what is silent for 60 s (proxy_read_timeout), and other proxies do likewise: Argo and " +
				"every controller then lose what they watch, again and again",
			References: []string{"https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_read_timeout"}, Run: watchHeld,
			Tried: watchedOn,
		},
		{
			Name: "test-image", Title: "the test Job's image is to be had", On: steps.Local, When: runsJob,
			Needs: []string{"signed-in"},
			Why: "versioned images of docker.io/bitnami are gone since 2025: the published guide's Job never starts. " +
				"Compute nodes pull from outside, with apptainer and the like",
			References: []string{"bitnami/containers: issue 83267", page}, Run: testImage,
		},
		{
			Name: "job-complete", Title: "the test Job has ended well", On: steps.Local, When: runsJob,
			Needs: []string{"signed-in", "test-image"}, FixedBy: "test-job", Timeout: 30 * time.Minute,
			Why: "it is the only look from where jobs run: through their network, with their token, their CA and their " +
				"environment",
			References: []string{page}, Run: jobComplete, Tried: ranOn,
		},
		{
			Name: "job-identity", Title: "the API knows the test Job as its ServiceAccount", On: steps.Local,
			From: "the Job's log", When: runsJob, Needs: []string{"job-complete"}, FixedBy: "test-job",
			Why: "kubectl auth can-i --list, the published guide's proof, succeeds for anybody: what counts is who the " +
				"API thinks it is",
			References: []string{page}, Run: jobIdentity,
		},
		{
			Name: "job-rules", Title: "the test Job may ask what it may do", On: steps.Local, From: "the Job's log",
			When: runsJob, Needs: []string{"job-complete"}, FixedBy: "test-job",
			Why: "each account that is signed in may ask about itself, so these two lines are in every answer; without " +
				"them what was printed is no answer of the API",
			References: []string{page}, Run: jobRules,
		},
	}
}

// theAsked returns the record of the responses, or a verdict if there is none.
func theAsked(ctx context.Context, e steps.Env) (apiReply, steps.Result, bool) {
	var r apiReply
	want, _, err := sought(e)
	if err != nil {
		return r, steps.Errored(err), false
	}
	_, ok, err := record(ctx, e, "asked.yaml", &r)
	switch {
	case err != nil:
		return r, steps.Errored(err), false
	case !ok:
		return r, steps.NotTried("nobody has asked yet"), false
	case !r.of(want):
		return r, steps.Failed(
			fmt.Sprintf(
				"%s was asked as %s, with CA %s; now it is %s, %s and %s", r.Endpoint, r.Account,
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
			fmt.Sprintf("%s, through %s; without the endpoint it answers (%s)", quoted(r.Through.Error), r.Endpoint, r.when()),
			hintFor(e, r.Through.Error),
		)
	case r.Through.Error != "":
		return steps.Failed(
			fmt.Sprintf("%s, and without the endpoint %s (%s)", quoted(r.Through.Error), quoted(r.Inside.Error), r.when()),
			hintFor(e, r.Through.Error),
		)
	case r.Through.WhoAmI != r.Account:
		return steps.Failed(
			fmt.Sprintf(
				"the API takes it for %s through the endpoint, not for %s (%s)", quoted(r.Through.WhoAmI), r.Account, r.when(),
			),
			"let the proxy pass the header Authorization on, and take credentials of its own out of it: "+e.ApplyStep("proxy"),
		)
	}
	return steps.Passed("GET /api is 200, and it is %s (%s)", r.Through.WhoAmI, r.when())
}

func rulesSame(ctx context.Context, e steps.Env) steps.Result {
	r, said, ok := theAsked(ctx, e)
	if !ok {
		return said
	}
	lines := table(r.Through.Rules, r.Inside.Rules)
	lacks, argo := lacksForArgo(r.Through.Rules)
	lines = append(append(lines, ""), argo...)
	forArgoSaid := "Argo's executor has what it needs"
	if len(lacks) > 0 {
		forArgoSaid = "Argo's executor lacks " + strings.Join(lacks, " and ") + " on workflowtaskresults.argoproj.io"
	}
	var out steps.Result
	switch other := otherWays(r.Through.Rules, r.Inside.Rules); {
	case r.Inside.Error != "":
		out = steps.Failed("without the endpoint nothing was answered: "+quoted(r.Inside.Error), e.ApplyStep("test"))
	case len(other) > 0:
		out = steps.Failed(fmt.Sprintf("they differ on %s (%s)", cleanSome(other), r.when()), e.ApplyStep("test"))
	case r.Through.Partial || r.Inside.Partial:
		out = steps.Warned(
			fmt.Sprintf(
				"%d rules on either way, the same, but an authorizer of the API server can't list all that it allows; %s "+
					"by these (%s)",
				len(r.Through.Rules), forArgoSaid, r.when(),
			),
			"ask about one right: "+e.Kubectl()+" -n "+workloadNamespace(e)+
				" auth can-i create workflowtaskresults.argoproj.io --as "+r.Account,
		)
	default:
		out = steps.Passed("rules on %d things, the same on either way; %s (%s)", len(r.Through.Rules), forArgoSaid, r.when())
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
				"a token was asked for %s, and the longest job runs %s", hours(time.Duration(r.AskedSeconds)*time.Second),
				hours(want),
			),
			"",
		)
	}
	const slack = time.Minute
	if got+slack < min(want, time.Duration(r.AskedSeconds)*time.Second) {
		return steps.Warned(
			fmt.Sprintf(
				"asked for %s the API server grants %s: a job that runs longer gets 401 from then on", hours(want), hours(got),
			),
			"let jobs run for at most that long (answer vk.job-hours), or have the API server grant more: "+
				"--service-account-max-token-expiration, where that is yours to set",
		)
	}
	return steps.Passed("asked for %s, %s were granted", hours(want), hours(got))
}

func watchHeld(ctx context.Context, e steps.Env) steps.Result {
	want, _, err := sought(e)
	if err != nil {
		return steps.Errored(err)
	}
	var r watched
	_, ok, err := record(ctx, e, "watched.yaml", &r)
	want.Account = watchUser(e)
	most := time.Duration(e.Answers.Int("test.watch")) * time.Second
	held := time.Duration(r.Seconds * float64(time.Second)).Round(time.Second)
	proxy := "let what is on the way keep silent connections for an hour (nginx: proxy_read_timeout 3600s): " +
		e.ApplyStep("proxy")
	switch {
	case err != nil:
		return steps.Errored(err)
	case !ok:
		return steps.NotTried("no watch has been held yet")
	case !r.of(want):
		return steps.Failed(
			fmt.Sprintf("a watch was held through %s; now it is %s, or its CA is another", r.Endpoint, want.Endpoint), "",
		)
	case r.Holding:
		return holding(r)
	case r.Error != "":
		return steps.Failed(fmt.Sprintf("no watch came about: %s (%s)", quoted(r.Error), r.when()), hintFor(e, r.Error))
	case r.Status != 200:
		return steps.Failed(fmt.Sprintf("the answer to a watch is %d (%s)", r.Status, r.when()), e.ApplyStep("test"))
	case r.Ended:
		return steps.Failed(fmt.Sprintf("it was cut after %s (%s)%s", held, r.when(), inBrackets(r.Why)), proxy)
	case !r.Events:
		return steps.Failed(
			fmt.Sprintf(
				"nothing came of it while it was held for %s (%s): what is on the way keeps answers back until they end", held,
				r.when(),
			),
			"switch buffering off (nginx: proxy_buffering off): "+e.ApplyStep("proxy"),
		)
	case held < most:
		return steps.Failed(fmt.Sprintf("it was held for %s, and %s are wanted", held, most), "")
	}
	return steps.Passed("silent for %s and still open (%s)", held, r.when())
}

// holding is the verdict on a watch that is still held: it waits for the duration of the watch,
// and a moment for the outcome to be written.
func holding(r watched) steps.Result {
	ends := r.Time.Add(time.Duration(r.Wanted)*time.Second + 30*time.Second)
	if time.Now().After(ends) {
		return steps.Failed(
			fmt.Sprintf("a watch was begun (%s), and nobody has said what became of it: whoever held it was stopped", r.when()),
			"",
		)
	}
	v := steps.Waits(r.Time, "a watch is being held for %d s (%s)", r.Wanted, r.when())
	v.Again = ends
	return v
}

// hours formats a long duration in whole hours, and a short one unchanged.
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

// hintFor returns the next step of troubleshooting for an error of an API client.
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
		return check("config-ca", "the CA that jobs are given does not prove what the endpoint shows")
	case has("localhost:8080"):
		return check(
			"config-address,projected-volumes,config-loaded",
			"the job was told of no API: its environment or its files are missing; on the edge node: ExportPodData",
		)
	case has("no such host", "timeout", "timed out", "refused", "no route", "unreachable", "no answer"):
		return "run on a compute node: curl -m 5 -sk https://" + endpointText(e) +
			"/version    # no answer: a firewall or a route between the compute nodes and the endpoint"
	case has("unauthorized", "401", "must be logged in"):
		return check("kubelet-mints,token-life", "the token is empty, has ended, or its pod is gone")
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
