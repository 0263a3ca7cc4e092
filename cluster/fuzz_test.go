package cluster

import (
	"strings"
	"testing"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/clustertest/hostile"
	"carrick/cluster/failure"
)

func addTexts(f *testing.F, add func(string)) {
	f.Helper()
	for name, text := range hostile.Texts {
		if name != "a long line" { // mutations of it cost time, and find nothing
			add(text)
		}
	}
}

// Explain turns any error of an API server into one clean sentence.
func FuzzExplain(f *testing.F) {
	addTexts(f, func(text string) { f.Add(403, text, text, text, "Forbidden") })
	f.Add(
		403, `secrets "x" is forbidden: User "\x1b[2J" cannot get resource "secrets" in API group "" in the namespace "a"`,
		"secrets", "x", "Forbidden",
	)
	f.Add(409, `Apply failed with 1 conflict: conflict with "a\nb": .x`, "", "", "Conflict")
	f.Add(422, "x", "kind", "name", "Invalid")
	f.Fuzz(func(t *testing.T, code int, message, kind, name, reason string) {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: int32(code), Reason: metav1.StatusReason(reason), Message: message,
			Details: &metav1.StatusDetails{Name: name, Kind: kind, Group: name, Causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeFieldManagerConflict, Message: message, Field: name}, {Message: message, Field: kind},
			}},
		}}
		text := failure.Explain(err)
		if bad := hostile.Unfit(text); bad != "" || strings.Contains(text, "\n") ||
			utf8.RuneCountInString(text) > failure.LongestSentence {
			t.Errorf("%s: %q", bad, text)
		}
		_ = answerOf(err)
	})
}
