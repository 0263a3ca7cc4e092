#!/bin/bash
# A stand-in for the hook that Open OnDemand's package has here, which puts the
# tokens of a login into the user's kubeconfig. It does nothing.
[ -n "$1" ] && [ -n "$2" ] || { echo "stand-in: USER HOOK_ENV" >&2; exit 1; }
