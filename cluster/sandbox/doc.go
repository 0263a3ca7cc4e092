// Carrick-sandbox runs two real Kubernetes control planes on this machine, for demos and tests. etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and kubectl are built into this one binary. It runs as one of them if it is
// started under that name. kwok fakes nodes and pods.
//
// It starts both control planes, prints one line of JSON when they are ready, and then executes commands, one per line
// of standard input. When standard input ends, it stops all processes and removes all files. Both also happen if it is
// killed.
//
//	roles     the programs that the binary contains
//	leash     ensures that nothing outlives the sandbox
//	pki       certificates
//	plane     one control plane
//	world     the objects of the clusters
//	standin   fakes of programs that need container images
//	scenario  which of the fakes run in which scenario
package main
