package scenario

// pageCluster is the published page's first payload for a cluster, verbatim.
const pageCluster = `{
  "name": "Remote Cluster",
  "config_name": "remote-cluster.yaml",
  "session_protocol": "https",
  "session_host": "sessions.example.org",
  "session_port": 443,
  "session_path": "/sessions",
  "session_ingress_class_name": "renku-user-session-ingress-class",
  "session_ingress_annotations": {},
  "session_storage_class": "renku-user-session-storage-class",
  "session_tls_secret_name": "",
  "session_ingress_use_default_cluster_tls_cert": true
}`

// pageAnnotations contains the annotations in the published page's last payload. It omits what is invalid in
// JSON: shell quotes around one value, and commas before closing braces.
const pageAnnotations = `{
  "nginx.ingress.kubernetes.io/enable-cors": "true",
  "nginx.ingress.kubernetes.io/cors-allow-origin": "https://<local hostname>",
  "nginx.ingress.kubernetes.io/cors-allow-credentials": "true",
  "nginx.ingress.kubernetes.io/cors-allow-methods": "GET, PUT, POST, DELETE, PATCH, OPTIONS",
  "nginx.ingress.kubernetes.io/cors-allow-headers": "$http_access_control_request_headers",
  "nginx.ingress.kubernetes.io/configuration-snippet": "more_set_headers \"Content-Security-Policy: frame-ancestors 'self' https://<local hostname>\";\n"
}`

// pagePool is the published page's payload for a resource pool.
const pagePool = `{
  "quota": {"cpu": 5, "memory": 250, "gpu": 0, "id": "renku-resource-pool-1-priority-class"},
  "public": false,
  "default": false,
  "classes": [
    {"name": "remote-default", "cpu": 0.1, "memory": 1, "gpu": 0, "max_storage": 4, "default_storage": 1, "default": true},
    {"name": "remote-small", "cpu": 0.1, "memory": 1, "gpu": 0, "max_storage": 4, "default_storage": 1, "default": false},
    {"name": "remote-medium", "cpu": 0.5, "memory": 2, "gpu": 0, "max_storage": 4, "default_storage": 1, "default": false}
  ],
  "cluster_id": "${REMOTE_CLUSTER_ULID}",
  "name": "Remote Cluster"
}`
