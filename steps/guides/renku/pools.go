package renku

import (
	"context"
	"fmt"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// classValue is the value of the PriorityClasses that Renku creates (renku-data-services
// components/renku_data_services/crc/db.py).
const classValue = 100

func poolChecks() []steps.Check {
	return []steps.Check{{
		Name: "priority-classes", Title: "Each pool has its PriorityClass", On: steps.Remote, FixedBy: "priority-classes",
		Needs:      []string{"signed-in"},
		Why:        "A session of a pool with a quota cannot start without the PriorityClass named after that quota.",
		References: []string{page, "SwissDataScienceCenter/renku-data-services: components/renku_data_services/crc/db.py"},
		Run:        priorityClasses,
	}}
}

func priorityClasses(ctx context.Context, e steps.Env) steps.Result {
	var failed, warned, wrong []string
	names := e.Answers.List("pools.quotas")
	for _, name := range names {
		pc, err := check.Get[schedulingv1.PriorityClass](ctx, e.Cluster, check.PriorityClasses, "", name)
		if apierrors.IsNotFound(err) {
			failed = append(failed, "PriorityClass "+name+" does not exist")
			continue
		}
		if err != nil {
			return steps.Errored(err)
		}
		before := len(failed) + len(warned)
		if pc.GlobalDefault {
			failed = append(
				failed, "PriorityClass "+name+" is the global default, so pods without a PriorityClass count as sessions",
			)
		}
		if pc.PreemptionPolicy == nil || *pc.PreemptionPolicy != corev1.PreemptNever {
			failed = append(failed, "PriorityClass "+name+" can preempt, so sessions can evict other pods")
		}
		if pc.Value != classValue {
			warned = append(warned, fmt.Sprintf("PriorityClass %s has value %d, but Renku uses %d", name, pc.Value, classValue))
		}
		if len(failed)+len(warned) > before {
			wrong = append(wrong, name)
		}
	}
	fix := "" // apply creates a missing PriorityClass, but cannot change the value of an existing one
	if len(wrong) > 0 {
		fix = e.Kubectl() + " delete priorityclass " + strings.Join(wrong, " ") + "    # then " + e.ApplyStep("prerequisites")
	}
	switch {
	case len(failed) > 0 && fix == "":
		return steps.Undone(strings.Join(failed, "; "))
	case len(failed) > 0:
		return steps.Failed(strings.Join(failed, "; "), fix)
	case len(warned) > 0:
		return steps.Warned(strings.Join(warned, "; "), fix)
	}
	return steps.Passed("%s", strings.Join(names, ", "))
}
