package ondemand_test

import (
	"testing"

	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

func TestVerifyMutants(t *testing.T) {
	stepstest.Mutants(t, ondemand.Guide(), assets, "testdata", harmless)
}

// harmless lists changes that no check has to detect.
var harmless = []stepstest.Harmless{
	{
		Where: `file /etc/ood/config/clusters\.d/test\.yml: line [12] (deleted|altered)`,
		Why:   "the document marker and a comment",
	},
	{
		Where: `file /etc/ood/config/ood_portal\.yml: line 1 deleted`,
		Why:   "the document marker",
	},
	{
		Where: `file /etc/ood/config/ood_portal\.yml: line 2 (deleted|altered)`,
		Why:   "servername is the site's; carrick sets keys of its own",
	},
	{
		Where: `file /opt/ood/VERSION: line 1 altered`,
		Why:   "a newer patch of the same version is as good",
	},
	{
		Where: `remote ConfigMap k8-ldap-configmap/user-uid-map: data\.user-bob altered`,
		Why:   "which uid a user has is for the directory to say",
	},
	{
		Where: `remote Namespace user-bob deleted`,
		Why:   "the hook creates it at the next login",
	},
	{
		Where: `remote Secret ondemand/ondemand-first-token: data\.token altered`,
		Why:   "root's own token has taken its place, and is checked",
	},
	{
		Where: `remote ValidatingAdmissionPolicyBinding .*: spec\.validationActions one more`,
		Why:   "API servers refuse other actions than Deny, Warn and Audit, and Deny stays",
	},
	{
		Where: `remote ondemand: a (LimitRange|NetworkPolicy that .* everything) added`,
		Why:   "no pod runs in the namespace of the ServiceAccount",
	},
	{
		Where: `remote ondemand: a (ResourceQuota|ValidatingAdmissionPolicy|webhook) .* added`,
		Why:   "only the renewal of the token writes there, and a token that is not renewed is seen",
	},
}
