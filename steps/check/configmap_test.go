package check

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Another manager that applies the same value does not make it newer. Other keys do not matter.
func TestSinceWhenAKeyHasItsValue(t *testing.T) {
	entry := func(minute int, fields string) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))
		return metav1.ManagedFieldsEntry{Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const ours, other = `{"f:data":{"f:a.yaml":{}}}`, `{"f:data":{"f:b.yaml":{}}}`
	for name, c := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		minute int // -1: not known
	}{
		"alone":        {[]metav1.ManagedFieldsEntry{entry(3, ours)}, 3},
		"shared later": {[]metav1.ManagedFieldsEntry{entry(3, ours), entry(9, ours)}, 3},
		"in any order": {[]metav1.ManagedFieldsEntry{entry(9, ours), entry(3, ours), entry(1, other)}, 3},
		"another key":  {[]metav1.ManagedFieldsEntry{entry(1, other)}, -1},
	} {
		got := KeySince(c.fields, "a.yaml")
		if c.minute < 0 != got.IsZero() || (c.minute >= 0 && got.Minute() != c.minute) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
