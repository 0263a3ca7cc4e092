package scenario

import "context"

// liqoBehaviours are the faults of the scenario liqo that are no objects.
func liqoBehaviours() map[string]string { return nil }

// liqo starts what plays in the scenario liqo.
func liqo(_ context.Context, _ Sides, _ map[string]bool) (*Play, error) {
	values, err := liqoValues()
	if err != nil {
		return nil, err
	}
	return &Play{
		Values: values,
		Settle: func(context.Context) error { return nil },
		Close:  func() {},
	}, nil
}
