package stepstest

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// unix matches ${unix 20h}, a time from now in seconds, as tokens contain it.
var unix = regexp.MustCompile(`\$\{unix (-?[0-9a-z]+)\}`)

var ago = regexp.MustCompile(`\$\{ago ([^ }]+)\}`)

// timed replaces ${now} and ${ago 90s} with a time in Kubernetes' format, and ${unix 20h} with seconds. It leaves a
// time that can't be parsed unchanged, so that the error shows it.
func timed(text string, now time.Time) string {
	text = strings.ReplaceAll(text, "${now}", now.UTC().Format(time.RFC3339))
	text = unix.ReplaceAllStringFunc(text, func(m string) string {
		d, err := time.ParseDuration(unix.FindStringSubmatch(m)[1])
		if err != nil {
			return err.Error()
		}
		return strconv.FormatInt(now.Add(d).Unix(), 10)
	})
	return ago.ReplaceAllStringFunc(text, func(m string) string {
		d, err := time.ParseDuration(ago.FindStringSubmatch(m)[1])
		if err != nil {
			return err.Error()
		}
		return now.Add(-d).UTC().Format(time.RFC3339)
	})
}
