// Package liqonet plays the networking half of Liqo for one cluster
// (liqotech/liqo, pkg/liqo-controller-manager/networking, pkg/ipam and
// pkg/gateway):
//
//   - the address management, while a Deployment liqo-ipam is available: it
//     gives a Network the CIDR that it asks for, or another of the same size
//     where that overlaps one in use;
//   - the controllers of Configuration, GatewayServer and GatewayClient, while a
//     Deployment liqo-controller-manager is available whose networking module
//     is on;
//   - the gateways: a real WireGuard endpoint for each pod of theirs that runs,
//     which listens and sends on loopback only, and the Connection that says how
//     it fares. Its state is that of pings through the tunnel.
//
// What there is no pod for is not played: Geneve, routes, firewalls, the
// intermediate kinds WgGatewayServer and WgGatewayClient. Templates of gateways
// have to be there and are not rendered. No log and no event holds a key.
package liqonet
