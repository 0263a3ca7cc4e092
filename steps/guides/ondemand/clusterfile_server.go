package ondemand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"carrick/cluster/failure"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

func endpointIs(_ context.Context, e steps.Env, d clusterDoc) steps.Result {
	v, want := d.text("job.server.endpoint"), e.Answers.Text("cluster.server")
	u, err := url.Parse(v)
	switch {
	case v == "" && d.at("job.server") != nil:
		return steps.Failed(
			d.place("job.server")+": job.server has no endpoint, so the adapter creates no cluster entry", "",
		)
	case v == "":
		return steps.Failed(
			d.path+" has no job.server, so the dashboard writes https://localhost:8080 into each user's kubeconfig", "",
		)
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return steps.Failed(
			d.place("job.server.endpoint")+": job.server.endpoint is "+shownWord(v)+", but must begin with https://", "",
		)
	case strings.TrimSuffix(v, "/") != strings.TrimSuffix(want, "/"):
		return steps.Failed(
			d.place("job.server.endpoint")+": job.server.endpoint is "+shownWord(v)+", but cluster.server is "+
				want,
			"",
		)
	}
	return steps.Passed("%s", v)
}

func endpointTLS(ctx context.Context, e steps.Env, d clusterDoc) steps.Result {
	u, err := url.Parse(d.text("job.server.endpoint"))
	if err != nil {
		return steps.Errored(err)
	}
	roots, err := trusted(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	at, by := d.text("job.server.cert_authority_file"), "the system's CAs (cert_authority_file is not set)"
	if at != "" {
		by = at
		if roots, err = e.Host.Read(ctx, at); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return steps.Failed(
					d.place("job.server.cert_authority_file")+" names "+shownWord(at)+", which does not exist", e.ApplyStep("kubectl"),
				).Symptom()
			}
			return steps.Errored(err)
		}
		info, err := e.Host.Stat(ctx, at)
		if err != nil {
			return steps.Errored(err)
		}
		if info.Mode.Perm()&0o004 == 0 {
			return steps.Failed(
				fmt.Sprintf("%s has mode %04o: users' kubectl cannot read it", at, info.Mode.Perm()),
				permissionFix(e, at, "chmod 0644 %s"),
			)
		}
		if _, err := probe.ParseCerts(roots); err != nil {
			return steps.Failed(at+": "+err.Error(), e.ApplyStep("kubectl"))
		}
	}
	where := check.HostPort(u)
	seen, err := tracked.Look(
		ctx, "tls/"+where, time.Minute,
		func(ctx context.Context) (probe.TLSReport, error) { return probe.TLS(ctx, where, "", nil) },
	)
	if err != nil {
		return steps.Failed(
			where+": "+failure.Explain(err),
			onWebNode("curl -v --cacert "+steps.Quoted(
				cmp.Or(at, "/etc/ssl/certs/ca-bundle.crt"),
			)+" "+steps.Quoted(u.String()+"/version")),
		)
	}
	judged, err := seen.Judge(u.Hostname(), roots)
	switch {
	case err != nil:
		return steps.Errored(err)
	case !judged.Trusted:
		return steps.Failed(
			"the certificate of the endpoint fails verification against "+by+": "+judged.Problem,
			"put the CA of the API server into "+cmp.Or(at, clusterCA)+
				", or use a name from the API server's certificate in cluster.server: "+shortList(judged.Names, ", "),
		)
	}
	return steps.Passed(
		"the certificate verifies against %s and is valid until %s", by, judged.NotAfter.Format(time.DateOnly),
	)
}
