package proof

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"carrick/cmd/carrick/carricktest"
	"carrick/steps"
)

// lookAtSpoilt makes every command show how it would handle Secrets that another user has overwritten with the planted
// password. It restores them afterwards.
func (o *office) lookAtSpoilt(link string) {
	o.Helper()
	n := 0
	for _, side := range steps.Sides {
		for _, secret := range o.stored(side) {
			if _, marked := secret.Metadata.Labels["carrick/link."+link]; !marked || len(secret.Data) == 0 {
				continue
			}
			spoilt := map[string][]byte{}
			for key := range secret.Data {
				if !public.MatchString(key) { // what anybody may know is copied elsewhere
					spoilt[key] = []byte(plantedPassword)
				}
			}
			o.setData(side, secret, spoilt)
			differs := o.run(carricktest.CommandWithin, "diff", "link.yaml")
			// a diff of it, or that it is recreated
			if text := differs.text.String(); strings.Contains(text, "(hidden") ||
				strings.Contains(text, "Secret "+secret.Metadata.Namespace+"/"+secret.Metadata.Name) {
				n++
			}
			o.run(carricktest.CommandWithin, "apply", "--dry-run", "--take-over", "link.yaml")
			o.run(carricktest.CommandWithin, "diff", "-o", "json", "link.yaml")
			o.run(carricktest.CommandWithin, "check", "link.yaml")
			o.setData(side, secret, secret.Data)
		}
	}
	if n == 0 {
		o.Error("no diff of a Secret was shown: this proves nothing")
	}
}

func (o *office) setData(side steps.Side, secret storedSecret, data map[string][]byte) {
	o.Helper()
	text := map[string]string{}
	for key, value := range data {
		text[key] = base64.StdEncoding.EncodeToString(value)
	}
	body, err := json.Marshal(map[string]any{"data": text})
	if err != nil {
		o.Fatal(err)
	}
	o.box.Run(
		o.T, string(side), "", "-n", secret.Metadata.Namespace, "patch", "secret", secret.Metadata.Name, "--type=merge", "-p",
		string(body),
	)
}
