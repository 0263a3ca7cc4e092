// Carrick-sandbox runs two real Kubernetes control planes on this machine, for
// demos and tests: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and kubectl are built into this one program, which answers to
// each of their names, and kwok plays nodes and pods.
//
// It starts both, prints one line of JSON when they are ready, and then obeys
// commands, one a line of standard input. When standard input ends, it stops
// everything and leaves nothing behind; nor does it when it is killed.
//
//	roles     the programs that the binary can be
//	leash     why nothing outlives the sandbox
//	pki       certificates
//	plane     one control plane
//	world     what stands in the clusters
//	standin   what plays programs that need container images
//	scenario  which of those play in which scenario
package main
