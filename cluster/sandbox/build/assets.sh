#!/bin/sh
# assets.sh VERSION: prints the folder of the user's own etcd, kube-apiserver and
# kubectl, or nothing where there is none that fits the control planes of VERSION.
#
# KUBEBUILDER_ASSETS names one; else setup-envtest has put them into a folder for
# each version. They fit when all three run, and the API server is of the same
# minor as VERSION or of the next: Kubernetes supports no controller manager that
# is newer than its API server.
minor=${1#v1.}
minor=${minor%%.*}

fits() {
  for name in etcd kube-apiserver kubectl; do
    [ -f "$1/$name" ] && [ -x "$1/$name" ] || return 1
  done
  "$1/etcd" --version >/dev/null 2>&1 || return 1
  for said in "$("$1/kube-apiserver" --version 2>/dev/null)" "$("$1/kubectl" version --client 2>/dev/null)"; do
    case $said in
    *" v1.$minor."* | *" v1.$((minor + 1))."*) ;;
    *) return 1 ;;
    esac
  done
}

if [ -n "$KUBEBUILDER_ASSETS" ]; then
  folder=$(cd "$KUBEBUILDER_ASSETS" 2>/dev/null && pwd) && fits "$folder" && echo "$folder"
  exit 0
fi
case $(uname -s) in
Darwin) store="$HOME/Library/Application Support/io.kubebuilder.envtest/k8s" ;;
*) store="${XDG_DATA_HOME:-$HOME/.local/share}/kubebuilder-envtest/k8s" ;;
esac
cd "$store" 2>/dev/null || exit 0
platform=$(go env GOOS)-$(go env GOARCH)
for m in "$minor" "$((minor + 1))"; do
  for folder in "1.$m."*"-$platform"; do echo "$folder"; done | sort -t . -k 3,3nr
done | while read -r folder; do
  if fits "$store/$folder"; then
    echo "$store/$folder"
    break
  fi
done
