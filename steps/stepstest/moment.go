package stepstest

import (
	"regexp"
	"strings"
	"time"
)

var ago = regexp.MustCompile(`\$\{ago ([^ }]+)\}`)

// timed replaces ${now} and ${ago 90s} by that time as Kubernetes writes it. A
// time that can't be read stays, as what is wrong with it.
func timed(text string, now time.Time) string {
	text = strings.ReplaceAll(text, "${now}", now.UTC().Format(time.RFC3339))
	return ago.ReplaceAllStringFunc(text, func(m string) string {
		d, err := time.ParseDuration(ago.FindStringSubmatch(m)[1])
		if err != nil {
			return err.Error()
		}
		return now.Add(-d).UTC().Format(time.RFC3339)
	})
}
