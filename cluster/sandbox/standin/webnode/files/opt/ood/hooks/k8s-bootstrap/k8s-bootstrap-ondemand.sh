#!/bin/bash
# A stand-in for the hook that Open OnDemand's package has here. The sandbox
# plays what that does at a login: the user's namespace, its network policy and
# its role bindings, with root's kubeconfig. This script itself does nothing.
set -e
[ -n "$1" ] && [ -n "$2" ] || { echo "stand-in: USER HOOK_ENV" >&2; exit 1; }
. "$2"
export $(grep -Ev "^#" "$2" | cut -d= -f1)
