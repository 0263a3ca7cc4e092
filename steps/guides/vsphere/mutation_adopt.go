package vsphere

import (
	"context"
	"regexp"
	"slices"

	"carrick/steps"
)

// theMutator returns the existing policy or webhook that sets the StorageClass of claims. It returns nil unless there
// is exactly one.
func theMutator(ctx context.Context, e steps.Env) (*mutator, error) {
	all, err := mutators(ctx, e)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m mutator) bool { return !m.sure })
	if len(all) != 1 {
		return nil, nil
	}
	return &all[0], nil
}

// adoptedMutator adopts a value from the existing mutator (see theMutator). The parameter of is a function that
// extracts the value. adoptedMutator adopts nothing if there is no such mutator or if the value is nil.
func adoptedMutator(ctx context.Context, e steps.Env, of func(mutator) any) (any, string, error) {
	m, err := theMutator(ctx, e)
	if err != nil || m == nil {
		return nil, "", err
	}
	v := of(*m)
	if v == nil {
		return nil, "", nil
	}
	return v, m.String(), nil
}

func adoptBy(ctx context.Context, e steps.Env) (any, string, error) {
	return adoptedMutator(ctx, e, func(m mutator) any { return m.by })
}

func adoptFail(ctx context.Context, e steps.Env) (any, string, error) {
	return adoptedMutator(ctx, e, func(m mutator) any {
		if m.fail == "" {
			return nil
		}
		return m.fail
	})
}

func adoptSelector(ctx context.Context, e steps.Env) (any, string, error) {
	return adoptedMutator(ctx, e, func(m mutator) any {
		for _, s := range m.selects {
			for key, value := range s.MatchLabels {
				if len(s.MatchLabels) == 1 {
					return key + "=" + value
				}
			}
		}
		return nil
	})
}

var (
	celClasses = regexp.MustCompile(`storageClassName in \[([^\]]*)\]`)
	celQuoted  = regexp.MustCompile(`'([a-z0-9.-]+)'|"([a-z0-9.-]+)"`)
)

// adoptFrom adopts the replaced StorageClasses from the CEL conditions of a policy.
func adoptFrom(ctx context.Context, e steps.Env) (any, string, error) {
	return adoptedMutator(ctx, e, func(m mutator) any {
		list := celClasses.FindStringSubmatch(m.text)
		if list == nil {
			return nil
		}
		var out []string
		for _, q := range celQuoted.FindAllStringSubmatch(list[1], -1) {
			out = append(out, q[1]+q[2])
		}
		if len(out) == 0 {
			return nil
		}
		return out
	})
}
