// Package liqonet fakes the networking part of Liqo for one cluster.
//
// Source: liqotech/liqo v1.2.0 (e9f4428d3). Notes on older versions name the tag. Below, C stands for
// pkg/liqo-controller-manager/networking, and X for C/external-network:
//
//   - the IPAM, while a Deployment liqo-ipam is available: a Network gets the CIDR that it requests, or another CIDR
//     of the same size: C/network-controller, pkg/ipam
//   - the controllers, while a Deployment liqo-controller-manager with the networking module is available:
//     Configurations (X/configuration, pkg/utils/ipam), GatewayServers and GatewayClients (X/server-operator,
//     X/client-operator), and the objects that these create (X/wireguard), with the containers of
//     deployments/liqo/templates/liqo-wireguard-gateway-*-template.yaml
//   - the container wireguard of each running gateway pod: a real WireGuard endpoint that listens and sends on loopback
//     only: cmd/gateway/wireguard/main.go, pkg/gateway/tunnel/wireguard (keys.go, device.go, publickeys_controller.go)
//   - the Connection, whose status depends on UDP pings through the tunnel: pkg/gateway/connection, pkg/gateway/tunnel
//     (netlink.go, wireguard/k8s.go)
//
// Known differences:
//
//   - WgGatewayServers and WgGatewayClients are not created: their children and events belong to the GatewayServer or
//     GatewayClient. Templates must exist and are not rendered. The ServiceAccount is called gw-NAME, not NAME, no
//     ClusterRoleBinding is created, and the chart's labels are missing.
//   - The address of a node port, and of each load balancer, is loopback. Upstream writes the address of the active
//     pod's node, or an empty address while that node is not ready. A missing MTU is 1340, not 0.
//   - If there are several PublicKeys, the fake alternates between them. Upstream keeps the PublicKey that
//     changed last.
//   - Pings are sent every 0.5 s, not 2 s, and are not JSON; the status is written every 5 s, not 10 s.
//   - The host name in a GatewayClient's endpoint is resolved once. Upstream resolves it again every 5 s, and later
//     every 5 minutes (dns.go).
//   - Networks that are not remapped are never rejected. Networks without an owner count as preinstalled.
//   - Versions before v1.2.0 also get one Network per CIDR; v1.1.2 creates NAME-pod and NAME-external only for the
//     first CIDRs.
//   - Two gateways in a namespace count as two active pods as soon as both Deployments exist.
//
// Not implemented: IPs, Geneve, routes, firewalls, metrics, ports[] of later versions. Logs and events never contain a
// key.
package liqonet
