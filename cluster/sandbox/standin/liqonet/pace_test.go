package liqonet

import (
	"testing"
	"time"
)

func TestPaceLeavesLooksOutWhileNothingChanges(t *testing.T) {
	var p pace
	now := time.Now()
	p.saw(1, now)
	taken := func(at time.Time) int {
		n := 0
		for range 3 * rarely {
			if !p.skip(at) {
				n++
			}
		}
		return n
	}
	if n := taken(now.Add(lively)); n != 3*rarely {
		t.Errorf("soon after a change %d looks are taken", n)
	}
	p.saw(1, now.Add(lively))
	if n := taken(now.Add(2 * lively)); n != 3 {
		t.Errorf("without a change %d looks are taken", n)
	}
	p.saw(2, now.Add(2*lively))
	if n := taken(now.Add(3 * lively)); n != 3*rarely {
		t.Errorf("after the next change %d looks are taken", n)
	}
}

func TestSumChangesWithWhatIsRead(t *testing.T) {
	all := objects{ends: make([]end, 1), networks: make([]network, 1)}
	all.ends[0].UID, all.ends[0].ResourceVersion = "a", "1"
	before := all.sum()
	if all.sum() != before {
		t.Error("the sum of the same is another")
	}
	all.ends[0].ResourceVersion = "2"
	if all.sum() == before {
		t.Error("a new version is not seen")
	}
	after := all.sum()
	all.networks = nil
	if all.sum() == after {
		t.Error("what is gone is not missed")
	}
}
