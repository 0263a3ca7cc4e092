package liqopeer

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLooksAreRareWhileNothingChanges(t *testing.T) {
	together := &pace{}
	one, other := looks{pace: together}, looks{pace: together}
	taken := 0
	for range 2 * rarely {
		if !one.skip() {
			taken++
		}
	}
	if taken != 2 {
		t.Errorf("%d looks of %d were taken in a quiet cluster", taken, 2*rarely)
	}
	one.saw(1)
	for range rarely {
		if one.skip() || other.skip() {
			t.Error("a look was left out right after a change")
		}
	}
}

func TestSumsTellVersionsApart(t *testing.T) {
	a, b := metav1.ObjectMeta{UID: "a", ResourceVersion: "1"}, metav1.ObjectMeta{UID: "b", ResourceVersion: "1"}
	total := func(all ...metav1.ObjectMeta) uint64 {
		var s sum
		for i := range all {
			s.add(&all[i])
		}
		return s.total
	}
	later := a
	later.ResourceVersion = "2"
	if total(a, b) != total(b, a) || total(a, b) == total(later, b) || total(a, b) == total(a) {
		t.Error("sums do not tell what changed")
	}
}
