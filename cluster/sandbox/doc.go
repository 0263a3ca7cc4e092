// Carrick-sandbox runs two real Kubernetes control planes on this machine, for demos and tests. etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and kubectl are built into this one binary. If the binary is started under
// the name of one of these programs, it runs as that program. kwok fakes nodes and pods.
//
// The binary starts both control planes and prints one line of JSON when they are ready. Then it executes commands from
// standard input, one per line. When standard input ends or the binary is killed, all its processes are stopped and all
// its files are deleted.
//
//	roles     the programs that the binary contains
//	leash     stops all processes and deletes all files when the sandbox exits
//	pki       certificates
//	plane     one control plane
//	world     the objects of the clusters
//	standin   fakes of programs that need container images
//	scenario  runs scenarios: applies their objects and starts their fakes
package main
