package renku

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

const gpuResource = corev1.ResourceName("nvidia.com/gpu")

// sidecarCPU and sidecarMemory are the requests of a session's sidecars, the sign-in proxy and the
// git proxy. The values are the charts' requests, rounded up.
var (
	sidecarCPU    = resource.MustParse("100m")
	sidecarMemory = resource.MustParse("150Mi")
)

// need is the capacity that one session of a class requires on a node, including its sidecars.
type need struct {
	class       string
	cpu, memory resource.Quantity
	gpu         int64
	demand      demand
}

func (w need) String() string {
	return fmt.Sprintf("%s CPUs, %s memory (with sidecars) and %d GPUs", &w.cpu, &w.memory, w.gpu)
}

func (w need) fits(n *corev1.Node) bool {
	have := n.Status.Allocatable
	return have.Cpu().Cmp(w.cpu) >= 0 && have.Memory().Cmp(w.memory) >= 0 && gpus(n) >= w.gpu && w.demand.unfit(n) == ""
}

// needs returns the need of each class of the pool, largest first. If pool.spec is empty or
// invalid, it returns one need from the answers class.cpu, class.memory and class.gpu.
func needs(ctx context.Context, e steps.Env) ([]need, error) {
	d, err := demanded(ctx, e)
	if err != nil {
		return nil, err
	}
	classes, err := poolClasses(e)
	if err != nil {
		return nil, err
	}
	var out []need
	for _, c := range classes {
		w := need{
			"class " + c.Name, *resource.NewMilliQuantity(int64(c.CPU*1000), resource.DecimalSI),
			*resource.NewQuantity(int64(c.Memory*(1<<30)), resource.BinarySI), c.GPU, d,
		}
		// Replace the tolerations from demanded, which include those of the other classes.
		shared, _ := e.Peer.List("session-tolerations") // demanded handles this error
		w.demand.tolerated = slices.Concat(e.Answers.List("nodes.tolerations"), shared, c.Tolerations)
		for _, a := range c.Affinities {
			if a.Required {
				w.demand.keys = append(w.demand.keys, a.Key)
			}
		}
		out = append(out, w)
	}
	if len(out) == 0 {
		out = []need{
			{
				"the largest resource class", resource.MustParse(e.Answers.Text("class.cpu")),
				resource.MustParse(e.Answers.Text("class.memory")), int64(e.Answers.Int("class.gpu")), d,
			},
		}
	}
	slices.SortStableFunc(out, func(a, b need) int { return cmp.Or(b.memory.Cmp(a.memory), b.cpu.Cmp(a.cpu)) })
	for i := range out {
		out[i].cpu.Add(sidecarCPU)
		out[i].memory.Add(sidecarMemory)
	}
	return out, nil
}

func capacity(ctx context.Context, e steps.Env) steps.Result {
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	all, err := needs(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var bad, good []string
	for _, w := range all {
		i := slices.IndexFunc(nodes, w.fits)
		if i < 0 {
			bad = append(bad, fmt.Sprintf("no node has the capacity for %s: %s", w.class, w))
			continue
		}
		have := nodes[i].Status.Allocatable
		good = append(
			good,
			fmt.Sprintf(
				"%s fits on %s, which has %s CPUs, %s memory and %d GPUs allocatable", w.class, nodes[i].Name, have.Cpu(),
				have.Memory(), gpus(nodes[i]),
			),
		)
	}
	if len(bad) > 0 {
		const fix = "make the resource class smaller (class.cpu, class.memory and class.gpu, or your own pool.spec), " +
			"or add a node"
		return steps.Failed(strings.Join(bad, "; "), fix)
	}
	if more := len(good) - 1; more > 0 {
		return steps.Passed("%s; smaller classes that also fit: %d", good[0], more)
	}
	return steps.Passed("%s", strings.Join(good, "; "))
}

func gpus(n *corev1.Node) int64 {
	q := n.Status.Allocatable[gpuResource]
	return q.Value()
}
