package check

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster/chart"
	"carrick/steps"
)

// ChartSource returns a function that returns the source of the named chart. The answer to question key is a
// repository, a registry, or a directory with a subdirectory for the chart.
func ChartSource(key, name string) func(context.Context, steps.Env) (chart.Source, error) {
	return func(_ context.Context, e steps.Env) (chart.Source, error) {
		from := strings.TrimRight(e.Answers.Text(key), "/")
		if !strings.Contains(from, "://") {
			from += "/" + name
		}
		return chart.Source(from), nil
	}
}

// ValidSource returns an error if v is not a valid chart source.
func ValidSource(v string) error {
	scheme, _, isURL := strings.Cut(v, "://")
	switch {
	case isURL && scheme != "https" && scheme != "http" && scheme != "oci":
		return fmt.Errorf("scheme %s:// is not supported: use https://, http://, oci:// or a directory", scheme)
	case isURL && strings.Contains(v, "@"):
		return errors.New("the URL must not contain a password, because it is stored in the link file")
	}
	return nil
}

// ValidVersion validates the answer to a question for a chart version. It accepts only exact versions, because "latest"
// and ranges make the installed version unpredictable. example is a version of that chart.
func ValidVersion(example string) func(string) error {
	return func(v string) error {
		if _, err := version.ParseSemantic(v); err != nil {
			return fmt.Errorf("%q is not an exact version such as %s", v, example)
		}
		return nil
	}
}

// AnswerText returns a function that returns an answer as a string. Use it for a Doer's field such as Chart.Version.
func AnswerText(key string) func(context.Context, steps.Env) (string, error) {
	return func(_ context.Context, e steps.Env) (string, error) { return e.Answers.Text(key), nil }
}
