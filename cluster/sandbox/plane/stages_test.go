package plane

import (
	"strings"
	"testing"
)

func TestKwokLeavesPodsToStandIns(t *testing.T) {
	text := string(stages())
	if n := strings.Count(text, played); n != 2 {
		t.Errorf("%d stages know of pods that are played", n)
	}
	if !strings.Contains(text, mine) {
		t.Error("kwok calls a pod ready whose kubelet is somebody else")
	}
}
