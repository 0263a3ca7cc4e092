package interlink

// These names are hard-coded in upstream's chart and virtual kubelet. N is the name of the virtual node.
const (
	nodeLabel        = "virtual-node.interlink/type"
	nodeTaint        = "virtual-node.interlink/no-schedule"
	kubeletConfigKey = "InterLinkConfig.yaml"    // in ConfigMap N-virtual-kubelet-config
	configSuffix     = "-virtual-kubelet-config" // ConfigMap
	usualNode        = "virtual-node"            // default of N
	kubeletSuffix    = "-node"                   // Deployment, label app=N, container vk
	kubeletName      = "vk"                      // container
	rootCA           = "kube-root-ca.crt"        // ConfigMap of every namespace, key ca.crt
	inCluster        = "kubernetes.default.svc"  // the API server's name inside the cluster
)

// These are the names of the endpoint's objects that carrick creates.
const (
	proxyName  = "k8s-api-proxy"                // ConfigMap, Deployment, Service, NetworkPolicy
	certSecret = "web-ssl-kubernetes-api"       // the endpoint's certificate
	caSecret   = "interlink-api-root-ca-secret" // the CA of that certificate

	proxyImage   = "docker.io/nginxinc/nginx-unprivileged:1.28-alpine"
	proxyListens = 60443 // port in the pod, independent of exposure.port
)
