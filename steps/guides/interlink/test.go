package interlink

import (
	"errors"
	"regexp"
	"strconv"

	"carrick/steps"
	"carrick/steps/action"
)

func test() steps.Step {
	return steps.Step{
		Name: "test", Title: "Test",
		Map: steps.MapRow{Local: "test job", Arrow: steps.Remote},
		Why: "carrick sends the requests of a job through the endpoint, as the jobs' ServiceAccount, and compares the " +
			"responses with those to direct requests. It revokes the token immediately afterwards. Only the test Job sends " +
			"its requests from a compute node.",
		Ask: []steps.Question{
			{
				Key: "test.watch", Title: "Duration of the test watch (seconds)", Kind: steps.Number, Check: checkWatch,
				Help: "Argo uses watches, but proxies close connections that are idle for 60 s by default. Enter a number of " +
					"seconds, or 0 to skip this test.",
				Default: steps.Fixed(75, "default, longer than the 60 s timeout of proxies"),
			},
			{
				Key: "test.job", Title: "Test Job", Kind: steps.YesNo,
				Help:    "If yes, carrick runs a Job on the virtual node that requests its own identity and permissions.",
				Default: steps.Fixed(true, "default, because only this Job tests from a compute node"),
			},
			{
				Key: "test.image", Title: "Image of the test Job", Kind: steps.Text, NotFromPeer: true, When: runsJob,
				Default: testImageDefault,
				Help: "Enter an image with kubectl that compute nodes can pull. docker.io/bitnami/kubectl of the published " +
					"guide no longer exists.",
			},
		},
		Actions: []steps.Action{
			{
				Name: "ask", Title: "Send requests through the endpoint as the jobs' ServiceAccount", On: steps.Local,
				Needs: []string{"account-exists"},
				Doer:  askDoer{action.Manifest{File: "asked.yaml", Values: recorded("asked.yaml", "rules.txt")}},
			},
			{
				Name: "watch", Title: "Keep a watch open through the endpoint", On: steps.Local, When: holdsWatch,
				Needs: []string{"requests-pass"},
				Doer:  watchDoer{action.Manifest{File: "watched.yaml", Values: recorded("watched.yaml")}},
			},
			{
				Name: "test-job", Title: "Run the test Job on the virtual node", On: steps.Local, When: runsJob,
				Needs: []string{"virtual-node", "account-exists", "config-loaded", "test-image"},
				Doer:  jobDoer{action.Manifest{File: "test-job.yaml"}},
			},
		},
		Checks: testChecks(),
	}
}

func runsJob(e steps.Env) bool    { return e.Answers.Bool("test.job") }
func holdsWatch(e steps.Env) bool { return e.Answers.Int("test.watch") > 0 }

func checkWatch(v string) error {
	if n, err := strconv.Atoi(v); err != nil || n < 0 || n > 3600 {
		return errors.New("must be a number of seconds from 0 (no test) to 3600")
	}
	return nil
}

func testImageDefault(e steps.Env) (any, string) {
	if v, err := e.Own.Text("server-version"); err == nil {
		if tag := plainVersion(v); tag != "" {
			return "registry.k8s.io/kubectl:" + tag, "from the API server's version"
		}
	}
	return "registry.k8s.io/kubectl:v1.36.0", "default, upstream's own image"
}

// releaseVersion matches the part of a version that identifies the release.
var releaseVersion = regexp.MustCompile(`^v\d{1,3}\.\d{1,3}\.\d{1,3}`)

// plainVersion removes a vendor's suffix from v, because no image has a tag such as v1.33.1+k3s1. It returns "" if v is
// not a version.
func plainVersion(v string) string { return releaseVersion.FindString(v) }
