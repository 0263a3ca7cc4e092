package ondemand

import "testing"

func TestVersionsOfTheReapersChart(t *testing.T) {
	for version, reads := range map[string]bool{
		"0.14.0": true, "v0.14.0": true, "0.5.0": true, "1.0.0": true,
		"0.4.0": false, "v0.4.0": false, "0.2.1": false, "": false, "latest": false,
	} {
		if err := checkReaperVersion(version); (err == nil) != reads {
			t.Errorf("%q: %v", version, err)
		}
	}
}
