package interlink

// These names are hard-coded in upstream's chart and virtual kubelet; N is the virtual node's
// name.
const (
	nodeLabel        = "virtual-node.interlink/type"
	nodeTaint        = "virtual-node.interlink/no-schedule"
	kubeletConfigKey = "InterLinkConfig.yaml"    // in ConfigMap N-virtual-kubelet-config
	configSuffix     = "-virtual-kubelet-config" // ConfigMap
	usualNode        = "virtual-node"            // N, unless the values say otherwise
	kubeletSuffix    = "-node"                   // Deployment, label app=N, container vk
	kubeletName      = "vk"                      // container
	rootCA           = "kube-root-ca.crt"        // ConfigMap of every namespace, key ca.crt
	inCluster        = "kubernetes.default.svc"  // the API server's name inside the cluster
)

// These are the names of the endpoint's objects that carrick creates.
const (
	proxyName  = "k8s-api-proxy"                // ConfigMap, Deployment, Service, NetworkPolicy
	certSecret = "web-ssl-kubernetes-api"       // the endpoint's certificate
	caSecret   = "interlink-api-root-ca-secret" // the CA that signs it

	proxyImage   = "docker.io/nginxinc/nginx-unprivileged:1.28-alpine"
	proxyListens = 60443 // in the pod, whatever the port outside
)
