package vsphere_test

import (
	"testing"

	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// opensOn maps each fault of the demo to the check that the troubles view opens on.
var opensOn = map[string]stepstest.First{
	"access-denied":        {Check: "nfs-export"},
	"by-hand":              {Why: "nothing is wrong"},
	"cert-expired":         {Check: "cert-secret"},
	"claims-pending":       {Check: "claims-pending"},
	"class-deletes":        {Check: "reclaim-policy"},
	"config-stale":         {Check: "extension-config"},
	"export-closed":        {Check: "nfs-port"},
	"labels-missing":       {Check: "labels-file"},
	"native-rwx":           {Why: "nothing is wrong"},
	"no-default":           {Check: "default-class"},
	"no-istio-cni":         {Check: "istio-cni"},
	"no-mount-helper":      {Check: "nfs-mount-helper"},
	"old-provisioner":      {Check: "provisioner-ready"},
	"page":                 {Check: "cert-secret"},
	"page-empty-cert":      {Why: "there is no webhook, and carrick would make a policy"},
	"page-psp-leftovers":   {Check: "psp-leftovers"},
	"page-pvc":             {Check: "page-class"},
	"page-sed":             {Why: "there is no webhook, and carrick would make a policy"},
	"page-webhook":         {Check: "labels-file"},
	"policy-takes-all":     {Check: "policy-exists"},
	"policy-unbound":       {Check: "policy-exists"},
	"privileged-pod":       {Check: "level-warnings"},
	"profile-failed":       {Check: "profiles-namespaces"},
	"provisioner-down":     {Check: "provisioner-ready"},
	"provisioner-name":     {Check: "provisioner-name"},
	"provisioner-rights":   {Why: "the provisioner is not found without its binding"},
	"restricted-namespace": {Check: "profile-levels"},
	"second-default":       {Check: "default-class"},
	"two-mutators":         {Check: "one-mutator"},
	"webhook":              {Why: "nothing is wrong"},
	"webhook-down":         {Why: "its pods have three minutes to become ready"},
	"webhook-network":      {Check: "extension-reached"},
	"webhook-other-ca":     {Check: "cert-bundle"},
	"webhook-sidecar":      {Check: "extension-reached"},
	"webhook-wide":         {Check: "webhook-rules"},
	"write-denied":         {Check: "claims-pending"},
	"wrong-cluster":        {Check: "guest-cluster"},
}

func TestVerifyTroublesOpenOnTheCause(t *testing.T) {
	stepstest.FirstTroubles(t, vsphere.Guide(), assets, opensOn)
}
